import Crypto
import Dispatch
import FoundationEssentials
import Synchronization

/// A cache of valid credentials, so that a password is not hashed for every request.
///
/// Concurrent requests with the same credentials share one check. The cache contains neither names nor passwords, only
/// their HMAC under a key that never leaves the process.
final class CredentialCache: Sendable {
  private typealias Outcome = Result<Bool, AuthenticationError>

  private enum Entry {
    case valid(until: ContinuousClock.Instant)
    /// Being checked; others wait for the outcome.
    case pending([CheckedContinuation<Outcome?, Never>])
  }

  private struct State {
    var entries: [[UInt8]: Entry] = [:]
    var generation = 0

    /// Makes room for one entry: removes expired entries first, then arbitrary ones.
    mutating func makeRoom(capacity: Int, at moment: ContinuousClock.Instant) {
      guard entries.count >= capacity else { return }
      entries = entries.filter { if case .valid(let until) = $0.value { until > moment } else { true } }
      while entries.count >= capacity {
        let victim = entries.first { if case .valid = $0.value { true } else { false } }
        guard let victim else { return }
        entries.removeValue(forKey: victim.key)
      }
    }
  }

  private let secret = SymmetricKey(size: .bits256)
  private let capacity: Int
  private let timeToLive: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let state = Mutex(State())

  /// Remembers at most `capacity` credentials, each for `timeToLive`.
  init(capacity: Int, timeToLive: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant) {
    self.capacity = capacity
    self.timeToLive = timeToLive
    self.now = now
  }

  /// Returns whether the credentials are valid, from the cache or by `check`.
  /// Concurrent callers share one check.
  ///
  /// `generation` is the version of the users that `check` uses. Results of older versions are neither remembered nor
  /// shared.
  func verify(
    _ credentials: BasicCredentials, generation: Int, check: () async throws(AuthenticationError) -> Bool
  ) async throws(AuthenticationError) -> Bool {
    let key = digest(credentials, generation: generation)
    let moment = now()
    let isKnown = state.withLock { state in
      guard case .valid(let until) = state.entries[key] else { return false }
      return until > moment
    }
    if isKnown { return true }
    if let outcome = await join(key) { return try outcome.get() }
    let outcome: Outcome
    do {
      outcome = .success(try await check())
    } catch {
      outcome = .failure(error)
    }
    settle(key, outcome, generation: generation)
    return try outcome.get()
  }

  /// Forgets all results; the users are now those of the given generation.
  func invalidate(generation: Int) {
    state.withLock { state in
      state.generation = generation
      state.entries = state.entries.filter { if case .pending = $0.value { true } else { false } }
    }
  }

  /// Waits for the running check.
  /// Returns nil if none is running: then the caller must check, and call `settle`.
  private func join(_ key: [UInt8]) async -> Outcome? {
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
      if !isWaiting { continuation.resume(returning: nil) }
    }
  }

  private func settle(_ key: [UInt8], _ outcome: Outcome, generation: Int) {
    let moment = now()
    let waiting: [CheckedContinuation<Outcome?, Never>] = state.withLock { state in
      guard case .pending(let waiting) = state.entries.removeValue(forKey: key) else { return [] }
      if case .success(true) = outcome, generation == state.generation {
        state.makeRoom(capacity: capacity, at: moment)
        state.entries[key] = .valid(until: moment + timeToLive)
      }
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: outcome) }
  }

  private func digest(_ credentials: BasicCredentials, generation: Int) -> [UInt8] {
    // Names contain no colon, so that different pairs have different texts.
    let text = "\(generation):\(credentials.user):\(credentials.password)"
    return Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: secret))
  }
}

/// Runs blocking work, such as password hashing, on a few threads of its own.
///
/// Blocking work must not occupy the cooperative pool, nor all cores.
final class HashingPool: Sendable {
  private struct State {
    var running = 0
    /// In order of arrival.
    var waiting: [@Sendable () -> Void] = []
  }

  private let concurrency: Int
  private let maximumWaiting: Int
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "fanfare.password-hashing", attributes: .concurrent)

  /// Runs at most `concurrency` jobs at a time; at most `maximumWaiting` more wait.
  init(concurrency: Int, maximumWaiting: Int) {
    self.concurrency = concurrency
    self.maximumWaiting = maximumWaiting
  }

  /// Runs work on one of the threads. Throws `.overloaded` at once if too many jobs are waiting.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws(AuthenticationError) -> Value {
    let value: Value? = await withCheckedContinuation { continuation in
      let isAccepted = submit { continuation.resume(returning: work()) }
      if !isAccepted { continuation.resume(returning: nil) }
    }
    guard let value else { throw .overloaded }
    return value
  }

  private func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    enum Step { case start, wait, refuse }
    let step = state.withLock { state -> Step in
      if state.running < concurrency {
        state.running += 1
        return .start
      }
      guard state.waiting.count < maximumWaiting else { return .refuse }
      state.waiting.append(job)
      return .wait
    }
    if step == .start { queue.async { self.work(job) } }
    return step != .refuse
  }

  private func work(_ job: @Sendable () -> Void) {
    job()
    while let next = next() { next() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.running -= 1
      return nil
    }
  }
}
