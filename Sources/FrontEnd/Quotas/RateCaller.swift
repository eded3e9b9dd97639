import FanfareCore

/// A caller of a `RateGate` at this front end.
///
/// Permits come from three places and are used in this order: reserved ones, unused ones that wait to be returned to
/// the database, and the front end's own share.
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

  /// Permits that are reserved in the database.
  struct Credit {
    fileprivate(set) var permits = 0
    /// When they are no longer used, but returned.
    fileprivate var end = UnixTime(milliseconds: 0)
    /// The end of the oldest reservation among them, in microseconds. Permits before the present are free again.
    fileprivate var reservedUntil: Int64 = 0
    fileprivate var limit: RateLimit?
  }

  /// A part of the reservations that waits to be returned. It shrinks with the time, like the reservations themselves.
  private struct Unused {
    var span = 0.0
    var moment: Int64 = 0

    func left(at present: Int64) -> Double { max(0, span - Double(max(0, present.subtractingClamped(moment)))) }

    /// Adds at most the time from the present to `end`, where the reservations end: earlier parts have run out.
    mutating func add(_ more: Double, at present: Int64, until end: Int64) {
      let most = Double(max(0, end.subtractingClamped(present)))
      (span, moment) = (min(max(0, left(at: present) + more), most), present)
    }
  }

  private(set) var credit = Credit()
  private var unused = Unused()
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
    !isBusy && credit.permits == 0 && unused.left(at: now.microseconds) == 0
      && ownArrival <= now.microseconds && blockedUntil <= now && failedUntil <= now
  }

  /// Takes `count` permits, `asWhole` all or none, or says what must be done before. A caller that has no time for a
  /// reservation is told to wait for one.
  mutating func decide(
    _ count: Int, _ limit: RateLimit, at now: UnixTime, asWhole: Bool, mayReserve: Bool = true
  ) -> Decision {
    let here = permitsHere(limit, at: now)
    let available = here.count
    func use(_ count: Int, isUnavailable: Bool = false) -> Decision {
      self.use(count, here, limit, at: now)
      return .admitted(count, isUnavailable: isUnavailable)
    }
    if available >= count { return use(count) }
    // Without `asWhole` one permit is enough, after a negative number of them here is made up for.
    let need = asWhole ? count - available : max(1, 1 - available)
    let isClockSteady = reservedAt - now < .seconds(60)
    // Not until `blockedUntil`: another front end may return permits before that.
    let isBlocked = isClockSteady && now < min(blockedUntil, reservedAt + RateGate.lifetime) && need >= blockedNeed
    let hasFailed = isClockSteady && now < failedUntil
    if isBlocked || hasFailed {
      guard asWhole || available == 0 else { return use(available, isUnavailable: hasFailed) }
      return hasFailed ? .unavailable : .refused(until: blockedUntil)
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
        expireCredit(at: now)
        let until = grant.reservedUntil
        credit = Credit(
          permits: credit.permits.addingClamped(grant.permits), end: now + RateGate.lifetime,
          reservedUntil: credit.permits > 0 ? min(credit.reservedUntil, until) : until, limit: limit)
      }
      guard grant.permits < demand.most else { return }
      // All free permits were granted. A statement for each further one would be a statement for each send.
      blockedUntil = max(grant.nextAt, now + RateGate.pause)
      blockedNeed = grant.permits > 0 ? 1 : demand.least
    }
  }

  /// Takes back permits that were not needed: `span` microseconds of the rate, first into the front end's own share.
  mutating func refund(_ span: Double, _ limit: RateLimit, at now: UnixTime) {
    let own = ownRoom(limit, at: now)
    let restored = min(span / limit.interval, own.ahead / own.interval)
    ownArrival = now.microseconds.addingClamped(Int64(clamping: (own.ahead - restored * own.interval).rounded(.up)))
    unused.add(span - restored * limit.interval, at: now.microseconds, until: credit.reservedUntil)
  }

  /// Takes the expired or `all` reserved permits and those refunded, in microseconds of the rate.
  mutating func takeUnused(all: Bool, at now: UnixTime) -> Int64 {
    expireCredit(at: all ? max(now, credit.end) : now, present: now)
    defer { unused = Unused() }
    return Int64(clamping: unused.left(at: now.microseconds))
  }

  private mutating func expireCredit(at moment: UnixTime, present now: UnixTime? = nil) {
    guard moment >= credit.end, credit.permits > 0, let limit = credit.limit else { return }
    let present = (now ?? moment).microseconds
    let span = Double(min(credit.permits, limit.burst)) * limit.interval
    unused.add(span, at: present, until: credit.reservedUntil)
    credit.permits = 0
  }

  /// The permits that need no reservation.
  private struct Here {
    let reserved: Int
    let unused: Int
    let own: (room: Int, ahead: Double, interval: Double)

    var count: Int { reserved.addingClamped(unused).addingClamped(own.room) }
  }

  private mutating func permitsHere(_ limit: RateLimit, at now: UnixTime) -> Here {
    expireCredit(at: now)
    let unused = Int(clamping: unused.left(at: now.microseconds) / limit.interval + 1e-9)
    return Here(reserved: credit.permits, unused: unused, own: ownRoom(limit, at: now))
  }

  /// Uses `count` of the permits that are here.
  private mutating func use(_ count: Int, _ here: Here, _ limit: RateLimit, at now: UnixTime) {
    let reserved = min(count, here.reserved)
    credit.permits -= reserved
    let returned = min(count - reserved, here.unused)
    if returned > 0 {
      unused.add(-Double(returned) * limit.interval, at: now.microseconds, until: credit.reservedUntil)
    }
    let rest = count - reserved - returned
    guard rest > 0 else { return }
    ownArrival = now.microseconds.addingClamped(
      Int64(clamping: (here.own.ahead + Double(rest) * here.own.interval).rounded(.up)))
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
}
