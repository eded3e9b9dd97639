import Crypto
import FoundationEssentials
import Synchronization

/// Credentials that were found to be right, for a short while, so that a password is hashed once and not for every
/// request; and those that are being checked, so that a hundred requests of one user at once are one check.
///
/// Neither names nor passwords are kept, only their keyed digest under a key that never leaves the process.
final class VerifiedCredentials: Sendable {
  fileprivate typealias Outcome = Result<Bool, AuthenticationError>

  fileprivate enum Entry {
    case right(until: ContinuousClock.Instant)
    /// Being checked, and who waits for it.
    case pending([CheckedContinuation<Answer, Never>])
  }

  fileprivate enum Answer {
    case outcome(Outcome)
    /// Nobody is checking: it is the caller's to do.
    case unknown
  }

  fileprivate struct State {
    var entries: [[UInt8]: Entry] = [:]
    var generation = 0
  }

  private let secret = SymmetricKey(size: .bits256)
  private let capacity: Int
  private let timeToLive: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let state = Mutex(State())

  /// Keeps at most `capacity` credentials for `timeToLive` each.
  init(capacity: Int, timeToLive: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant) {
    self.capacity = capacity
    self.timeToLive = timeToLive
    self.now = now
  }

  /// Whether the credentials are right: as found before, or as `check` says now. `check` runs once for all who ask at
  /// the same time.
  ///
  /// `generation` is the version of the users that `check` goes by; what an older one says is neither kept nor shared.
  func verify(
    _ credentials: BasicCredentials, generation: Int, check: () async throws(AuthenticationError) -> Bool
  ) async throws(AuthenticationError) -> Bool {
    let key = digest(credentials, generation: generation)
    let moment = now()
    let isKnown = state.withLock { state in
      guard case .right(let until) = state.entries[key] else { return false }
      return until > moment
    }
    if isKnown { return true }
    switch await join(key) {
    case .outcome(let outcome): return try outcome.get()
    case .unknown: break
    }
    let outcome: Outcome
    do {
      outcome = .success(try await check())
    } catch {
      outcome = .failure(error)
    }
    settle(key, outcome, generation: generation)
    return try outcome.get()
  }

  /// Forgets everything: the users are now those of the given generation.
  func invalidate(generation: Int) {
    state.withLock { state in
      state.generation = generation
      state.entries = state.entries.filter { if case .pending = $0.value { true } else { false } }
    }
  }

  /// Waits for the check that is going on; `.unknown`, and a check is now expected of the caller, when there is none.
  private func join(_ key: [UInt8]) async -> Answer {
    await withCheckedContinuation { continuation in
      let isWaiting = state.withLock { state in
        guard case .pending(var waiting) = state.entries.removeValue(forKey: key) else {
          state.entries[key] = .pending([])
          return false
        }
        waiting.append(continuation)
        state.entries[key] = .pending(waiting)
        return true
      }
      if !isWaiting { continuation.resume(returning: .unknown) }
    }
  }

  private func settle(_ key: [UInt8], _ outcome: Outcome, generation: Int) {
    let moment = now()
    let waiting: [CheckedContinuation<Answer, Never>] = state.withLock { state in
      guard case .pending(let waiting) = state.entries.removeValue(forKey: key) else { return [] }
      if case .success(true) = outcome, generation == state.generation {
        state.makeRoom(capacity: capacity, at: moment)
        state.entries[key] = .right(until: moment + timeToLive)
      }
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: .outcome(outcome)) }
  }

  private func digest(_ credentials: BasicCredentials, generation: Int) -> [UInt8] {
    // A name contains no colon, so that no two pairs are the same text.
    let text = "\(generation):\(credentials.user):\(credentials.password)"
    return Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: secret))
  }
}

extension VerifiedCredentials.State {
  /// Keeps the number of entries within bounds: what has expired goes first, then whatever comes to hand.
  fileprivate mutating func makeRoom(capacity: Int, at moment: ContinuousClock.Instant) {
    guard entries.count >= capacity else { return }
    entries = entries.filter { if case .right(let until) = $0.value { until > moment } else { true } }
    while entries.count >= capacity {
      let victim = entries.first { if case .right = $0.value { true } else { false } }
      guard let victim else { return }
      entries.removeValue(forKey: victim.key)
    }
  }
}
