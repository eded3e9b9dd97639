/// Looks up, lists and changes registrations for people and backends.
///
/// Called by the front end. Durability and errors are as for `DeviceRegistry`.
package protocol RegistrationDirectory: Sendable {
  /// The registration of the installation; nil if there is none.
  func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration?

  /// All registrations of the installation: its own first, one for each of its templates by ascending names, and those
  /// of its tiles by the tiles' names.
  func registrations(ofInstallation installation: String, hub: HubName) async throws -> [Registration]

  /// The tags in use that begin with the prefix, by ascending bytes, at most `limit`, 1 or more.
  func tags(withPrefix prefix: String, hub: HubName, limit: Int) async throws -> [String]

  /// The registrations of an audience in a slice, by ascending ids: a page of at most `limit`
  /// candidates, 1 or more, as in `DeviceRegistry.page`.
  func list(_ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int) async throws
    -> RegistrationPage

  /// Replaces an installation's registration and templates if its registration still equals `former` (compare and
  /// swap), which every change of its templates changes. An unchanged handle does not count as reported again.
  ///
  /// Throws `.conflict` if the registration has changed, `.notFound` if it was removed, `.gone` and `.forbidden` as
  /// `DeviceRegistry.install`.
  func revise(_ former: Registration, by request: DeviceRequest, at now: UnixTime) async throws
    -> Registration
}

/// A page of registrations.
package struct RegistrationPage: Hashable, Sendable {
  /// By ascending ids, each once.
  package let registrations: [Registration]
  /// The last candidate that was examined; nil at the end of the slice.
  package let last: RegistrationID?

  package init(registrations: [Registration], last: RegistrationID?) {
    self.registrations = registrations
    self.last = last
  }
}
