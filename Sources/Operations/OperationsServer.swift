import CoreMetrics
import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Serves health, readiness and metrics of a role over HTTP, on a listener and an event loop of its own.
///
/// So neither load nor an attack on the callers' listener keeps probes and scrapers out. It also measures the turns of
/// the loops that do the work.
package final class OperationsServer: Service {
  /// Enough for a few scrapers and probes. Further connections take the places of slow ones, and cannot use up the file
  /// descriptors.
  static let maximumConnections = 64

  /// Runs as long as the process: connections still schedule work while they close.
  private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  private let host: String
  private let port: Int
  private let routes: OperationsRoutes
  private let loops: [any EventLoopGroup]
  private let firstRequestTimeout: TimeAmount
  private let logger: Logger
  private let listening = ListeningPort()

  /// With port 0 the kernel chooses the port; see `boundPort()`.
  ///
  /// `loops`: the event loops that are measured. `firstRequestTimeout`: a connection without a request is closed then.
  package init(
    host: String, port: Int, routes: OperationsRoutes, loops: [any EventLoopGroup] = [],
    firstRequestTimeout: TimeAmount = .seconds(10), logger: Logger
  ) {
    self.host = host
    self.port = port
    self.routes = routes
    self.loops = loops
    self.firstRequestTimeout = firstRequestTimeout
    self.logger = logger
  }

  /// Serves until graceful shutdown or cancellation. Throws if the address cannot be bound. Call it once.
  package func run() async throws {
    let router = Router(options: .autoGenerateHeadEndpoints)
    routes.add(to: router)
    let listening = listening
    let connections = OperationsConnections(maximum: Self.maximumConnections)
    let timeout = firstRequestTimeout
    let application = Application(
      router: router,
      // Scrapers keep their connection open; a dead one is closed after about two scrape intervals.
      server: .http1(
        configuration: .init(
          additionalChannelHandlers: [connections.makeHandler(closingAfter: timeout)], idleTimeout: .seconds(120))),
      configuration: ApplicationConfiguration(
        address: .hostname(host, port: port),
        availableConnectionsDelegate: OperationsConnections.Gate(connections)),
      onServerRunning: { channel in listening.resolve(channel.localAddress?.port) },
      eventLoopGroupProvider: .shared(Self.group), logger: logger)
    defer { listening.resolve(nil) }
    // Cancelled at the return.
    async let _: Void = routes.watchReadiness()
    async let _: Void = routes.watch(loops + [Self.group])
    try await application.run()
  }

  /// Returns the port as soon as the server listens.
  /// Throws `OperationsServerError` if the server ended before that.
  package func boundPort() async throws -> Int {
    guard let port = await listening.value() else { throw OperationsServerError.notListening }
    return port
  }
}

/// Why the port of an `OperationsServer` is unknown.
package enum OperationsServerError: Error, CustomStringConvertible {
  /// The server ended before it listened.
  case notListening

  package var description: String { "the operations server ended before it listened on a port" }
}

/// The routes `GET /healthz`, `GET /readyz` and `GET /metrics`.
///
/// They need no credentials: their answers contain no secrets.
package struct OperationsRoutes: Sendable {
  private let metrics: PrometheusMetrics
  private let health: HealthRegistry

  package init(metrics: PrometheusMetrics, health: HealthRegistry) {
    self.metrics = metrics
    self.health = health
  }

  /// Adds the three routes to a router.
  package func add(to router: some RouterMethods) {
    let health = health
    let metrics = metrics
    addLiveness(to: router)
    router.get("readyz") { _, _ in try Self.answer(await health.readiness(), good: "ready", bad: "waiting") }
    router.get("metrics") { _, _ in
      Self.response(.ok, type: "text/plain; version=0.0.4; charset=utf-8", metrics.exposition())
    }
  }

  /// Keeps `fanfare_ready` current until the task is cancelled: a scrape must not wait for the checks.
  func watchReadiness(every interval: Duration = .seconds(5)) async {
    var gauges: [String: Gauge] = [:]
    while true {
      for check in await health.readiness().checks {
        let gauge =
          gauges[check.name]
          ?? Gauge(
            label: "fanfare_ready", dimensions: [("check", check.name)], factory: metrics)
        gauge.record(check.problem == nil ? 1 : 0)
        gauges[check.name] = gauge
      }
      do { try await Task.sleep(for: interval) } catch { return }
    }
  }

  /// Keeps the longest turn of the loops current until the task is cancelled.
  func watch(_ loops: [any EventLoopGroup]) async { await EventLoopWatch(loops, metrics: metrics).run() }

  /// Adds `GET /healthz` and `GET /readyz` for a listener that strangers can reach: whether the role is ready, not why.
  package func addProbes(to router: some RouterMethods) {
    let health = health
    addLiveness(to: router)
    router.get("readyz") { _, _ in
      try Self.answer(await health.readiness(), good: "ready", bad: "waiting", forStrangers: true)
    }
  }

  /// Whether the path is one of `addProbes`.
  package static func isProbe(_ path: String) -> Bool { path == "/healthz" || path == "/readyz" }

  private func addLiveness(to router: some RouterMethods) {
    let health = health
    router.get("healthz") { _, _ in try Self.answer(await health.liveness(), good: "alive", bad: "stuck") }
  }

  private static func answer(
    _ report: HealthReport, good: String, bad: String, forStrangers: Bool = false
  ) throws -> Response {
    response(
      report.isGood ? .ok : .serviceUnavailable, type: "application/json",
      try report.json(good: good, bad: bad, forStrangers: forStrangers))
  }

  private static func response(_ status: HTTPResponse.Status, type: String, _ text: String) -> Response {
    Response(
      status: status, headers: [.contentType: type, .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}

/// The port of a server, for callers that wait until the server listens.
package final class ListeningPort: Sendable {
  private enum State {
    case unknown(waiting: [CheckedContinuation<Int?, Never>])
    case known(Int?)
  }

  private let state = Mutex(State.unknown(waiting: []))

  package init() {}

  /// Sets the port and resumes all waiting callers; nil if the server ended before it listened.
  /// Later calls have no effect.
  package func resolve(_ port: Int?) {
    let waiting: [CheckedContinuation<Int?, Never>] = state.withLock { state in
      guard case .unknown(let waiting) = state else { return [] }
      state = .known(port)
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: port) }
  }

  /// Returns the port as soon as it is known; nil if the server ended before it listened.
  package func value() async -> Int? {
    await withCheckedContinuation { continuation in
      let known: Int?? = state.withLock { state in
        switch state {
        case .known(let port): return .some(port)
        case .unknown(let waiting):
          state = .unknown(waiting: waiting + [continuation])
          return .none
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }
}
