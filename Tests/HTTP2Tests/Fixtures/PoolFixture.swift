import HTTP2
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Support

/// A TLS server on a free port, a pool connected to it, and the events of both.
struct PoolFixture {
  let server: HTTP2Server
  let pool: HTTP2ConnectionPool
  /// The events of the pool.
  let events: Probe<HTTP2PoolEvent>
  /// Completions in order of arrival.
  let completions = Probe<HTTP2Completion>()

  static let certificates = Result { try TestCertificates() }
  static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  static let group = MultiThreadedEventLoopGroup.singleton

  /// Runs `body` with a server that answers with `handler`, and closes everything afterwards.
  static func run<R: Sendable>(
    server configureServer: (inout HTTP2ServerConfiguration) -> Void = { _ in },
    pool configurePool: (inout HTTP2PoolConfiguration) -> Void = { _ in },
    handler: @escaping HTTP2Server.Handler,
    _ body: (PoolFixture) async throws -> R
  ) async throws -> R {
    let certificates = try certificates.get()
    var serverConfiguration = HTTP2ServerConfiguration(tls: try certificates.serverTLS())
    configureServer(&serverConfiguration)
    let server = HTTP2Server(
      configuration: serverConfiguration, eventLoopGroup: group, logger: logger, handler: handler)
    try await server.start()
    guard let port = server.boundPort else { throw ChannelError.alreadyClosed }
    let events = Probe<HTTP2PoolEvent>()
    let pool = try pool(port: port, events: events, configure: configurePool)
    let result: R = try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { await pool.run() }
      do {
        let result = try await body(PoolFixture(server: server, pool: pool, events: events))
        await pool.close(timeout: .seconds(5))
        return result
      } catch {
        await pool.close(timeout: .zero)
        throw error
      }
    }
    await server.close()
    return result
  }

  /// A pool for a local server, with the short times that tests need.
  static func pool(
    port: Int, events: Probe<HTTP2PoolEvent>, on group: any EventLoopGroup = group,
    configure: (inout HTTP2PoolConfiguration) -> Void
  ) throws -> HTTP2ConnectionPool {
    var configuration = HTTP2PoolConfiguration(host: "127.0.0.1", port: port, tls: try certificates.get().clientTLS())
    configuration.serverName = "localhost"
    configuration.maximumConnections = 1
    configuration.tickInterval = .milliseconds(5)
    configuration.reconnectBackoff = .milliseconds(10)
    configuration.keptResponseHeaders = ["x-ticket"]
    configure(&configuration)
    return try HTTP2ConnectionPool(
      configuration: configuration, eventLoopGroup: group, logger: logger, observer: events)
  }

  /// A request that carries its ticket in its path and in `x-ticket`.
  static func request(
    _ ticket: Int, path: String? = nil, body: [UInt8] = Array("{}".utf8), timeout: Duration = .seconds(15)
  )
    -> HTTP2Request
  {
    HTTP2Request(
      ticket: UInt64(ticket),
      shared: [":method": "POST", ":scheme": "https", ":authority": "localhost", "x-shared": "yes"],
      headers: HTTP2Headers(path: path ?? "/\(ticket)", ["x-ticket": "\(ticket)"]), body: body, timeout: timeout)
  }

  func submit(_ requests: [HTTP2Request]) {
    pool.submit(requests) { [completions] in completions.add(contentsOf: $0) }
  }

  /// Submits requests with these tickets in one batch.
  func submit(tickets: Range<Int>, timeout: Duration = .seconds(15)) {
    submit(tickets.map { Self.request($0, timeout: timeout) })
  }

  /// An answer to `request` that carries its ticket.
  static func answer(_ request: HTTP2ServerRequest, _ responder: HTTP2Responder, status: Int = 200, body: [UInt8] = [])
  {
    responder.respond(status: status, headers: ["x-ticket": request.headers["x-ticket"] ?? ""], body: body)
  }
}

extension HTTP2Completion {
  /// The status, nil if there was no answer.
  var status: Int? { (try? result.get())?.status }  // no answer is what nil stands for

  /// The error, nil if there was an answer.
  var error: HTTP2RequestError? { if case .failure(let error) = result { error } else { nil } }
}
