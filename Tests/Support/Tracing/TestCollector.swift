package import Foundation
import NIOCore
package import NIOHTTP1
import NIOPosix
import Synchronization

/// A collector of OpenTelemetry's protocol (OTLP over HTTP, JSON) on loopback that answers as the test decides.
package final class TestCollector: Sendable {
  /// A span as it arrived.
  package struct ReceivedSpan: Sendable, Hashable {
    package let service: String
    package let name: String
    package let trace: String
    package let id: String
    package let parent: String?
    package let attributes: [String: String]

    package init(
      service: String, name: String, trace: String, id: String, parent: String?, attributes: [String: String]
    ) {
      (self.service, self.name, self.trace, self.id) = (service, name, trace, id)
      (self.parent, self.attributes) = (parent, attributes)
    }
  }

  package struct Answer: Sendable {
    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders

    package init(_ status: HTTPResponseStatus, headers: HTTPHeaders = [:]) {
      (self.status, self.headers) = (status, headers)
    }
  }

  private struct State {
    /// The answers of the next requests; nil: no answer. Later requests are taken.
    var answers: [Answer?] = []
    var requests: [(headers: HTTPHeaders, body: Data)] = []
    var taken: [ReceivedSpan] = []
    var waiters: [(requests: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state: Recorder
  private let channel: any Channel

  package init(answers: [Answer?] = []) async throws {
    let state = Recorder(State(answers: answers))
    self.state = state
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(state))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  package var endpoint: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)/v1/traces" }

  /// The spans of all requests that were answered with success.
  package var spans: [ReceivedSpan] { state.value.withLock { $0.taken } }

  /// The header fields and bodies of all requests.
  package var requests: [(headers: HTTPHeaders, body: Data)] { state.value.withLock { $0.requests } }

  /// Suspends until that many requests have come.
  package func received(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.value.withLock { state in
        if state.requests.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  package func close() async throws { try await channel.close() }

  private final class Recorder: Sendable {
    let value: Mutex<State>

    init(_ state: consuming State) { value = Mutex(state) }

    /// Returns the answer to a request; nil: none.
    func take(_ headers: HTTPHeaders, _ body: Data) -> Answer? {
      let (answer, reached) = value.withLock { state in
        let answer = state.answers.isEmpty ? Answer(.ok) : state.answers.removeFirst()
        state.requests.append((headers, body))
        if answer?.status == .ok { state.taken += TestCollector.spans(of: body) }
        let count = state.requests.count
        let reached = state.waiters.filter { $0.requests <= count }
        state.waiters.removeAll { $0.requests <= count }
        return (answer, reached)
      }
      for waiter in reached { waiter.continuation.resume() }
      return answer
    }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let state: Recorder
    private var head: HTTPRequestHead?
    private var body = Data()

    init(_ state: Recorder) { self.state = state }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): (self.head, body) = (head, Data())
      case .body(let bytes): body.append(contentsOf: bytes.readableBytesView)
      case .end:
        guard let head, let answer = state.take(head.headers, body) else { return }
        var response = HTTPResponseHead(version: .http1_1, status: answer.status, headers: answer.headers)
        response.headers.replaceOrAdd(name: "content-length", value: "0")
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      }
    }
  }

  /// Reads the spans of an `ExportTraceServiceRequest`, strictly enough that a missing member shows.
  private static func spans(of body: Data) -> [ReceivedSpan] {
    typealias Object = [String: Any]
    // A body that is not JSON has no spans, which the test sees.
    let document = (try? JSONSerialization.jsonObject(with: body)) as? Object
    func attributes(_ object: Object?) -> [String: String] {
      var found: [String: String] = [:]
      for attribute in object?["attributes"] as? [Object] ?? [] {
        let value = attribute["value"] as? Object
        guard let key = attribute["key"] as? String else { continue }
        found[key] = (value?["stringValue"] ?? value?["intValue"]) as? String
      }
      return found
    }
    return (document?["resourceSpans"] as? [Object] ?? []).flatMap { resource -> [ReceivedSpan] in
      let service = attributes(resource["resource"] as? Object)["service.name"] ?? ""
      return (resource["scopeSpans"] as? [Object] ?? []).flatMap { scope in
        (scope["spans"] as? [Object] ?? []).compactMap { span in
          guard let name = span["name"] as? String, let trace = span["traceId"] as? String, trace.count == 32,
            let id = span["spanId"] as? String, id.count == 16, span["kind"] is Int,
            let start = (span["startTimeUnixNano"] as? String).flatMap({ UInt64($0) }),
            let end = (span["endTimeUnixNano"] as? String).flatMap({ UInt64($0) }), start <= end
          else { return nil }
          return ReceivedSpan(
            service: service, name: name, trace: trace, id: id, parent: span["parentSpanId"] as? String,
            attributes: attributes(span))
        }
      }
    }
  }
}
