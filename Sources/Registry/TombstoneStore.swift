package import FanfareCore

/// Where it can be read what registrations are gone, and why. Asked by operators only: the hot path never is.
///
/// Every method may be called from any task at any time, and throws `RegistryError`. Tombstones are forgotten after a
/// while.
package protocol TombstoneStore: Sendable {
  /// A page of a hub's tombstones, oldest first, and by id where they are of one moment: those left at `since` or
  /// later, for this cause (nil: any), behind `last` of the page before (nil: the first page), at most `limit`, which
  /// is at least 1. A page that is shorter is the last one.
  func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration]
}

/// A registration that is gone, and its tombstone.
package struct BuriedRegistration: Hashable, Sendable {
  package let registration: RegistrationID
  package let tombstone: Tombstone

  package init(registration: RegistrationID, tombstone: Tombstone) {
    self.registration = registration
    self.tombstone = tombstone
  }
}
