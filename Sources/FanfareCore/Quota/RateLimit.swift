/// The name of a quota of a caller.
/// The raw value is in answers, metrics and databases: never change one.
package enum QuotaName: String, CaseIterable, Sendable {
  /// Sends per second.
  case sends
  /// Devices addressed by broadcasts, per day.
  case devices
  /// Changes of registrations, per day.
  case registrations
  /// Stored bytes of secure payloads, scheduled sends and idempotency claims, per day.
  case storedBytes
  /// Large broadcasts that have not ended.
  case openBroadcasts
  /// Scheduled sends that wait.
  case scheduledSends
  /// The bytes of scheduled sends that wait or were cancelled.
  case scheduledBytes
  /// Failed logins under a user's name, at addresses where the user did not log in lately, per day.
  case failedLogins
  /// Requests that read stores, per second.
  case reads

  /// Whether it limits a rate; the others limit the number of objects that exist.
  package var isRate: Bool {
    switch self {
    case .sends, .devices, .registrations, .storedBytes, .failedLogins, .reads: true
    case .openBroadcasts, .scheduledSends, .scheduledBytes: false
    }
  }
}

/// A limit on a rate (GCRA: one theoretical arrival time per caller), shared by all front ends.
package struct RateLimit: Hashable, Sendable {
  /// Permits per second in the long run; positive.
  package let perSecond: Double
  /// Permits at once after a pause; at least 1.
  package let burst: Int
  /// Whether a demand larger than the free permits is granted, as long as any is free.
  /// Its excess, at most one burst, must be free again before the next permit.
  package let mayOverdraw: Bool

  package init(perSecond: Double, burst: Int, mayOverdraw: Bool = false) {
    self.perSecond = max(1e-6, perSecond)
    self.burst = max(1, burst)
    self.mayOverdraw = mayOverdraw
  }

  /// A day's permits, at once or spread over the day.
  package init(perDay: Int, mayOverdraw: Bool = false) {
    self.init(perSecond: Double(perDay) / 86_400, burst: perDay, mayOverdraw: mayOverdraw)
  }

  /// The time between two permits, in microseconds.
  package var interval: Double { 1_000_000 / perSecond }

  /// The time of a whole burst, in microseconds.
  package var window: Double { Double(burst) * interval }

  /// Grants a demand after earlier ones that end at `end`, in microseconds since 1970.
  package func grant(_ demand: RateDemand, behind end: Int64, at now: UnixTime) -> RateGrant {
    let present = now.microseconds
    let farthest = mayOverdraw ? 2 * window : window
    let ahead = Self.ahead(end, of: present, atMost: farthest)
    let room = Int(clamping: ((window - ahead) / interval + 1e-9).rounded(.down))
    let least = mayOverdraw ? 1 : demand.least
    let granted: Int
    if demand.isOwed {
      granted = demand.most
    } else if room < least {
      granted = 0
    } else {
      granted = max(min(demand.most, room), mayOverdraw ? demand.least : 0)
    }
    let then = min(ahead + Double(granted) * interval, farthest)
    // When the least, or after a grant one more permit, is free.
    let wanted = Double(granted > 0 ? 1 : least) * interval
    let wait = max(0, then + wanted - window)
    return RateGrant(
      permits: granted, nextAt: now + .milliseconds(Int64(clamping: (wait / 1000).rounded(.up))),
      reservedUntil: granted > 0 ? present.addingClamped(Int64(clamping: then.rounded(.up))) : end)
  }

  /// How far a theoretical arrival time is ahead, in microseconds.
  ///
  /// At most `farthest`; other front ends' clocks may be ahead of this one. Where it is farther ahead than clocks
  /// differ, a clock was set back, and nothing counts.
  package static func ahead(_ end: Int64, of present: Int64, atMost farthest: Double) -> Double {
    let ahead = max(0, Double(end) - Double(present))
    return ahead > farthest + 60_000_000 ? 0 : min(ahead, farthest)
  }

  /// How many permits are in use at a moment.
  package func used(until end: Int64, at now: UnixTime) -> Int {
    Int(clamping: (max(0, Double(end) - Double(now.microseconds)) / interval).rounded(.up))
  }
}

/// A demand for permits of a rate.
package struct RateDemand: Hashable, Sendable {
  /// Fewer are not granted.
  package let least: Int
  package let most: Int
  /// Whether they were used already: they are granted though they may not be free.
  package let isOwed: Bool

  /// Permits that were used already.
  package init(owing count: Int) {
    (least, most, isOwed) = (max(1, count), max(1, count), true)
  }

  package init(atLeast least: Int, atMost most: Int) {
    self.least = max(1, least)
    self.most = max(self.least, most)
    isOwed = false
  }
}

/// The answer to a demand.
package struct RateGrant: Hashable, Sendable {
  /// 0 if the least was not free.
  package let permits: Int
  /// When the least will be free; after a grant, when one more will be.
  package let nextAt: UnixTime
  /// The end of all reservations of the rate, in microseconds since 1970.
  package let reservedUntil: Int64

  package init(permits: Int, nextAt: UnixTime, reservedUntil: Int64) {
    self.permits = permits
    self.nextAt = nextAt
    self.reservedUntil = reservedUntil
  }
}
