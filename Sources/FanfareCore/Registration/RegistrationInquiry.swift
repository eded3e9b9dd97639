/// Answers operators' questions about registrations; not on the hot path.
///
/// Called by the front end. Durability and errors are as for `DeviceRegistry`.
package protocol RegistrationInquiry: Sendable {
  /// The number of registrations with the tag. Counts no further than `limit`, which bounds its cost.
  func count(tag: String, hub: HubName, limit: Int) async throws -> Int

  /// The registrations of a user that were removed, the latest first, at most `limit`, 1 or more.
  /// They are known as long as their tombstones; those removed by an earlier release may be missing.
  func removed(
    from user: String, hub: HubName, before last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration]

  /// Whether a registration was removed because the installation was that it is a part of. It is known as long as its
  /// tombstone.
  func removedTogether(_ id: RegistrationID, hub: HubName) async throws -> Bool

  /// The registrations of a hub whose handles a push service reported dead, the earliest first, behind `last`, at most
  /// `limit`, 1 or more. They are known as long as their tombstones.
  func dead(
    hub: HubName, after last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration]
}

/// A registration that was removed.
package struct RemovedRegistration: Hashable, Sendable {
  /// The order of removal.
  package struct Position: Hashable, Sendable {
    package let at: UnixTime
    package let registration: RegistrationID

    package init(at: UnixTime, registration: RegistrationID) {
      self.at = at
      self.registration = registration
    }
  }

  /// The part of a registration that is kept in quarantine.
  package struct Quarantine: Hashable, Sendable {
    package let platform: Platform
    package let handle: String
    /// When it is dropped for good.
    package let endsAt: UnixTime

    package init(platform: Platform, handle: String, endsAt: UnixTime) {
      self.platform = platform
      self.handle = handle
      self.endsAt = endsAt
    }
  }

  package let registration: RegistrationID
  /// A word for the cause.
  package let cause: String
  /// More about the cause, never a handle; may be empty.
  package let detail: String
  /// When it was removed.
  package let at: UnixTime
  /// nil if it cannot be restored.
  package let quarantine: Quarantine?

  package init(registration: RegistrationID, cause: String, detail: String, at: UnixTime, quarantine: Quarantine?) {
    self.registration = registration
    self.cause = cause
    self.detail = detail
    self.at = at
    self.quarantine = quarantine
  }

  package var position: Position { Position(at: at, registration: registration) }
}
