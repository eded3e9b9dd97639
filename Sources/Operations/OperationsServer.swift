import CoreMetrics
import FanfareCore
package import HTTPServer
import HTTPTypes
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle

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

  private let routes: OperationsRoutes
  private let loops: [any EventLoopGroup]
  private let listener: Listener

  /// With port 0 the kernel chooses the port; see `boundPort()`.
  ///
  /// `loops`: the event loops that are measured. `firstRequestTimeout`: a connection without a request is closed then.
  /// `writeTimeout`: afterwards a client that reads its answers gives way to one that waits for its place.
  package init(
    host: String, port: Int, routes: OperationsRoutes, loops: [any EventLoopGroup] = [],
    firstRequestTimeout: Duration = .seconds(10), writeTimeout: Duration = .seconds(10), logger: Logger
  ) {
    (self.routes, self.loops) = (routes, loops)
    var configuration = ListenerConfiguration(
      host: host, port: port,
      budgets: ByteBudgets(
        bodies: ByteBudget(limit: 1 << 20, largest: 1 << 20), answers: ByteBudget(limit: 64 << 20, largest: 16 << 20)))
    configuration.maximumConnections = Self.maximumConnections
    configuration.requiresHost = false
    configuration.maximumHeaderFieldSize = 80 * 1024
    configuration.maximumHeaderSize = 80 * 1024
    configuration.firstRequestTimeout = firstRequestTimeout
    // Scrapers keep their connection open; a dead one is closed after about two scrape intervals.
    configuration.idleTimeout = .seconds(120)
    configuration.writeTimeout = writeTimeout
    configuration.slowReadersGiveWay = true
    listener = Listener(configuration, serving: OperationsApplication(routes), logger: logger)
  }

  /// Serves until graceful shutdown or cancellation. Throws if the address cannot be bound. Call it once.
  package func run() async throws {
    // Cancelled at the return.
    async let _: Void = routes.watchReadiness()
    async let _: Void = routes.watch(loops + [Self.group])
    try await listener.run(on: Self.group)
  }

  /// Returns the port as soon as the server listens.
  /// Throws `OperationsServerError` if the server ended before that.
  package func boundPort() async throws -> Int {
    guard let port = await listener.boundPort() else { throw OperationsServerError.notListening }
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

  /// A route of GET.
  package struct Probe: Sendable {
    package let path: String
    package let answer: @Sendable () async throws -> Answer
  }

  /// The three routes.
  var all: [Probe] {
    [
      liveness, readiness(forStrangers: false),
      Probe(path: "metrics") { [metrics] in
        Self.answer(.ok, type: "text/plain; version=0.0.4; charset=utf-8", metrics.exposition())
      },
    ]
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

  /// `GET /healthz` and `GET /readyz` for a listener that strangers can reach: whether the role is ready, not why.
  package var probes: [Probe] { [liveness, readiness(forStrangers: true)] }

  /// Whether the path is one of `probes`.
  package static func isProbe(_ path: Substring) -> Bool { path == "/healthz" || path == "/readyz" }

  private var liveness: Probe {
    Probe(path: "healthz") { [health] in try Self.answer(await health.liveness(), good: "alive", bad: "stuck") }
  }

  private func readiness(forStrangers: Bool) -> Probe {
    Probe(path: "readyz") { [health] in
      try Self.answer(await health.readiness(), good: "ready", bad: "waiting", forStrangers: forStrangers)
    }
  }

  private static func answer(
    _ report: HealthReport, good: String, bad: String, forStrangers: Bool = false
  ) throws -> Answer {
    answer(
      report.isGood ? .ok : .serviceUnavailable, type: "application/json",
      try report.json(good: good, bad: bad, forStrangers: forStrangers))
  }

  private static func answer(_ status: HTTPResponse.Status, type: String, _ text: String) -> Answer {
    Answer(
      status: status, headers: [.contentType: type, .cacheControl: "no-store"],
      body: .bytes(ByteBuffer(string: text)))
  }
}

/// The routes of an operations listener. Everything else is answered without a body.
private struct OperationsApplication: Application {
  private let routes: RouteTable<OperationsRoutes.Probe>

  init(_ routes: OperationsRoutes) {
    var table = RouteTable<OperationsRoutes.Probe>()
    for probe in routes.all { table.add(.get, probe.path, probe) }
    self.routes = table
  }

  func begin(_ exchange: inout Exchange) -> Reply {
    guard case .found(let probe, _, _) = routes.find(exchange.method, exchange.target) else {
      return .now(Self.finished(Answer(status: .notFound)))
    }
    return .later { exchange in
      let answer = Self.finished(try await probe.answer())
      return exchange.method == .head ? answer.withoutBody : answer
    }
  }

  func answer(to fault: RequestFault, requestID: String?) -> Answer {
    let status: HTTPResponse.Status =
      switch fault.kind {
      case .malformed, .notImplemented: .badRequest
      case .headersTooLarge: .requestHeaderFieldsTooLarge
      case .timeout: .requestTimeout
      case .overloaded, .outcomeUnknown: .serviceUnavailable
      }
    return Answer(status: status)
  }

  private static func finished(_ answer: Answer) -> Answer {
    var answer = answer
    answer.headers[.date] = SystemWallClock().now().httpDate
    return answer
  }
}
