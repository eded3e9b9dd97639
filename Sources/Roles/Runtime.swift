package import FanfareCore
import FoundationEssentials
package import Logging
import Metrics
package import NIOCore
import NIOPosix
package import Operations
import ServiceLifecycle
package import UnixSignals

/// Settings, logger, metrics, threads and clock, shared by all roles of a process.
package struct Runtime: Sendable {
  package var settings: Settings
  package let logger: Logger
  /// Where the loggers of the process write; nil if others have set them up.
  private let log: ProcessLog?
  let metrics: PrometheusMetrics
  package let eventLoopGroup: any EventLoopGroup
  /// Decides which sends are traced; nil: none.
  let tracing: Tracing?
  private let exporter: SpanExporter?
  /// The log of security events.
  package let security: SecurityLog
  /// The wall clock for timestamps and expiry.
  package let clock: any WallClock

  /// The event loops of connections to push services, for the life of the process.
  ///
  /// One loop makes some hundred thousand pushes a second to APNs, more than the rest of a worker can supply. Two loops
  /// on shared cores get smaller batches, so each push costs more.
  static let pushEventLoopGroup = MultiThreadedEventLoopGroup(numberOfThreads: max(1, System.coreCount / 4))

  /// Sets up logging to standard error and metrics for `/metrics`. Call it once per process.
  package init(role: String, settings: Settings, clock: any WallClock = SystemWallClock()) throws {
    let (level, log) = (settings.log.level, ProcessLog(format: settings.log.format))
    LoggingSystem.bootstrap { label in
      // Security events are logged however quiet the rest is.
      log.handler(label: label, level: label == SecurityLog.label ? min(level, .notice) : level)
    }
    let metrics = PrometheusMetrics(build: Build.information)
    MetricsSystem.bootstrap(metrics)
    let logger = Logger(label: "fanfare.\(role)")
    let exporter = settings.tracing.map { SpanExporter($0.exporter(of: role), logger: logger, metrics: metrics) }
    self.init(settings: settings, logger: logger, metrics: metrics, clock: clock, log: log, exporter: exporter)
  }

  /// The parts of a role for a command that is none, such as a check of the configuration.
  package init(settings: Settings, logger: Logger) {
    self.init(
      settings: settings, logger: logger, metrics: PrometheusMetrics(build: Build.information), clock: SystemWallClock()
    )
  }

  /// Creates the parts of a role without setting up logging and metrics of the process.
  init(
    settings: Settings, logger: Logger, metrics: PrometheusMetrics, clock: any WallClock, log: ProcessLog? = nil,
    exporter: SpanExporter? = nil
  ) {
    (self.settings, self.logger, self.metrics, self.log) = (settings, logger, metrics, log)
    self.exporter = exporter
    tracing = exporter.map { Tracing(sink: $0, sampleRatio: settings.tracing?.sampleRatio ?? 0) }
    security = SecurityLog(key: settings.log.securityKey)
    eventLoopGroup = MultiThreadedEventLoopGroup.singleton
    self.clock = clock
  }

  /// Runs the role that `start` creates until SIGTERM or SIGINT, then drains it; see `RoleRun`. Throws the error that
  /// ends it otherwise.
  ///
  /// `signals` are those since the process began; see `CommonOptions.run`.
  package func run(_ signals: UnixSignalsSequence, _ start: () async throws -> RoleServices) async throws {
    let manager = ServiceManager(environment: ProcessInfo.processInfo.environment, logger: logger)
    let run = RoleRun(logger: logger, log: log, manager: manager)
    guard let exporter else { return try await run.run(signals, start) }
    let exporting = Task { await exporter.run() }
    let result: Result<Void, any Error>
    do {
      try await run.run(signals, start)
      result = .success(())
    } catch { result = .failure(error) }
    exporting.cancel()
    await exporting.value
    await exporter.drain(within: .seconds(2))
    try result.get()
  }

  /// Writes the number of suppressed security events from time to time.
  var securityReports: any Service {
    UntilShutdown("security reports") { [security] in
      defer { security.reportSuppressed() }
      while true {
        do { try await Task.sleep(for: .seconds(60)) } catch { return }
        security.reportSuppressed()
      }
    }
  }

  /// Creates an operations server and its announcement. `loops`: those that are measured beside the shared ones.
  func operations(_ health: HealthRegistry, loops: [any EventLoopGroup]) -> [any Service] {
    let server = operationsServer(OperationsRoutes(metrics: metrics, health: health), loops: loops)
    return [
      Listener(section: "operations", service: server),
      Announcement(name: "operations", file: settings.operations.announceFile, logger: logger) {
        [host = settings.operations.host] in
        Announcement.address(host: host, port: try await server.boundPort())
      },
    ]
  }

  /// Creates a server of operations routes at the configured address.
  package func operationsServer(_ routes: OperationsRoutes, loops: [any EventLoopGroup] = []) -> OperationsServer {
    OperationsServer(
      host: settings.operations.host, port: settings.operations.port, routes: routes,
      loops: [eventLoopGroup] + loops, logger: logger)
  }

  /// The operations routes.
  package func routes(checks: [any ReadinessCheck]) -> OperationsRoutes {
    OperationsRoutes(metrics: metrics, health: health(checks: checks))
  }

  /// The health of a role.
  ///
  /// Liveness means that the event loops respond and the checks in `liveness` pass; readiness means that `checks` pass.
  func health(checks: [any ReadinessCheck], liveness: [any ReadinessCheck] = []) -> HealthRegistry {
    HealthRegistry(liveness: [EventLoopsCheck(group: eventLoopGroup)] + liveness, readiness: checks)
  }
}
