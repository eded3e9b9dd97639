package import FanfareCore

/// The limits on registrations that a registry keeps.
package struct RegistrationLimits: Hashable, Sendable {
  /// The most devices of one user in one hub; 0: no limit. A registration beyond it removes the device whose app was
  /// not seen for the longest time, and quarantines it.
  package var maximumDevicesPerUser: Int
  /// How long a registration can come back whose handle a push service called dead, or whose user had too many devices.
  /// Zero: it is removed at once.
  package var quarantine: Duration

  /// The most devices of a user that one registration removes.
  static let surplusBatch = 100

  /// Without arguments there are no limits.
  package init(maximumDevicesPerUser: Int = 0, quarantine: Duration = .zero) {
    (self.maximumDevicesPerUser, self.quarantine) = (maximumDevicesPerUser, quarantine)
  }
}

/// The registrations whose handles a push service called dead or whose users had too many devices, for operators; not
/// on the hot path.
///
/// A quarantined registration gets no pushes. Its app's next registration brings it back with the same id, and so does
/// `restore`; after the quarantine only its tombstone is left. Methods may be called from any task and throw
/// `RegistryError`.
package protocol QuarantineStore: Sendable {
  /// Brings back the registrations of a page of the selection.
  ///
  /// With `isTrial` nothing is changed, and the result says what would be, for each page on its own.
  func restore(_ page: QuarantinePage, isTrial: Bool, at now: UnixTime) async throws -> RestoreStep
}

/// A page of quarantined registrations, by the time of their removal and then by id.
package struct QuarantinePage: Hashable, Sendable {
  package let hub: HubName
  /// Nil: any.
  package let platform: Platform?
  /// When they were dropped.
  package let dropped: Range<UnixTime>
  /// The last registration of the page before; nil for the first page.
  package var after: Position?
  /// The most registrations that are examined; at least 1.
  package let limit: Int

  package struct Position: Hashable, Sendable {
    package let droppedAt: UnixTime
    package let registration: RegistrationID
  }

  package init(hub: HubName, platform: Platform?, dropped: Range<UnixTime>, after: Position? = nil, limit: Int = 100) {
    self.hub = hub
    self.platform = platform
    self.dropped = dropped
    self.after = after
    self.limit = max(1, limit)
  }
}

/// The result of a page.
package struct RestoreStep: Hashable, Sendable {
  package let restored: Int
  /// Registrations whose id, handle or installation belongs to another one now.
  package let taken: Int
  /// Registrations whose users have as many devices as they may have.
  package let surplus: Int
  /// The end of the page; nil when there is no further one.
  package let last: QuarantinePage.Position?

  package init(restored: Int, taken: Int, surplus: Int, last: QuarantinePage.Position?) {
    self.restored = restored
    self.taken = taken
    self.surplus = surplus
    self.last = last
  }
}
