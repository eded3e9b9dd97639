package import Operations
package import ServiceLifecycle

/// The services of a role in dependency order: they start in this order and shut down in reverse.
package struct RoleServices: Sendable {
  package var services: [any Service]
  /// The conditions of the role's readiness.
  package var checks: [any ReadinessCheck]

  package init(services: [any Service], checks: [any ReadinessCheck] = []) {
    (self.services, self.checks) = (services, checks)
  }
}

/// A service that runs `body` until shutdown cancels its task.
package struct UntilShutdown: Service, NamedService {
  let name: String
  private let body: @Sendable () async throws -> Void

  /// `name` says what runs, for log lines.
  package init(_ name: String = "background work", _ body: @escaping @Sendable () async throws -> Void) {
    self.name = name
    self.body = body
  }

  package func run() async throws {
    try await cancelWhenGracefulShutdown(body)
  }
}
