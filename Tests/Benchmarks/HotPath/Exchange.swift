import HTTP2
import Logging
import NIOPosix

/// A client and a server that talk HTTP/2 through the loopback interface, without TLS, both on one event loop.
final class Exchange: Sendable {
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let pool: HTTP2ConnectionPool

  /// A pair that is connected.
  init() async throws {
    let logger = Logger(label: "benchmark") { _ in SwiftLogNoOpLogHandler() }
    let server = HTTP2Server(configuration: HTTP2ServerConfiguration(tls: nil), eventLoopGroup: group, logger: logger) {
      $1.respond(status: 200)
    }
    try await server.start()
    var configuration = HTTP2PoolConfiguration(host: "127.0.0.1", port: server.boundPort ?? 0, tls: nil)
    configuration.maximumConnections = 1
    pool = try HTTP2ConnectionPool(configuration: configuration, eventLoopGroup: group, logger: logger)
    // Lives as long as the process does.
    Task { [pool] in await pool.run() }
    await run(requests(1))
  }

  /// So many requests, as pushes to Apple are.
  func requests(_ count: Int) -> [HTTP2Request] {
    (0..<count).map { ticket in
      var headers = HTTP2Headers()
      headers.append("apns-id", "0123456789abcdef0123456789abcdef0123", indexing: .withoutIndexing)
      return HTTP2Request(
        ticket: UInt64(ticket), shared: Specimen.sharedFields,
        headers: HTTP2Headers(path: "/3/device/" + Specimen.token, headers),
        body: Array(#"{"aps":{"alert":{"title":"Your order"}}}"#.utf8), timeout: .seconds(20))
    }
  }

  /// Sends requests at once and waits for the last answer.
  func run(_ requests: [HTTP2Request]) async {
    let done = Countdown(requests.count)
    pool.submit(requests) { completions in
      done.subtract(
        completions.count { if case .success(let response) = $0.result { response.status == 200 } else { false } })
    }
    await done.wait()
  }
}
