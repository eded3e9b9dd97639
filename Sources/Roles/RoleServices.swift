package import Operations
package import ServiceLifecycle

/// What a role is made of. Each service stands on those before it: they start in this order, and shut down in the
/// reverse one.
package struct RoleServices: Sendable {
  package var services: [any Service]
  /// What must hold for the role to be able to do its job.
  package var checks: [any ReadinessCheck]

  package init(services: [any Service], checks: [any ReadinessCheck] = []) {
    (self.services, self.checks) = (services, checks)
  }
}
