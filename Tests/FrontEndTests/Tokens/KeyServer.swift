import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support
import Synchronization

/// An HTTP/1.1 server of a key set. It answers as the test decides.
final class KeyServer: Sendable {
  struct Answer: Sendable {
    var status = HTTPResponseStatus.ok
    var headers: HTTPHeaders = [:]
    var body: [UInt8] = []
    /// Whether the end of the body is sent.
    var isWhole = true
  }

  private let script: Script
  private let channel: any Channel
  private let scheme: String

  /// The number of requests so far.
  var requests: Int { script.state.withLock { $0.requests } }
  var url: String { "\(scheme)://127.0.0.1:\(channel.localAddress?.port ?? 0)/keys" }

  /// Listens, with TLS if there are certificates. Without an answer, requests wait for one.
  init(_ answer: Answer?, certificates: TestCertificates? = nil) async throws {
    let script = Script(answer)
    let tls = try certificates.map { try NIOSSLContext(configuration: $0.serverTLS()) }
    self.script = script
    scheme = tls == nil ? "http" : "https"
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(script))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  /// Answers waiting and later requests; nil: later requests wait.
  func answer(_ answer: Answer?) {
    let waiting = script.state.withLock { state in
      state.answer = answer
      guard answer != nil else { return [] as [@Sendable (Answer) -> Void] }
      defer { state.waiting = [] }
      return state.waiting
    }
    if let answer { for wake in waiting { wake(answer) } }
  }

  /// Answers with a key set.
  func answer(_ keySet: [UInt8]) { answer(Answer(body: keySet)) }

  /// Returns when there have been that many requests.
  func received(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = script.state.withLock { state in
        if state.requests >= count { return true }
        state.observers.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func close() async throws { try await channel.close() }

  private final class Script: Sendable {
    struct State {
      var answer: Answer?
      var requests = 0
      var waiting: [@Sendable (Answer) -> Void] = []
      var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    let state: Mutex<State>

    init(_ answer: Answer?) { state = Mutex(State(answer: answer)) }

    /// Calls `send` with the answer, now or later.
    func handle(_ send: @escaping @Sendable (Answer) -> Void) {
      let (answer, observers) = state.withLock { state in
        state.requests += 1
        let count = state.requests
        let reached = state.observers.filter { $0.count <= count }
        state.observers.removeAll { $0.count <= count }
        if state.answer == nil { state.waiting.append(send) }
        return (state.answer, reached)
      }
      for observer in observers { observer.continuation.resume() }
      if let answer { send(answer) }
    }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let script: Script

    init(_ script: Script) { self.script = script }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data) else { return }
      let channel = context.channel
      script.handle { answer in
        var head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: answer.headers)
        head.headers.replaceOrAdd(
          name: "content-length", value: String(answer.body.count + (answer.isWhole ? 0 : 1)))
        // A connection that is gone needs no answer.
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: answer.body))), promise: nil)
        guard answer.isWhole else { return channel.flush() }
        channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
      }
    }
  }
}
