import FanfareCore

/// A caller of a `RateGate` at this front end.
///
/// Permits come from two places and are used in this order: the share that is reserved in the database, and the front
/// end's own hundredth of the rate.
struct RateCaller {
  /// The answer to a demand.
  enum Decision {
    /// Fewer than asked for, if the database is unavailable or no more are free.
    case admitted(Int, isUnavailable: Bool = false)
    case refused(until: UnixTime)
    case reserve(RateDemand)
    case wait
    case unavailable
  }

  /// The permits left of those reserved in the database, and when they are forgotten.
  private var share = (permits: 0, end: UnixTime(milliseconds: 0))
  /// The theoretical arrival time of the next send in the front end's own share, in microseconds.
  private(set) var ownArrival: Int64 = 0
  /// The moment of the last reservation. If it lies a minute in the future, the clock was set back since, and the
  /// moments below, which it gave, say nothing any more.
  private var reservedAt = UnixTime(milliseconds: 0)
  /// When `blockedNeed` permits will be free, as far as the database said.
  private var blockedUntil = UnixTime(milliseconds: 0)
  private var blockedNeed = 1
  private var failedUntil = UnixTime(milliseconds: 0)
  private(set) var isReserving = false
  /// The requests that wait for the reservation.
  var waiters: [CheckedContinuation<Void, Never>] = []

  /// Whether requests need the caller.
  var isBusy: Bool { isReserving || !waiters.isEmpty }

  /// Whether the caller can be forgotten without a loss.
  func isIdle(at now: UnixTime) -> Bool {
    !isBusy && reserved(at: now) == 0 && ownArrival <= now.microseconds && blockedUntil <= now && failedUntil <= now
  }

  /// Takes `count` permits, `asWhole` all or none, or says what must be done before. A caller that has no time for a
  /// reservation is told to wait for one.
  mutating func decide(
    _ count: Int, _ limit: RateLimit, at now: UnixTime, asWhole: Bool, mayReserve: Bool = true
  ) -> Decision {
    let available = permitsHere(limit, at: now)
    let isClockSteady = reservedAt - now < .seconds(60)
    // An overdraft has to come back first. Meanwhile the front end's own share must admit nothing, because one of its
    // permits would admit a demand of any size.
    if limit.mayOverdraw, isClockSteady, now < blockedUntil, reserved(at: now) == 0 {
      return .refused(until: blockedUntil)
    }
    if available >= count {
      use(count, limit, at: now)
      return .admitted(count)
    }
    // Without `asWhole` one permit is enough, after a negative number of them here is made up for.
    let need = asWhole ? count - available : max(1, 1 - available)
    let isBlocked = isClockSteady && now < blockedUntil && need >= blockedNeed
    let hasFailed = isClockSteady && now < failedUntil
    if isBlocked || hasFailed {
      guard !asWhole, available != 0 else { return hasFailed ? .unavailable : .refused(until: blockedUntil) }
      use(available, limit, at: now)
      return .admitted(available, isUnavailable: hasFailed)
    }
    guard mayReserve, !isReserving else { return .wait }
    isReserving = true
    return .reserve(RateDemand(atLeast: need, atMost: max(count - available, limit.chunk)))
  }

  /// Takes in the result of a reservation.
  mutating func finish(
    _ demand: RateDemand, _ result: Result<RateGrant, any Error>, _ limit: RateLimit, at now: UnixTime
  ) {
    isReserving = false
    reservedAt = now
    switch result {
    case .failure: failedUntil = now + RateGate.backoff
    case .success(let grant):
      if grant.permits > 0 {
        share = (reserved(at: now).addingClamped(grant.permits), now + limit.shareLifetime)
      }
      guard grant.permits < demand.most else { return }
      // All free permits were granted. A statement for each further one would be a statement for each send.
      blockedUntil = max(grant.nextAt, now + RateGate.pause)
      blockedNeed = grant.permits > 0 ? 1 : demand.least
    }
  }

  /// Takes in the charge of permits that were used already.
  mutating func owe(_ grant: RateGrant, at now: UnixTime) {
    reservedAt = now
    guard grant.nextAt > now else { return }
    (blockedUntil, blockedNeed) = (grant.nextAt, 1)
    // Nothing that was reserved before is left to use.
    share.permits = 0
  }

  /// Takes all permits that are here.
  mutating func exhaust(_ limit: RateLimit, at now: UnixTime) { use(permitsHere(limit, at: now), limit, at: now) }

  private func reserved(at now: UnixTime) -> Int { now < share.end ? share.permits : 0 }

  /// The permits that need no reservation.
  private func permitsHere(_ limit: RateLimit, at now: UnixTime) -> Int {
    reserved(at: now).addingClamped(ownRoom(limit, at: now).room)
  }

  /// Uses `count` of the permits that are here.
  private mutating func use(_ count: Int, _ limit: RateLimit, at now: UnixTime) {
    let reserved = min(count, reserved(at: now))
    share.permits -= reserved
    let rest = count - reserved
    guard rest > 0 else { return }
    let own = ownRoom(limit, at: now)
    ownArrival = now.microseconds.addingClamped(
      Int64(clamping: (own.ahead + Double(rest) * own.interval).rounded(.up)))
  }

  /// The free permits of the front end's own share: GCRA at a hundredth of the rate.
  private func ownRoom(_ limit: RateLimit, at now: UnixTime) -> (room: Int, ahead: Double, interval: Double) {
    let (interval, burst) = (limit.interval * 100, limit.burst / 100)
    let window = Double(burst) * interval
    let ahead = RateLimit.ahead(ownArrival, of: now.microseconds, atMost: window)
    return (Int(clamping: ((window - ahead) / interval + 1e-9).rounded(.down)), ahead, interval)
  }
}

extension RateLimit {
  /// The permits of one reservation: those of a second, or a thousandth of the burst if that is more, but no more than
  /// a sixteenth of the burst, so that many front ends can share it.
  fileprivate var chunk: Int { max(1, min(max(Int(clamping: perSecond), burst / 1000), burst / 16)) }

  /// How long a share can be used: as long as a caller at a hundredth of the rate needs it.
  ///
  /// A front end reserves only for callers above that. So what a share loses when it ends is never more than a
  /// hundredth of the rate, and nothing need be returned.
  /// At least a second: a shorter one would be forgotten before it could be used.
  fileprivate var shareLifetime: Duration {
    max(.seconds(1), .microseconds(Int64(clamping: 100 * Double(chunk) * interval)))
  }
}
