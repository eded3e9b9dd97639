import FanfareCore
import Synchronization

/// Admits the callers of a hub within a rate that all front ends share.
///
/// A hundredth of each caller's rate is every front end's own: callers who need no more cost the database nothing. Those
/// who do use permits that are reserved in the database, many at a time. While the database is away, a caller has
/// what is reserved and the front end's own share; then the gate throws.
///
/// Reservations of one caller follow one another: requests that come meanwhile wait for the result.
final class RateGate: Sendable {
  /// How long a reservation can be used.
  static let lifetime: Duration = .seconds(10)
  /// The shortest pause between two reservations of a caller whose permits are used up.
  static let pause: Duration = .milliseconds(50)
  /// The pause after an error of the database.
  static let backoff: Duration = .seconds(1)
  private static let smallestSweep = 4096

  /// A caller at this front end.
  fileprivate struct Caller {
    /// The theoretical arrival time of the next send in the front end's own share, in microseconds.
    var ownArrival: Int64 = 0
    /// Reserved permits, and when they expire.
    var credit = 0
    var creditEnd = UnixTime(milliseconds: 0)
    /// The moment of the last reservation. A much earlier one shows that the clock was set back: nothing is blocked.
    var reservedAt = UnixTime(milliseconds: 0)
    /// No reservation of at least `blockedNeed` permits is tried until then.
    var blockedUntil = UnixTime(milliseconds: 0)
    var blockedNeed = 1
    var failedUntil = UnixTime(milliseconds: 0)
    var isReserving = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private struct State {
    /// By the bytes of the caller's name.
    var callers: [[UInt8]: Caller] = [:]
    /// The number of callers from which on idle ones are removed.
    var sweepSize = RateGate.smallestSweep
  }

  fileprivate enum Decision {
    case admitted(Int)
    case refused(until: UnixTime)
    case reserve(RateDemand)
    case wait
    case unavailable
  }

  private let hub: HubName
  private let name: QuotaName
  private let store: any CallerQuotaStore
  private let state = Mutex(State())

  init(_ name: QuotaName, hub: HubName, store: any CallerQuotaStore) {
    self.hub = hub
    self.name = name
    self.store = store
  }

  /// The number of remembered callers, including idle ones until the next sweep.
  var callers: Int { state.withLock { $0.callers.count } }

  /// Takes up to `count` permits of a caller; `asWhole`: all or none.
  ///
  /// Returns the number taken, and the seconds until one more is free (`asWhole`: until all are free). Throws
  /// `RegistryError` if the caller needs a reservation and the database is unavailable.
  func take(
    _ count: Int, by user: String, within limit: RateLimit, at now: UnixTime, asWhole: Bool = false
  ) async throws -> (taken: Int, retryAfter: Int) {
    let key = Array(user.utf8)
    while true {
      switch decide(count, key, limit, at: now, asWhole: asWhole || limit.mayOverdraw) {
      case .admitted(let taken): return (taken, 1)
      case .refused(let moment): return (0, max(1, Int(((moment - now) / .seconds(1)).rounded(.up))))
      case .unavailable: throw RegistryError(.unavailable, "the registry is unavailable")
      case .wait: await waitForReservation(key)
      case .reserve(let demand): try await reserve(demand, key, user, limit, at: now)
      }
    }
  }

  /// Returns permits of what was not accepted.
  /// Permits that have become free since they were taken, `elapsed` ago, are not returned.
  func refund(_ count: Int, to user: String, within limit: RateLimit, after elapsed: Duration, at now: UnixTime) {
    let unused = count - Int((elapsed / .microseconds(1) / limit.interval).rounded(.up))
    guard unused > 0 else { return }
    state.withLock { state in
      let key = Array(user.utf8)
      guard state.callers[key] != nil else { return }
      state.callers[key]?.expireCredit(at: now)
      state.callers[key]?.credit += unused
      state.callers[key]?.creditEnd = now + Self.lifetime
    }
  }

  private func decide(
    _ count: Int, _ key: [UInt8], _ limit: RateLimit, at now: UnixTime, asWhole: Bool
  ) -> Decision {
    state.withLock { state in
      sweep(&state, at: now)
      return state.callers[key, default: Caller()].decide(count, limit, at: now, asWhole: asWhole)
    }
  }

  private func waitForReservation(_ key: [UInt8]) async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        guard state.callers[key]?.isReserving == true else { return true }
        state.callers[key]?.waiters.append(continuation)
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  private func reserve(
    _ demand: RateDemand, _ key: [UInt8], _ user: String, _ limit: RateLimit, at now: UnixTime
  ) async throws {
    let result: Result<RateGrant, any Error>
    do {
      result = .success(
        try await store.reserve(demand, of: CallerRate(hub: hub, user: user, name: name, limit: limit), at: now))
    } catch { result = .failure(error) }
    let waiters = state.withLock { state in
      state.callers[key, default: Caller()].finish(demand, result, at: now)
      defer { state.callers[key]?.waiters = [] }
      return state.callers[key]?.waiters ?? []
    }
    for waiter in waiters { waiter.resume() }
    _ = try result.get()
  }

  /// Removes callers about whom nothing need be known.
  private func sweep(_ state: inout State, at now: UnixTime) {
    guard state.callers.count > state.sweepSize else { return }
    state.callers = state.callers.filter { !$0.value.isIdle(at: now) }
    state.sweepSize = max(Self.smallestSweep, 2 * state.callers.count)
  }
}

extension RateGate.Caller {
  mutating func expireCredit(at now: UnixTime) {
    if now >= creditEnd { credit = 0 }
  }

