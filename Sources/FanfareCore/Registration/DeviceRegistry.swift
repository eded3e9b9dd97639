/// Where devices are registered. The front end changes it, the worker reads it and drops dead devices.
///
/// Every method may be called from any task at any time and, the store being shared, from several processes. When a
/// change has returned it is durable, and every later `resolve` in any process sees it. A method throws
/// `RegistryError`; any code but `.unavailable` means that nothing was changed.
package protocol DeviceRegistry: Sendable {
  /// Issues an id for a device that is about to register, or gives back the id that already holds the handle.
  ///
  /// A handle held by several registrations is left to the newest; the others are gone. An issued id that is not
  /// completed within an hour disappears. `handle` nil: always a new id. The platform is not known yet, so the handle
  /// is compared both as given and, if it is hexadecimal, in APNs' normal form.
  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID

  /// Completes, replaces or takes over the registration with the given id; the handle is taken from any other
  /// registration of the hub.
  ///
  /// Throws `.gone` when the id was never issued, is no longer alive, or belongs to another user and the handle differs
  /// from the stored one; `.forbidden` when a tag is another user's, or an installation's.
  func complete(_ application: RegistrationRequest, at now: UnixTime) async throws -> Registration

  /// Creates or replaces the registration of an installation. Throws `.gone` when the installation belongs to another
  /// user and the handle differs from the stored one; `.forbidden` when a tag is another user's or another
  /// installation's.
  func install(_ application: InstallationRequest, at now: UnixTime) async throws -> Registration

  /// Removes a registration of the user. Throws `.notFound` when there is none, or when it is somebody else's.
  func remove(_ id: RegistrationID, hub: HubName, user: String, at now: UnixTime) async throws

  /// The live registration of that id; nil when there is none.
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration?

  /// The devices of each audience, in the order of the queries; one round trip for all of them. A device that an
  /// audience reaches in several ways is listed once. `.device` audiences are answered with the registration that holds
  /// the handle, if there is one, and `.registration` audiences with one whose user has had it since the query's
  /// `createdBefore`.
  func resolve(_ queries: [AudienceQuery]) async throws -> [[Target]]

  /// The next devices of an audience in a slice of the ids, in their order, whatever the audience's size; a device that
  /// it reaches in several ways is listed once. At most `limit`, 1 or more, candidates are looked at: what the store
  /// cannot tell from the audience's devices by a key alone. Only registrations that were created
  /// (`Registration.createdAt`) at that moment or before count.
  ///
  /// Pages taken one behind the other (`RegistrationSlice.after` the page's `last`) cover the slice: each device that
  /// is of the audience all the while is on exactly one.
  func page(_ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int) async throws
    -> AudiencePage

  /// Drops devices that a push service called dead, and leaves a tombstone that says why and when. A device whose app
  /// reported the handle after the service's moment of truth, or that has another handle by now, is kept. Returns what
  /// was dropped.
  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID]

  /// Throws when the store cannot be read and written now.
  func check() async throws
}
