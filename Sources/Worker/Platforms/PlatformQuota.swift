package import FanfareCore

/// This worker's share of a platform quota that all workers share.
///
/// It reserves pushes in the store: few at first and more as it uses them, so that the store is asked rarely and few
/// reservations lapse. It uses one reservation while it asks for the next one.
package struct PlatformQuota: Sendable {
  /// Pushes that may be made from a moment on, for `PushQuota.lifetime`.
  private struct Reservation: Sendable {
    let size: Int
    let from: UnixTime
    var rest: Int

    func isOver(at now: UnixTime) -> Bool {
      // A reservation far ahead was made before the clock was set back.
      rest == 0 || now >= from + PushQuota.lifetime || from > now + PushQuota.horizon
    }
  }

  /// The shared quota; nil: there is no limit.
  let quota: PushQuota?
  private var current: Reservation?
  private var next: Reservation?
  /// When the open question was asked; nil: none is open.
  private var askedAt: UnixTime?
  /// How far ahead to reserve if the store answers so slowly that a reservation for now would lapse
  /// meanwhile.
  private var lead = Duration.zero
  /// How far ahead the last reservation began when it was granted: more than its life if many workers share the quota.
  private var ahead = Duration.zero
  /// Pushes handed over since the last request.
  private var used = 0

  package init(_ quota: PushQuota?) {
    self.quota = quota
  }

  /// Whether a push may be handed over now, in addition to `checks` others that are being looked
  /// up.
  package mutating func allowsPush(besides checks: Int = 0, at now: UnixTime) -> Bool {
    guard quota != nil else { return true }
    if current?.isOver(at: now) != false { (current, next) = (next, nil) }
    if current?.isOver(at: now) == true { current = nil }
    return current.map { $0.from <= now && $0.rest > checks } ?? false
  }

  /// Whether no push may be handed over now. Unlike `allowsPush`, changes nothing.
  func isDry(at now: UnixTime) -> Bool {
    func isUsable(_ reservation: Reservation?) -> Bool {
      reservation.map { !$0.isOver(at: now) && $0.from <= now } ?? false
    }
    return quota != nil && !isUsable(current) && !isUsable(next)
  }

  /// Counts a push that is handed over.
  package mutating func spend() {
    guard quota != nil else { return }
    current?.rest -= 1
    used += 1
  }

  /// The reservation to ask for now; nil: none. `isWaiting`: some pushes could not be handed over.
  /// `checks`: the number of pushes that are being looked up and will be handed over after that.
  package mutating func request(isWaiting: Bool, checks: Int, at now: UnixTime) -> (
    quota: PushQuota, pushes: Int, lead: Duration
  )? {
    guard let quota, askedAt == nil, next == nil else { return nil }
    // Ahead of time while pushes continue, so that none has to wait for the answer.
    let isRunningOut = current.map { $0.rest * 2 <= $0.size || now >= $0.from + PushQuota.lifetime / 2 } ?? false
    guard isWaiting || (isRunningOut && used + checks > 0) else { return nil }
    let least = max(1, quota.largestReservation / 100)
    // A reservation lapses. Where many workers share the quota, each waits for longer than that for the next one: twice
    // what it used meanwhile would be more than it can use, and the rest would be lost to all.
    let life = PushQuota.lifetime.milliseconds
    let expected = Int(Int64(2 * used).multipliedClamped(by: life) / max(life, ahead.milliseconds))
    let size = min(quota.largestReservation, max(least, expected, checks))
    (askedAt, used) = (now, 0)
    return (quota, size, lead)
  }

  /// The store has reserved `pushes`, from that moment on.
  package mutating func grant(_ pushes: Int, from moment: UnixTime, at now: UnixTime) {
    let wait = askedAt.map { now - $0 } ?? .zero
    lead = wait < PushQuota.lifetime / 2 ? .zero : min(wait, .seconds(5))
    askedAt = nil
    ahead = moment - now
    next = Reservation(size: pushes, from: moment, rest: pushes)
  }
}

extension PushQuota {
  /// How many pushes of all workers together it allows in that time.
  func pushes(in time: Duration) -> Int { perMinute * Int(min(time, .seconds(3600)).milliseconds) / 61_000 }

  /// The most pushes that wait for it in the memory of one worker: those of the longest rest, and no more than half of
  /// the room, because the other platforms need the rest.
  package func mostWaiting(_ configuration: WorkerConfiguration) -> Int {
    max(
      PlatformLane.broadcastPeriod,
      min(pushes(in: configuration.times.longestRest), configuration.limits.maximumRecords / 2))
  }

  /// The time in which it lets that many pushes through.
  func time(of pushes: Int) -> Duration { .milliseconds(Int64(pushes) * 61_000 / Int64(perMinute)) }
}

extension WorkerConfiguration {
  /// The quota of a platform that all workers share; nil: there is no limit.
  func quota(of platform: Platform, hub: HubName) -> PushQuota? {
    pushesPerMinute[hub]?[platform].map { PushQuota(hub: hub, platform: platform, perMinute: $0) }
  }
}
