import AsyncHTTPClient
import FanfareCore
import HTTP2
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PushSimulator
import Synchronization
import Testing

/// A running simulator with a client for each of its listeners.
final class SimulatorFixture: Sendable {
  /// Made once, because an RSA key takes a while.
  static let credentials: Result<SimulatorCredentials, any Error> = Result { try SimulatorCredentials.generate() }

  let simulator: PushSimulator
  let endpoints: SimulatorEndpoints
  let http: HTTPClient
  let apns: HTTP2ConnectionPool
  let fcm: HTTP2ConnectionPool
  /// The events of the connections of `apns`.
  let apnsEvents: PoolEvents

  var credentials: SimulatorCredentials { simulator.credentials }

  private init(_ simulator: PushSimulator, _ endpoints: SimulatorEndpoints) throws {
    self.simulator = simulator
    self.endpoints = endpoints
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(simulator.credentials.authorityPEM.utf8)))
    tls.shutdownTimeout = .milliseconds(100)
    var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
    configuration.httpVersion = .http1Only
    http = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
    apnsEvents = PoolEvents()
    apns = try Self.pool(port: endpoints.port(of: .apns), tls: tls, observer: apnsEvents)
    fcm = try Self.pool(port: endpoints.port(of: .fcm), tls: tls, observer: nil)
  }

  /// Runs a simulator and the clients while `body` runs.
  static func run(
    _ configuration: SimulatorConfiguration = SimulatorConfiguration(),
    _ body: @Sendable (SimulatorFixture) async throws -> Void
  ) async throws {
    var configuration = configuration
    if configuration.credentials == nil { configuration.credentials = try Self.credentials.get() }
    let simulator = try PushSimulator(
      configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "simulator"))
    try await simulator.withRunning { endpoints in
      let fixture = try SimulatorFixture(simulator, endpoints)
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await fixture.apns.run() }
        group.addTask { await fixture.fcm.run() }
        do { try await body(fixture) } catch { Issue.record(error) }
        await fixture.apns.close(timeout: .zero)
        await fixture.fcm.close(timeout: .zero)
        await group.waitForAll()
      }
      try await fixture.http.shutdown()
    }
  }

  private static func pool(
    port: Int, tls: TLSConfiguration, observer: (any HTTP2PoolObserver)?
  ) throws -> HTTP2ConnectionPool {
    var configuration = HTTP2PoolConfiguration(host: "127.0.0.1", port: port, tls: tls)
    configuration.serverName = "localhost"
    configuration.maximumConnections = 1
    configuration.reconnectBackoff = .milliseconds(10)
    configuration.keptResponseHeaders = ["apns-id", "retry-after", "content-type"]
    return try HTTP2ConnectionPool(
      configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "client"),
      observer: observer)
  }

  /// Sends one HTTP/2 request; `nil` fields are left out.
  func send(
    _ pool: HTTP2ConnectionPool, method: String = "POST", authority: String? = "localhost", path: String,
    _ fields: [(String, String?)],
    body: String, timeout: Duration = .seconds(30)
  ) async throws -> HTTP2Response {
    var shared = HTTP2Headers()
    shared.append(":method", method)
    shared.append(":scheme", "https")
    if let authority { shared.append(":authority", authority) }
    var headers = HTTP2Headers()
    for (name, value) in fields { if let value { headers.append(name, value) } }
    return try await pool.execute(
      HTTP2Request(
        ticket: 0, shared: shared, headers: HTTP2Headers(path: path, headers), body: Array(body.utf8), timeout: timeout)
    )
  }

  /// Sends one HTTP/1.1 request and reads the answer whole.
  func send(
    _ method: String, _ url: String, headers: [(String, String)] = [], body: String? = nil,
    timeout: TimeAmount = .seconds(30)
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: url)
    request.method = .init(rawValue: method)
    request.headers = .init(headers)
    if let body { request.body = .bytes(ByteBuffer(string: body)) }
    let response = try await http.execute(request, timeout: timeout)
    let bytes = try await response.body.collect(upTo: 1 << 20)
    return Answer(
      status: Int(response.status.code),
      headers: .init(response.headers.map { ($0.name.lowercased(), $0.value) }) { $1 },
      body: String(buffer: bytes))
  }

  /// Sends a request to an admin route.
  func admin(_ method: String, _ path: String, body: String? = nil) async throws -> Answer {
    let headers = body == nil ? [] : [("content-type", "application/json")]
    return try await send(method, endpoints.adminURL + path, headers: headers, body: body)
  }

  /// An HTTP/1.1 answer; names of header fields in lower case.
  struct Answer {
    let status: Int
    let headers: [String: String]
    let body: String
  }
}

/// The events of a pool, in order.
final class PoolEvents: HTTP2PoolObserver {
  private let continuation: AsyncStream<HTTP2PoolEvent>.Continuation
  private let stream: AsyncStream<HTTP2PoolEvent>

  init() {
    (stream, continuation) = AsyncStream.makeStream()
  }

  func pool(_ host: String, didObserve event: HTTP2PoolEvent) { continuation.yield(event) }

  /// The first event for which `transform` returns a value; earlier ones are skipped.
  func first<Value>(_ transform: (HTTP2PoolEvent) -> Value?) async throws -> Value {
    for await event in stream {
      if let value = transform(event) { return value }
    }
    throw CancellationError()
  }
}

/// The current time of the simulator's clock.
enum SystemNow {
  static var seconds: Int64 { SystemWallClock().now().seconds }
}

/// A clock that moves only when told to.
final class StandingClock: WallClock {
  private let milliseconds = Atomic<Int64>(SystemWallClock().now().milliseconds)

  func now() -> UnixTime { UnixTime(milliseconds: milliseconds.load(ordering: .relaxed)) }

  func advance(by duration: Duration) {
    milliseconds.add(duration.components.seconds * 1000, ordering: .relaxed)
  }
}
