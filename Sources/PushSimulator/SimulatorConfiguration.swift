package import FanfareCore

/// The listeners, credentials and limits of a simulator.
package struct SimulatorConfiguration: Sendable {
  /// The address of all listeners: `127.0.0.1`, `::1` or `localhost`, because the certificate is for these and the
  /// admin routes have no authentication.
  package var host = "127.0.0.1"
  /// The ports of the services with a listener of their own; without one, and for 0 here and below, the kernel chooses.
  package var ports: [Platform: Int] = [:]
  /// The port of the other services and of all token endpoints.
  package var httpsPort = 0
  /// The port of the admin routes.
  package var adminPort = 0

  /// The keys and secrets that callers must have; nil generates them.
  package var credentials: SimulatorCredentials?
  /// The lifetime of access tokens; nil: as at each vendor.
  package var tokenLifetime: Duration?

  /// Whether notifications are kept. If not, they are only counted, and duplicates are not detected.
  package var recordsPushes = true
  /// Whether handles with certain prefixes get a fault; see `HandlePrefix`.
  package var honoursHandlePrefixes = true

  /// The notifications kept for each device: the newest.
  package var notificationsPerDevice = 50
  /// The devices kept for all platforms together; the one that appeared first is removed first.
  package var maximumDevices = 100_000
  /// The number of pushes within which a duplicate is detected, for all platforms together, while they are spread over
  /// many devices; for a single device in a store of 1,000 devices or more, at least a 64th of it.
  package var duplicateWindow = 2_000_000
  /// The most active faults.
  package var maximumFaults = 1000

  /// The time for open requests over HTTP/1.1 after shutdown begins. HTTP/2 connections are closed at once, so the
  /// outcome of their unanswered pushes is unknown to the sender.
  package var shutdownTimeout: Duration = .seconds(5)
  /// The clock for the ages of tokens and the times of notifications.
  package var clock: any WallClock = SystemWallClock()

  package init() {}
}

/// Why a simulator cannot be made from its configuration.
package struct SimulatorConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The configuration's property.
  package let field: String
  /// The end of a sentence that begins with the field.
  package let problem: String

  package var description: String { "simulator.\(field) \(problem)" }
}

/// The addresses of a running simulator.
package struct SimulatorEndpoints: Hashable, Sendable, Codable {
  /// The host that all listeners are bound to.
  package let host: String
  /// The services with a listener of their own, by the name of their platform: HTTP/2 over TLS.
  package let ports: [String: Int]
  /// The other services and the token endpoints: HTTP/1.1 over TLS.
  package let httpsPort: Int
  /// The admin routes: HTTP/1.1 in the clear.
  package let adminPort: Int

  /// The port of a service.
  package func port(of platform: Platform) -> Int { ports[platform.name] ?? httpsPort }

  /// The URL of a service.
  package func url(of platform: Platform) -> String { "https://\(authority):\(port(of: platform))" }

  /// The URL of the listener that the services share.
  package var httpsURL: String { "https://\(authority):\(httpsPort)" }

  /// The admin routes.
  package var adminURL: String { "http://\(authority):\(adminPort)" }

  /// The host as written in URLs.
  private var authority: String { host.contains(":") ? "[\(host)]" : host }
}
