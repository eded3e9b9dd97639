/// How much a push service takes from one project, whichever worker it comes from: FCM counts messages per minute.
///
/// Workers reserve pushes ahead, each reservation behind the one before. They are paced so that in no 60 seconds more
/// than a minute's worth is made: a minute's worth is spread over 61 seconds, a reservation is for at most a quarter of
/// a second, and lapses soon.
package struct PushQuota: Hashable, Sendable {
  /// The hub whose credentials the pushes are made with.
  package let hub: HubName
  package let platform: Platform
  /// The most pushes in any 60 seconds, 1 or more.
  package let perMinute: Int

  /// How long a reservation may be used from its moment on.
  package static let lifetime: Duration = .milliseconds(750)
  /// Reservations, of a broadcast's rate too, are never so far ahead: if they seem to be, a clock was set back, or was
  /// ahead when they were made.
  package static let horizon: Duration = .seconds(600)

  package init(hub: HubName, platform: Platform, perMinute: Int) {
    self.hub = hub
    self.platform = platform
    self.perMinute = max(1, perMinute)
  }

  /// The most pushes of one reservation: a quarter of a second's.
  package var largestReservation: Int { max(1, perMinute / 244) }

  /// The moment of a reservation made now, behind those that end at `end`, and where it ends itself; all in
  /// microseconds since 1970.
  package func reservation(of pushes: Int, behind end: Int64, at now: UnixTime) -> (start: Int64, end: Int64) {
    let start = Self.start(behind: end, at: now)
    return (start, start + Int64(pushes) * 61_000_000 / Int64(perMinute))
  }

  /// The moment of a reservation made now, behind those that end at `end`, in microseconds since 1970.
  package static func start(behind end: Int64, at now: UnixTime) -> Int64 {
    let present = now.milliseconds * 1000
    return end > present + Int64(horizon / .microseconds(1)) ? present : max(end, present)
  }
}

/// Where the workers of a deployment share what push services take. Called by workers; throws `RegistryError`.
package protocol PushQuotaStore: Sendable {
  /// Reserves so many pushes, at most `largestReservation`. Returns the moment from which on they may be made, not
  /// before `now`; they lapse `PushQuota.lifetime` later. What was reserved and not used is not given back.
  func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime
}
