import Operations
import ServiceLifecycle

/// What a role is made of. Each service stands on those before it: they start in this order, and shut down in the
/// reverse one.
struct RoleServices: Sendable {
  var services: [any Service]
  /// What must hold for the role to be able to do its job.
  var checks: [any ReadinessCheck] = []
}
