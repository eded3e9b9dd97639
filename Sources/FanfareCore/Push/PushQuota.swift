/// The limit of a push service on one project, shared by all workers.
/// FCM counts messages per minute.
///
/// Workers reserve pushes ahead, each reservation after the previous one. Any 60 seconds stay within the limit: the
/// pushes of a minute are spread over 61 seconds, and a reservation covers at most a quarter of a second and expires
/// soon.
package struct PushQuota: Hashable, Sendable {
  /// The hub whose credentials the pushes use.
  package let hub: HubName
  package let platform: Platform
  /// The most pushes in any 60 seconds, 1 or more.
  package let perMinute: Int

  /// How long a reservation can be used from its moment on.
  package static let lifetime: Duration = .milliseconds(750)
  /// The farthest that reservations, including those for a broadcast's rate, are ahead.
  /// A later one shows that a clock was set back, or was ahead when the reservation was made.
  package static let horizon: Duration = .seconds(600)

  package init(hub: HubName, platform: Platform, perMinute: Int) {
    self.hub = hub
    self.platform = platform
    self.perMinute = max(1, perMinute)
  }

  /// The most pushes of one reservation: those of a quarter of a second.
  package var largestReservation: Int { max(1, perMinute / 244) }

  /// The start and end of a reservation made at `now` after earlier ones that end at `end`, in
  /// microseconds since 1970.
  package func reservation(of pushes: Int, behind end: Int64, at now: UnixTime) -> (start: Int64, end: Int64) {
    let start = Self.start(behind: end, at: now)
    return (start, start.addingClamped(Int64(pushes).multipliedClamped(by: 61_000_000) / Int64(perMinute)))
  }

  /// The end of a reservation of a broadcast's rate, in microseconds since 1970.
  package static func end(of pushes: Int, from start: Int64, perSecond: Int) -> Int64 {
    start.addingClamped(Int64(pushes).multipliedClamped(by: 1_000_000) / Int64(max(1, perSecond)))
  }

  /// The start of a reservation made at `now` after earlier ones that end at `end`, in microseconds
  /// since 1970.
  package static func start(behind end: Int64, at now: UnixTime) -> Int64 {
    let present = now.microseconds
    return end > present.addingClamped(horizon.milliseconds * 1000) ? present : max(end, present)
  }
}

/// Shares the quotas of push services among the workers of a deployment. Throws `RegistryError`.
package protocol PushQuotaStore: Sendable {
  /// Reserves pushes, at most `largestReservation`.
  /// Returns the moment from which they may be made, not before `now`.
  ///
  /// The reservation expires `PushQuota.lifetime` later. An unused reservation is not returned.
  func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime
}
