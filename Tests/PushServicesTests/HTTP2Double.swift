import HTTP2
import Logging
import NIOPosix
import Support
import Synchronization

/// An HTTP/2 server over TLS that plays a push service: it records requests, and answers as the test decides.
final class HTTP2Double: Sendable {
  struct Response: Sendable {
    var status = 200
    var headers = HTTP2Headers()
    var body = ""
  }

  /// The test's reaction to a request.
  enum Reaction: Sendable {
    case answer(Response)
    case reset(HTTP2ErrorCode)
    case close
    case silence
  }

  private final class Recorder: Sendable {
    let requests = Mutex<[(connection: Int, request: HTTP2ServerRequest)]>([])
  }

  private let recorder = Recorder()
  private let server: HTTP2Server

  /// Every request so far, with the number of its connection.
  var requests: [(connection: Int, request: HTTP2ServerRequest)] { recorder.requests.withLock { $0 } }
  var port: Int { server.boundPort ?? 0 }

  /// Listens on a port of the system's choice.
  init(_ certificates: TestCertificates, react: @escaping @Sendable (HTTP2ServerRequest) -> Reaction) async throws {
    let recorder = recorder
    server = HTTP2Server(
      configuration: HTTP2ServerConfiguration(tls: try certificates.serverTLS()),
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: Logger(label: "double")
    ) { request, responder in
      recorder.requests.withLock { $0.append((responder.connection.id, request)) }
      switch react(request) {
      case .answer(let response):
        responder.respond(status: response.status, headers: response.headers, body: Array(response.body.utf8))
      case .reset(let code): responder.reset(code)
      case .close: responder.connection.close()
      case .silence: break
      }
    }
    try await server.start()
  }

  func close() async { await server.close() }
}
