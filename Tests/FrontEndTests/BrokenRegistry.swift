import FanfareCore

/// A registry that only fails.
struct BrokenRegistry: DeviceRegistry, RegistrationDirectory {
  let error: any Error & Sendable

  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID { throw error }
  func complete(_ application: RegistrationRequest, at now: UnixTime) async throws -> Registration { throw error }
  func install(_ application: InstallationRequest, at now: UnixTime) async throws -> Registration { throw error }
  func remove(_ id: RegistrationID, hub: HubName, user: String, at now: UnixTime) async throws { throw error }
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? { throw error }
  func resolve(_ queries: [AudienceQuery]) async throws -> [[Target]] { throw error }
  func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage { throw error }
  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] { throw error }
  func check() async throws { throw error }
  func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? { throw error }
  func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage { throw error }
  func revise(
    _ former: Registration, by application: InstallationRequest, at now: UnixTime
  ) async throws -> Registration { throw error }
  func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep { throw error }
}
