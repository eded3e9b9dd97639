package import FanfareCore
package import HTTPServer
import HTTPTypes
import Operations

/// The operations behind the front end's routes, for routes of other protocols: with the same quotas, metrics and
/// security log, on the same stores and topics.
package struct FrontEndOperations: Sendable {
  package let registry: any DeviceRegistry & RegistrationDirectory
  package let inquiry: any RegistrationInquiry
  package let clock: any WallClock
  /// The hubs, by name.
  package let hubs: [HubName]
  /// The most bytes of a usual body.
  package let maximumBodySize: Int
  /// The most bytes of a body with many sends.
  package let maximumBatchSize: Int
  let access: AccessControl
  let intake: SendIntake
  let idempotency: Idempotency
  let templates: HubTemplates
  let tracking: TrackingRoutes

  /// Handles a request of a caller who has one of the scopes, and records refusals; without scopes any caller may.
  ///
  /// The hub's authenticators check the credentials; an unknown hub is refused as wrong credentials are.
  /// Throws `.unauthenticated`, `.forbidden`, the errors of the authenticators, and those of `handle`.
  package func admit(
    _ exchange: Exchange, with credentials: Credentials?, to hub: String, anyOf scopes: [Scope],
    by handle: @escaping @Sendable (Caller) async throws -> Answer
  ) async throws -> Answer {
    try await access.admit(exchange, with: credentials, to: hub, anyOf: scopes, by: handle)
  }

  /// Completes a registration; see `DeviceRegistry.complete`.
  package func complete(
    _ request: DeviceRequest, if condition: RegistrationCondition? = nil, by caller: Caller
  ) async throws -> Registration {
    try await charge(1, by: caller)
    return try await registry.complete(request, if: condition, at: clock.now())
  }

  /// Registers an installation.
  package func install(_ request: DeviceRequest, by caller: Caller) async throws -> Registration {
    try await charge(request.count, by: caller)
    return try await registry.install(request, at: clock.now())
  }

  /// Replaces an installation if it is still `former`; see `RegistrationDirectory.revise`.
  package func revise(
    _ former: Registration, by request: DeviceRequest, of caller: Caller
  ) async throws -> Registration {
    try await charge(request.count, by: caller)
    return try await registry.revise(former, by: request, at: clock.now())
  }

  /// Removes a registration of any user; see `DeviceRegistry.remove`.
  package func remove(
    _ registration: Registration, if condition: RegistrationCondition? = nil, by caller: Caller,
    _ exchange: Exchange
  ) async throws {
    try await registry.remove(
      registration.id, hub: registration.hub, user: registration.user, if: condition, at: clock.now())
    access.security.record(
      caller.owns(registration) ? .deviceRemoved : .othersDeviceRemoved, for: exchange, by: caller,
      details: ["registration.id": registration.id.description])
  }

  /// Records that a caller replaced the hub's credentials at the push services.
  package func recordCredentials(of platforms: [Platform], by caller: Caller, _ exchange: Exchange) {
    access.security.record(
      .credentialsReplaced, for: exchange, by: caller,
      details: ["platforms": platforms.map(\.name).joined(separator: ",")])
  }

  /// Records that a caller started a job over the registrations of all users.
  package func recordJob(_ id: String, kind: String, by caller: Caller, _ exchange: Exchange) {
    access.security.record(
      .jobStarted, for: exchange, by: caller, details: ["job.id": id, "kind": kind])
  }

  /// The signature of a URL that stands for a caller's token. It is accepted by all front ends with the same
  /// `console.sessionKeyFile`; without one, by this process.
  package func signature(ofURL text: String) -> String { access.cookie.key.signature(ofURL: text) }

  package func accepts(signature: String, ofURL text: String) -> Bool {
    access.cookie.key.accepts(signature: signature, ofURL: text)
  }

  /// Takes permits for rows that are written. Throws `.overQuota`.
  ///
  /// The quota is meant for one user, and such a caller acts for all of an app: it has one only as an exception.
  private func charge(_ rows: Int, by caller: Caller) async throws {
    guard caller.hub.quotas.policy.isException(caller.user) else { return }
    try await caller.hub.quotas.charge(rows, to: .registrations, of: caller.user, at: clock.now())
  }
}
