/// Registrations as people and backends see them: looked up, listed, changed in part and cleared out. The front end
/// calls it; the promises about durability and errors are those of `DeviceRegistry`.
package protocol RegistrationDirectory: Sendable {
  /// The registration of the installation; nil when there is none.
  func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration?

  /// The registrations that an audience reaches in a slice of the ids, in their order: a page of at most `limit`, 1 or
  /// more, candidates, as `DeviceRegistry.page` has it.
  func list(_ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int) async throws
    -> RegistrationPage

  /// Puts what the application says in the place of an installation's registration, which must still be exactly
  /// `former`: so nobody's change is lost. A handle that stays as it was does not count as reported again.
  ///
  /// Throws `.conflict` when the registration is another by now, `.notFound` when it is gone, `.gone` and `.forbidden`
  /// as `DeviceRegistry.install`.
  func revise(_ former: Registration, by application: InstallationRequest, at now: UnixTime) async throws
    -> Registration

  /// Removes registrations in a slice of the ids whose apps were heard of last before that moment, and leaves
  /// tombstones. Looks at no more than `limit`, 1 or more, registrations.
  func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep
}

/// A part of a list of registrations.
package struct RegistrationPage: Hashable, Sendable {
  /// By ascending ids, each once.
  package let registrations: [Registration]
  /// The last candidate that was looked at, to go on behind it; nil when the slice has been looked through.
  package let last: RegistrationID?

  package init(registrations: [Registration], last: RegistrationID?) {
    self.registrations = registrations
    self.last = last
  }
}

/// What one step of clearing out has done.
package struct ExpiryStep: Hashable, Sendable {
  /// How many registrations were removed.
  package let removed: Int
  /// The last registration that was looked at, to go on behind it; nil when the slice has been looked through.
  package let last: RegistrationID?

  package init(removed: Int, last: RegistrationID?) {
    self.removed = removed
    self.last = last
  }
}
