package import FanfareCore

/// The tombstones of removed registrations, for operators; not on the hot path.
///
/// Methods may be called from any task and throw `RegistryError`. Tombstones expire.
package protocol TombstoneStore: Sendable {
  /// A page of a hub's tombstones from `since` on, by time and then by id.
  ///
  /// `cause` nil means any; `last` is the last tombstone of the page before, nil for the first page. A page with fewer
  /// than `limit` tombstones, which is at least 1, is the last.
  func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration]
}

/// A removed registration and its tombstone.
package struct BuriedRegistration: Hashable, Sendable {
  package let registration: RegistrationID
  package let tombstone: Tombstone

  package init(registration: RegistrationID, tombstone: Tombstone) {
    self.registration = registration
    self.tombstone = tombstone
  }
}

/// The remains of a removed registration.
package struct Tombstone: Hashable, Sendable {
  /// Why a registration was removed.
  package enum Cause: String, CaseIterable, Sendable {
    /// Its user removed it. Of a part of an installation that was removed as a whole, the detail is the id of the
    /// installation's own registration.
    case removed
    /// Another registration has taken its handle; the detail is the id of that registration.
    case merged
    /// The push service reported its handle dead; the detail is the reason given.
    case dead
    /// Its app was not seen for too long, or did not renew it before its end.
    case expired
    /// Its user had too many; the detail is the id of the registration that took its place.
    case surplus
  }

  package let cause: Cause
  /// More about the cause, never a handle; may be empty.
  package let detail: String
  /// When the registration was removed.
  package let at: UnixTime

  package init(cause: Cause, detail: String, at: UnixTime) {
    self.cause = cause
    self.detail = detail
    self.at = at
  }

  /// Whether it is that of a part of an installation that was removed as a whole.
  var isOfPart: Bool { cause == .removed && !detail.isEmpty }
}
