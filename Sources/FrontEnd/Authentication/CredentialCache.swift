import Crypto
import FanfareCore
import FoundationEssentials
import Synchronization

/// A cache of valid credentials, so that a password is not hashed for every request.
///
/// Credentials are remembered for `timeToLive` after their last use, at most for `limit` after they were checked.
/// Concurrent requests with the same credentials share one check. The cache contains neither names nor passwords, only
/// their HMAC under a key that never leaves the process.
final class CredentialCache: Sendable {
  /// Until when the credentials may be used without asking again; nil if they are wrong.
  private typealias Outcome = Result<Moment?, AuthenticationError>
  typealias Moment = ContinuousClock.Instant

  private struct State {
    /// Until when, unless they are used, and until when at most.
    var valid: ExpiringCache<[UInt8], (until: Moment, last: Moment), Moment>
    /// Being checked; others wait for the outcome.
    var pending: [[UInt8]: [CheckedContinuation<Outcome?, Never>]] = [:]
    var generation = 0

    /// Forgets the results of earlier versions of the users.
    mutating func advance(to generation: Int) {
      guard generation > self.generation else { return }
      self.generation = generation
      valid.removeAll()
    }
  }

  private let secret = SymmetricKey(size: .bits256)
  private let timeToLive: Duration
  private let limit: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let state: Mutex<State>

  /// Remembers at most `capacity` credentials.
  init(
    capacity: Int, timeToLive: Duration, limit: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant
  ) {
    state = Mutex(State(valid: ExpiringCache(capacity: capacity)))
    self.timeToLive = timeToLive
    self.limit = limit
    self.now = now
  }

  /// Returns until when the credentials may be used without asking again, from the cache or by `check`; nil if they are
  /// wrong. Concurrent callers share one check.
  ///
  /// The moment is at most a tenth of `timeToLive` away: whoever keeps the answer must ask again before the credentials
  /// are forgotten, or each use would not count as one.
  ///
  /// `generation` is the version of the users that `check` uses. Results of older versions are neither remembered nor
  /// shared.
  func verify(
    _ credentials: BasicCredentials, generation: Int, check: () async throws(AuthenticationError) -> Bool
  ) async throws(AuthenticationError) -> ContinuousClock.Instant? {
    let key = digest(credentials, generation: generation)
    let moment = now()
    let known = state.withLock { state -> ContinuousClock.Instant? in
      state.advance(to: generation)
      guard let (until, last) = state.valid.value(key, at: moment) else { return nil }
      // Written once a second at most: many requests with the same credentials follow one another.
      let extended = min(moment + timeToLive, last)
      if extended - until >= .seconds(1) {
        state.valid.insert((extended, last), for: key, from: moment, to: extended)
      }
      return extended
    }
    if let known { return min(known, moment + timeToLive / 10) }
    if let outcome = await join(key) { return try outcome.get() }
    let outcome: Outcome
    do {
      outcome = .success(try await check() ? now() + min(timeToLive / 10, limit) : nil)
    } catch {
      outcome = .failure(error)
    }
    settle(key, outcome, generation: generation)
    return try outcome.get()
  }

  /// Waits for the running check.
  /// Returns nil if none is running: then the caller must check, and call `settle`.
  private func join(_ key: [UInt8]) async -> Outcome? {
    await withCheckedContinuation { continuation in
      let isWaiting = state.withLock { state in
        guard state.pending[key] != nil else {
          state.pending[key] = []
          return false
        }
        state.pending[key]?.append(continuation)
        return true
      }
      if !isWaiting { continuation.resume(returning: nil) }
    }
  }

  private func settle(_ key: [UInt8], _ outcome: Outcome, generation: Int) {
    let moment = now()
    let waiting = state.withLock { state in
      if case .success(.some) = outcome, generation == state.generation {
        let until = moment + min(timeToLive, limit)
        state.valid.insert((until, moment + limit), for: key, from: moment, to: until)
      }
      return state.pending.removeValue(forKey: key) ?? []
    }
    for continuation in waiting { continuation.resume(returning: outcome) }
  }

  private func digest(_ credentials: BasicCredentials, generation: Int) -> [UInt8] {
    // Names contain no colon, so that different pairs have different texts.
    let text = "\(generation):\(credentials.user):\(credentials.password)"
    return Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: secret))
  }
}
