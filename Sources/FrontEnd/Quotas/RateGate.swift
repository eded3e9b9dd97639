import FanfareCore
import Synchronization

/// Admits the callers of a hub within a rate that all front ends share.
///
/// Every front end has a hundredth of each caller's rate for itself: callers who need no more cost the database
/// nothing. The others use permits that are reserved in the database, many at a time. While the database is away, a
/// caller has the reserved permits and the front end's own share; then the gate throws.
///
/// A share that was not used up is forgotten after a while, and so is the one of a process that dies. At the limit a
/// caller can therefore have one share more or less for each front end.
///
/// Reservations of one caller follow one another: requests that arrive in the meantime wait for the result.
///
/// Callers without a state that matters are forgotten. Where anybody can invent names, a capacity bounds the others:
/// the half that used least is forgotten, and begins again.
final class RateGate: Sendable {
  /// The shortest pause between two reservations of a caller whose permits are used up.
  static let pause: Duration = .milliseconds(50)
  /// The pause after an error of the database.
  static let backoff: Duration = .seconds(1)
  private static let smallestSweep = 4096

  private struct State {
    /// By the bytes of the caller's name.
    var callers: [[UInt8]: RateCaller] = [:]
    /// The number of callers from which on idle ones are removed.
    var sweepSize = RateGate.smallestSweep
  }

  private let hub: HubName
  private let name: QuotaName
  private let store: any CallerQuotaStore
  private let capacity: Int
  private let state = Mutex(State())

  /// Remembers at most `capacity` callers.
  init(_ name: QuotaName, hub: HubName, store: any CallerQuotaStore, capacity: Int = .max) {
    self.hub = hub
    self.name = name
    self.store = store
    self.capacity = capacity
  }

  /// The number of remembered callers, including idle ones until the next sweep.
  var callers: Int { state.withLock { $0.callers.count } }

  /// Takes up to `count` permits of a caller; `asWhole`: all or none.
  ///
  /// Returns the number taken, and the seconds until one more is free (`asWhole`: until all are free); nil if the
  /// database is unavailable. Throws `RegistryError` if then none can be taken.
  func take(
    _ count: Int, by user: String, within limit: RateLimit, at now: UnixTime, asWhole: Bool = false
  ) async throws -> (taken: Int, retryAfter: Int?) {
    let key = Array(user.utf8)
    while true {
      switch decide(count, key, limit, at: now, asWhole: asWhole || limit.mayOverdraw) {
      case .admitted(let taken, let isUnavailable): return (taken, isUnavailable ? nil : 1)
      case .refused(let moment): return (0, Self.seconds(until: moment, at: now))
      case .unavailable: throw RegistryError.withoutReservation
      case .wait: await waitForReservation(key)
      case .reserve(let demand): try await reserve(demand, key, user, limit, at: now)
      }
    }
  }

  /// The seconds until a permit is free, if `take` would refuse one without asking the database; nil if it would not.
  /// Throws `RegistryError` if the database is unavailable.
  func wait(of user: String, within limit: RateLimit, at now: UnixTime) throws -> Int? {
    let key = Array(user.utf8)
    // On a copy: nothing is taken.
    var caller = state.withLock { $0.callers[key] } ?? RateCaller()
    switch caller.decide(1, limit, at: now, asWhole: true, mayReserve: false) {
    case .refused(let moment): return Self.seconds(until: moment, at: now)
    case .unavailable: throw RegistryError.withoutReservation
    case .admitted, .reserve, .wait: return nil
    }
  }

  private static func seconds(until moment: UnixTime, at now: UnixTime) -> Int {
    max(1, Int(clamping: ((moment - now) / .seconds(1)).rounded(.up)))
  }

  /// Takes all of `count` permits if the front end has them. Otherwise returns false and takes none.
  func takeHere(_ count: Int, by user: String, within limit: RateLimit, at now: UnixTime) -> Bool {
    let decision = decide(count, Array(user.utf8), limit, at: now, asWhole: true, mayReserve: false)
    return if case .admitted = decision { true } else { false }
  }

  /// Charges permits that were used already, whether or not so many are free: `take` refuses until they have come back.
  /// While the database is away, all permits that the front end has are taken instead.
  func owe(_ count: Int, by user: String, within limit: RateLimit, at now: UnixTime) async {
    let rate = CallerRate(hub: hub, user: user, name: name, limit: limit)
    let grant: RateGrant?
    do { grant = try await store.reserve(RateDemand(owing: count), of: rate, at: now) } catch {
      // The database's error is reported by the next reservation.
      grant = nil
    }
    state.withLock { state in
      let key = Array(user.utf8)
      if let grant {
        state.callers[key, default: RateCaller()].owe(grant, at: now)
      } else {
        state.callers[key, default: RateCaller()].exhaust(limit, at: now)
      }
    }
  }

  private func decide(
    _ count: Int, _ key: [UInt8], _ limit: RateLimit, at now: UnixTime, asWhole: Bool, mayReserve: Bool = true
  ) -> RateCaller.Decision {
    state.withLock { state in
      sweep(&state, at: now)
      return state.callers[key, default: RateCaller()].decide(
        count, limit, at: now, asWhole: asWhole, mayReserve: mayReserve)
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
      state.callers[key, default: RateCaller()].finish(demand, result, limit, at: now)
      defer { state.callers[key]?.waiters = [] }
      return state.callers[key]?.waiters ?? []
    }
    for waiter in waiters { waiter.resume() }
    _ = try result.get()
  }

  /// Removes callers without a state that matters, and beyond the capacity others.
  private func sweep(_ state: inout State, at now: UnixTime) {
    guard state.callers.count >= min(state.sweepSize, capacity) else { return }
    state.callers = state.callers.filter { !$0.value.isIdle(at: now) }
    if state.callers.count > capacity / 2 {
      let removable = state.callers.filter { !$0.value.isBusy }.sorted { $0.value.ownArrival < $1.value.ownArrival }
      for (key, _) in removable.prefix(state.callers.count - capacity / 2) { state.callers[key] = nil }
    }
    state.sweepSize = max(Self.smallestSweep, 2 * state.callers.count)
  }
}

extension RegistryError {
  /// A rate's permits cannot be reserved.
  static let withoutReservation = RegistryError(.unavailable, "the registry is unavailable")
}
