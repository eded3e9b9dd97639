package import FanfareCore
package import Logging
import Metrics
package import NIOCore
import NIOPosix
package import Operations
package import ServiceLifecycle
import UnixSignals

/// What every role of a process shares: settings, log, metrics, threads.
package struct Runtime: Sendable {
  package let settings: Settings
  package let logger: Logger
  let metrics: PrometheusMetrics
  package let eventLoopGroup: any EventLoopGroup
  /// What time it is, for everything that stamps and expires.
  package let clock: any WallClock

  /// The threads of the connections to push services, for as long as the process lives. One makes some hundred thousand
  /// pushes a second to APNs, more than the rest of a worker gives it: where it shares the cores with another, both
  /// only get smaller batches, and each push costs more.
  static let pushEventLoopGroup = MultiThreadedEventLoopGroup(numberOfThreads: max(1, System.coreCount / 4))

  /// Sets up the process: from here on, everything logged goes to standard error, and everything measured to
  /// `/metrics`. Once per process.
  package init(role: String, settings: Settings, clock: any WallClock = SystemWallClock()) throws {
    self.settings = settings
    let level = settings.logLevel
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = level
      return handler
    }
    logger = Logger(label: "fanfare.\(role)")
    metrics = PrometheusMetrics(build: Build.information)
    MetricsSystem.bootstrap(metrics)
    eventLoopGroup = MultiThreadedEventLoopGroup.singleton
    self.clock = clock
  }

  /// Runs a role until SIGTERM or SIGINT, and then until everything it had begun has ended. Throws what ended it
  /// otherwise.
  package func run(_ role: RoleServices) async throws {
    try await ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: role.services.map { ServiceGroupConfiguration.ServiceConfiguration(service: $0) },
        gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    ).run()
  }

  /// What answers operators for a role that has no server of its own, and tells where. `liveness`: what must be well
  /// besides the threads that all roles have.
  package func operations(checks: [any ReadinessCheck], liveness: [any ReadinessCheck] = []) -> [any Service] {
    let server = OperationsServer(
      host: settings.operations.host, port: settings.operations.port,
      routes: routes(checks: checks, liveness: liveness),
      logger: logger)
    return [
      Listener(section: "operations", service: server),
      Announcement(name: "operations", file: nil, logger: logger) { [host = settings.operations.host] in
        Announcement.address(host: host, port: try await server.boundPort())
      },
    ]
  }

  /// What operators are answered: alive is a process whose threads take their turns, ready one that passes the checks.
  func routes(checks: [any ReadinessCheck], liveness: [any ReadinessCheck] = []) -> OperationsRoutes {
    OperationsRoutes(
      metrics: metrics,
      health: HealthRegistry(liveness: [EventLoopsCheck(group: eventLoopGroup)] + liveness, readiness: checks))
  }
}
