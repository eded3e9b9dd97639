package import FanfareCore
package import Registry

/// The promises of `DeviceRegistry` and of the other stores beside it, as cases that every implementation is held to.
///
/// In a test target: `@Test(arguments: DeviceRegistryConformance.cases) func conforms(to promise: …) async throws`,
/// which calls `promise.check` with a fresh, empty store.
package struct DeviceRegistryConformance: Sendable, CustomStringConvertible {
  package typealias Store = DeviceRegistry & SecurePayloadStore & SendClaimStore & BroadcastStore
    & RegistrationDirectory
    & ScheduledSendStore & TombstoneStore & RegistrationImportStore
    & PushQuotaStore

  /// Every case there is.
  package static let cases =
    registering + ownership + resolving + paging + directory + dropping + securePayloads + sendClaims + broadcasts
    + schedule
    + imports + quotas

  /// The promise in words.
  package let description: String
  /// Records an issue for each way in which the store breaks the promise.
  package let check: @Sendable (any Store) async throws -> Void

  init(_ description: String, check: @escaping @Sendable (any Store) async throws -> Void) {
    self.description = description
    self.check = check
  }
}
