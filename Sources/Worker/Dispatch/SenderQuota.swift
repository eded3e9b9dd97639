import FanfareCore

/// One worker's part in what all workers together may hand to a push service: pushes that it has reserved, a few at
/// first and more as it uses them, so that the store is asked rarely and little is reserved in vain. A pure value.
struct SenderQuota: Sendable {
  /// Pushes that may be made from a moment on, and not much later.
  private struct Reservation: Sendable {
    let size: Int
    let from: UnixTime
    var rest: Int

    func isOver(at now: UnixTime) -> Bool {
      // One that seems to be far ahead was made before the clock was set back.
      rest == 0 || now >= from + PushQuota.lifetime || from > now + PushQuota.horizon
    }
  }

  /// What is shared; nil where there is no limit.
  let quota: PushQuota?
  private var current: Reservation?
  private var next: Reservation?
  /// When it was asked; nil where no answer is awaited.
  private var askedAt: UnixTime?
  /// How far ahead to reserve, where the store takes so long to answer that a reservation for at once would lapse
  /// meanwhile.
  private var lead = Duration.zero
  /// How many pushes were handed over since the last question.
  private var used = 0

  init(_ quota: PushQuota?) {
    self.quota = quota
  }

  /// Whether a push may be handed over now, and so many others, which are being looked up, after it.
  mutating func allowsPush(besides checks: Int = 0, at now: UnixTime) -> Bool {
    guard quota != nil else { return true }
    if current?.isOver(at: now) != false { (current, next) = (next, nil) }
    if current?.isOver(at: now) == true { current = nil }
    return current.map { $0.from <= now && $0.rest > checks } ?? false
  }

  /// Whether nothing may be handed over now, as seen by who does not.
  func isDry(at now: UnixTime) -> Bool {
    func isUsable(_ reservation: Reservation?) -> Bool {
      reservation.map { !$0.isOver(at: now) && $0.from <= now } ?? false
    }
    return quota != nil && !isUsable(current) && !isUsable(next)
  }

  /// A push was handed over.
  mutating func spend() {
    guard quota != nil else { return }
    current?.rest -= 1
    used += 1
  }

  /// How many pushes are to be reserved now; nil for none. `isWaiting` says whether some could not be handed over,
  /// `checks` how many are being looked up, and will be as soon as that is answered.
  mutating func request(isWaiting: Bool, checks: Int, at now: UnixTime) -> (
    quota: PushQuota, pushes: Int, lead: Duration
  )? {
    guard let quota, askedAt == nil, next == nil else { return nil }
    // Ahead of time while it goes on, so that nothing has to wait for the answer.
    let isRunningOut = current.map { $0.rest * 2 <= $0.size || now >= $0.from + PushQuota.lifetime / 2 } ?? false
    guard isWaiting || (isRunningOut && used + checks > 0) else { return nil }
    let least = max(1, quota.largestReservation / 100)
    let size = min(quota.largestReservation, max(least, 2 * used, checks))
    (askedAt, used) = (now, 0)
    return (quota, size, lead)
  }

  /// What was asked for is reserved.
  mutating func grant(_ pushes: Int, from moment: UnixTime, at now: UnixTime) {
    let wait = askedAt.map { now - $0 } ?? .zero
    lead = wait < PushQuota.lifetime / 2 ? .zero : min(wait, .seconds(5))
    askedAt = nil
    next = Reservation(size: pushes, from: moment, rest: pushes)
  }
}

extension PushQuota {
  /// How many pushes it lets through in that time, from all workers together.
  func pushes(in time: Duration) -> Int { perMinute * Int(min(time, .seconds(3600)).milliseconds) / 61_000 }

  /// In what time it lets so many pushes through.
  func time(of pushes: Int) -> Duration { .milliseconds(Int64(pushes) * 61_000 / Int64(perMinute)) }
}

extension WorkerConfiguration {
  /// What all workers share of a platform's service; nil for no limit.
  func quota(of platform: Platform, hub: HubName) -> PushQuota? {
    pushesPerMinute[hub]?[platform].map { PushQuota(hub: hub, platform: platform, perMinute: $0) }
  }
}
