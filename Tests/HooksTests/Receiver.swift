import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support
import Synchronization
import Testing

/// A hook's receiver: an HTTP/1.1 server over TLS that records requests, and answers as the test decides.
final class Receiver: Sendable {
  struct Request: Sendable {
    let path: String
    let headers: HTTPHeaders
    var body: [UInt8] = []
  }

  /// A status and header fields.
  struct Answer: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders = [:]
  }

  /// Every request, as soon as it has arrived.
  let requests: AsyncStream<Request>
  private let channel: any Channel
  private let accepted = Counter()

  /// `answer` gets the number of the request, from 1.
  init(_ certificates: TestCertificates, answer: @escaping @Sendable (Int, Request) -> Answer) async throws {
    let tls = try NIOSSLContext(configuration: try certificates.serverTLS())
    let (requests, continuation) = AsyncStream.makeStream(of: Request.self)
    self.requests = requests
    let (count, accepted) = (Counter(), accepted)
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        _ = accepted.next()
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(
            Handler { request in
              let answer = answer(count.next(), request)
              continuation.yield(request)
              return answer
            })
        }
      }
      .bind(host: "localhost", port: 0).get()
  }

  /// The address under the name of the certificate.
  var url: String { "https://localhost:\(channel.localAddress?.port ?? 0)/hook" }

  /// The address at which it listens.
  var address: String { get throws { try #require(channel.localAddress?.ipAddress) } }

  /// The number of accepted connections.
  var connections: Int { accepted.value }

  func close() async throws { try await channel.close() }

  private final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func next() -> Int {
      count.withLock { value in
        value += 1
        return value
      }
    }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answer: @Sendable (Request) -> Answer
    private var request: Request?

    init(answer: @escaping @Sendable (Request) -> Answer) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): request = Request(path: head.uri, headers: head.headers)
      case .body(let buffer): request?.body += Array(buffer.readableBytesView)
      case .end:
        guard let request else { return }
        let answer = answer(request)
        var head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: answer.headers)
        if answer.status != .noContent { head.headers.replaceOrAdd(name: "content-length", value: "0") }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      }
    }
  }
}