  func isIdle(at now: UnixTime) -> Bool {
    !isReserving && waiters.isEmpty && (credit == 0 || now >= creditEnd) && ownArrival <= now.milliseconds * 1000
      && blockedUntil <= now && failedUntil <= now
  }

  mutating func decide(_ count: Int, _ limit: RateLimit, at now: UnixTime, asWhole: Bool) -> RateGate.Decision {
    expireCredit(at: now)
    let own = ownRoom(limit, at: now)
    let available = credit + own.room
    if available >= count {
      use(count, own, at: now)
      return .admitted(count)
    }
    let need = asWhole ? count - available : max(1, 1 - available)
    let isKnown = reservedAt - now < .seconds(60)
    let isBlocked = isKnown && now < blockedUntil && need >= blockedNeed
    let hasFailed = isKnown && now < failedUntil
    if isBlocked || hasFailed {
      guard asWhole || available == 0 else {
        use(available, own, at: now)
        return .admitted(available)
      }
      return hasFailed ? .unavailable : .refused(until: blockedUntil)
    }
    guard !isReserving else { return .wait }
    isReserving = true
    return .reserve(RateDemand(atLeast: need, atMost: max(count - available, limit.chunk)))
  }

  mutating func finish(_ demand: RateDemand, _ result: Result<RateGrant, any Error>, at now: UnixTime) {
    isReserving = false
    reservedAt = now
    switch result {
    case .failure: failedUntil = now + RateGate.backoff
    case .success(let grant):
      expireCredit(at: now)
      credit += grant.permits
      creditEnd = now + RateGate.lifetime
      guard grant.permits < demand.most else { return }
      // What is free was granted: a further statement for each permit that becomes free would be one for each send.
      blockedUntil = max(grant.nextAt, now + RateGate.pause)
      blockedNeed = grant.permits > 0 ? 1 : demand.least
    }
  }

  /// The free permits of the front end's own share: GCRA at a hundredth of the rate.
  private func ownRoom(_ limit: RateLimit, at now: UnixTime) -> (room: Int, ahead: Double, interval: Double) {
    let (interval, burst) = (limit.interval * 100, limit.burst / 100)
    let window = Double(burst) * interval
    let ahead = RateLimit.ahead(ownArrival, of: now.milliseconds * 1000, atMost: window)
    return (Int(((window - ahead) / interval + 1e-9).rounded(.down)), ahead, interval)
  }

  /// Uses reserved permits first: they expire.
  private mutating func use(_ count: Int, _ own: (room: Int, ahead: Double, interval: Double), at now: UnixTime) {
    let reserved = min(count, credit)
    credit -= reserved
    guard count > reserved else { return }
    ownArrival =
      now.milliseconds * 1000 + Int64((own.ahead + Double(count - reserved) * own.interval).rounded(.up))
  }
}

extension RateLimit {
  /// The permits of one reservation: those of a second, or a thousandth of the burst if that is more, but no more than
  /// a sixteenth of the burst, so that many front ends can share it.
  fileprivate var chunk: Int { max(1, min(max(Int(perSecond), burst / 1000), burst / 16)) }
}
