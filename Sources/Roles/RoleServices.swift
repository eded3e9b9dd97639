package import NIOCore
package import Operations
package import ServiceLifecycle

/// The services of a role in dependency order: they start in this order and shut down in reverse.
package struct RoleServices: Sendable {
  package var services: [any Service]
  /// The conditions of the role's readiness.
  package var checks: [any ReadinessCheck]
  /// What a worker holds of broadcasts; asked once a second, from any thread.
  var segments: (@Sendable () -> [Pulse.Segments])?
  /// The role's health, shared by everything that reports it; set by `addOperations`.
  package private(set) var health: HealthRegistry?

  package init(services: [any Service], checks: [any ReadinessCheck] = []) {
    (self.services, self.checks) = (services, checks)
  }

  /// Adds the operations server and its announcement, which stop before all other services.
  ///
  /// Call it once, when `checks` is complete. The liveness checks are that of the shared event loops, and one for each
  /// of `loops`, by what their names say of them.
  package mutating func addOperations(_ runtime: Runtime, loops: [(name: String, group: any EventLoopGroup)] = []) {
    let health = runtime.health(
      checks: checks, liveness: loops.map { EventLoopsCheck(group: $0.group, name: $0.name) })
    services += runtime.operations(health, loops: loops.map(\.group))
    self.health = health
  }
}

/// Services that do not need each other: they shut down at the same time, not one after the other.
struct Together: Service {
  let services: [any Service]

  func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for service in services { group.addTask { try await service.run() } }
      while try await group.next() != nil {
        // As a `ServiceGroup` does.
        guard Task.isShuttingDownGracefully || Task.isCancelled else {
          throw ServiceGroupError.serviceFinishedUnexpectedly()
        }
      }
    }
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
