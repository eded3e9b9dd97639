package import FanfareCore
package import Registry
package import Testing

/// The conformance suite of `DeviceRegistry` and the other stores of a registry.
///
/// In a test target: `@Test(arguments: DeviceRegistryConformance.cases) func conforms(to promise: …) async throws`,
/// which calls `promise.check` with a fresh, empty store.
package struct DeviceRegistryConformance: Sendable, CustomStringConvertible {
  package typealias Store = DeviceRegistry & SecurePayloadStore & SendClaimStore & BroadcastStore
    & RegistrationDirectory & RegistrationExpiryStore & RegistrationInquiry & RegistrationImportStore
    & ScheduledSendStore & TombstoneStore & PushQuotaStore & CallerQuotaStore & QuarantineStore & APIKeyStore
    & TemplateStore

  /// All cases.
  package static let cases =
    WorkerRegistryConformance.cases.map { promise in Self(promise.description) { try await promise.check($0) } }
    + directory + securePayloads + sendClaims + imports + callerQuotas + apiKeys + profiles
    + templateLookUps + hubTemplates + installationTemplates + tiles + trusted

  package let description: String
  /// Records an issue for each failed expectation.
  package let check: @Sendable (any Store) async throws -> Void

  init(_ description: String, check: @escaping @Sendable (any Store) async throws -> Void) {
    self.description = description
    self.check = check
  }
}

/// The part of the suite that concerns the registry as workers and schedulers use it, and devices that register. The
/// model of the simulation passes it too.
package struct WorkerRegistryConformance: Sendable, CustomStringConvertible {
  package typealias WorkerRegistry = DeviceRegistry & BroadcastStore & PushQuotaStore & ScheduledSendStore

  /// All cases.
  package static let cases = registering + ownership + resolving + paging + dropping + broadcasts + quotas + schedule

  package let description: String
  /// Records an issue for each failed expectation.
  package let check: @Sendable (any WorkerRegistry) async throws -> Void

  init(_ description: String, check: @escaping @Sendable (any WorkerRegistry) async throws -> Void) {
    self.description = description
    self.check = check
  }
}

/// Shorthands for the cases.
extension DeviceRegistry {
  var hub: HubName { .default }

  /// Issues an id and completes it.
  func register(
    _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [], hub: HubName = .default,
    at now: UnixTime = .start
  ) async throws -> Registration {
    let id = try await issue(hub: hub, handle: nil, at: now)
    return try await complete(id, user, handle, platform: platform, tags: tags, hub: hub, at: now)
  }

  /// Completes an id.
  func complete(
    _ id: RegistrationID, _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [],
    hub: HubName = .default,
    at now: UnixTime = .start
  ) async throws -> Registration {
    try await complete(
      DeviceRequest(id: id, hub: hub, user: user, platform: platform, handle: handle, tags: tags), at: now)
  }

  /// Registers an installation.
  func install(
    _ installation: String, _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [],
    at now: UnixTime = .start
  ) async throws -> Registration {
    try await install(
      DeviceRequest(
        installation: installation, hub: .default, user: user, platform: platform, handle: handle, tags: tags),
      at: now)
  }

  /// The ids of the devices that one audience reaches.
  func reached(
    by audience: Audience, on platforms: PlatformSet = .all, hub: HubName = .default
  ) async throws -> Set<RegistrationID> {
    let targets = try await resolve([AudienceQuery(hub: hub, audience: audience, platforms: platforms)])[0]
    let ids = Set(targets.map(\.registration))
    #expect(ids.count == targets.count, "a device is listed once")
    return ids
  }
}

/// Expects a `RegistryError` of that code.
package func expect(
  _ code: RegistryError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> some Sendable
) async {
  do {
    _ = try await body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
  } catch let error as RegistryError {
    #expect(error.code == code, sourceLocation: sourceLocation)
  } catch {
    Issue.record("threw \(error), not a RegistryError", sourceLocation: sourceLocation)
  }
}

extension UnixTime {
  /// The time at which the cases begin.
  static let start = UnixTime(milliseconds: 1_795_248_000_000)
}

extension ScheduledSendStore {
  /// Takes due sends from a store without unreadable ones.
  package func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime
  ) async throws -> [ScheduledSend] {
    try await takeDue(limit, for: lease, until: end, at: now) { _, _ in }
  }
}
