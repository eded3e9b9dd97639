import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support
import Synchronization

/// An HTTP/1.1 server over TLS that records requests, and answers as the test decides.
final class HTTP1Server: Sendable {
  struct Request: Sendable {
    var head: HTTPRequestHead
    var body = ""
  }

  struct Response: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders = [:]
    var body = ""
    /// Whether the end of the body is sent.
    var isWhole = true
  }

  private let recorder: Recorder
  private let channel: any Channel

  /// Every request so far.
  var requests: [Request] { recorder.requests.withLock { $0 } }
  /// The number of connections so far.
  var connectionCount: Int { recorder.connections.withLock { $0 } }
  var port: Int { channel.localAddress?.port ?? 0 }

  /// Listens. `answer` returns nil for a request that gets no answer; connection number `resetting`, from 1, is reset
  /// at once.
  init(
    _ certificates: TestCertificates, resetting: Int? = nil, answer: @escaping @Sendable (Request) -> Response?
  ) async throws {
    var configuration = try certificates.serverTLS()
    configuration.applicationProtocols = ["http/1.1"]
    let tls = try NIOSSLContext(configuration: configuration)
    let recorder = Recorder()
    self.recorder = recorder
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let number = recorder.connections.withLock { connections in
            connections += 1
            return connections
          }
          if number == resetting { return try channel.pipeline.syncOperations.addHandler(ResettingHandler()) }
          try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(recorder: recorder, answer: answer))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  func close() async throws { try await channel.close() }

  private final class Recorder: Sendable {
    let requests = Mutex<[Request]>([])
    let connections = Mutex(0)
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let recorder: Recorder
    private let answer: @Sendable (Request) -> Response?
    private var request: Request?

    init(recorder: Recorder, answer: @escaping @Sendable (Request) -> Response?) {
      self.recorder = recorder
      self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): request = Request(head: head)
      case .body(let buffer): request?.body += String(buffer: buffer)
      case .end:
        guard let request else { return }
        recorder.requests.withLock { $0.append(request) }
        guard let response = answer(request) else { return }
        var head = HTTPResponseHead(version: .http1_1, status: response.status, headers: response.headers)
        head.headers.replaceOrAdd(
          name: "content-length", value: String(response.body.utf8.count + (response.isWhole ? 0 : 1)))
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: response.body)))), promise: nil)
        guard response.isWhole else { return context.flush() }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      }
    }
  }
}

/// Resets a connection: it closes with unread bytes of the client.
final class ResettingHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}
