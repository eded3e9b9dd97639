import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import ServiceLifecycle

/// The port of a role that serves nothing else: health, readiness and metrics over HTTP.
package final class OperationsServer: Service {
  /// The most connections served at once: a few scrapers and probes.
  private static let maximumConnections = 64

  private let host: String
  private let port: Int
  private let routes: OperationsRoutes
  private let logger: Logger
  private let bound = BoundPort()

  /// Port 0 takes a free one; see `boundPort()`.
  package init(host: String, port: Int, routes: OperationsRoutes, logger: Logger) {
    self.host = host
    self.port = port
    self.routes = routes
    self.logger = logger
  }

  /// Serves until graceful shutdown or cancellation. Throws when the address cannot be bound. To be called once.
  package func run() async throws {
    let router = Router(options: .autoGenerateHeadEndpoints)
    routes.add(to: router)
    let bound = bound
    let application = Application(
      router: router,
      // Scrapers keep their connection; one that has gone away without a word is given up after two scrapes or so.
      server: .http1(configuration: .init(idleTimeout: .seconds(120))),
      configuration: ApplicationConfiguration(
        address: .hostname(host, port: port),
        // Beyond that, connections wait: nobody may use up the descriptors through this port.
        availableConnectionsDelegate: MaximumAvailableConnections(Self.maximumConnections)),
      onServerRunning: { channel in bound.resolve(channel.localAddress?.port) },
      logger: logger)
    defer { bound.resolve(nil) }
    try await application.run()
  }

  /// The port that is listened on. Waits until there is one; throws `OperationsServerError` when the server ended
  /// without.
  package func boundPort() async throws -> Int {
    guard let port = await bound.value() else { throw OperationsServerError.notListening }
    return port
  }
}

/// Why the operations port cannot be told.
package enum OperationsServerError: Error, CustomStringConvertible {
  /// The server has ended before it listened.
  case notListening

  package var description: String { "the operations server ended before it listened on a port" }
}
