import FanfareCore

/// State machine of a key set: when it is fetched, which keys are used, and for how long. `TokenKeys` drives it.
///
/// The keys of the last successful fetch are used until they are `maximumAge` old. A failed fetch is repeated with
/// backoff; an unknown key id starts a fetch too, at most once in `unknownKeyInterval`. A key is missing only if a
/// fetch that began after it was asked for did not find it. Until then it may be a new one: tokens with invented ids
/// cannot delay a rotation.
struct KeySetState: Sendable {
  static let backoff = Backoff(first: .seconds(5), limit: .seconds(60))
  /// The most missing ids that are remembered.
  static let maximumMissing = 1000

  /// The times of a key set.
  struct Schedule: Sendable {
    /// The time between two fetches.
    var refreshInterval: Duration
    /// The least time between two fetches because of unknown keys.
    var unknownKeyInterval: Duration
    /// The age at which keys are no longer used if they could not be fetched again.
    var maximumAge: Duration
  }

  /// The answer to a request for a key.
  enum Answer: Sendable {
    case found(VerificationKey, generation: Int)
    /// The issuer has no such key.
    case unknown
    /// Ask again after the fetch in progress.
    case wait
    /// The keys are missing or outdated.
    case unavailable
    /// The key may be a new one, and cannot be fetched yet.
    case notFetched
  }

  /// The result of a fetch.
  enum Fetched: Sendable {
    case changed(VerificationKeys)
    case unchanged
    case failed(String)
  }

  private let schedule: Schedule
  private var keys: VerificationKeys?
  /// The number of changes of the keys.
  private(set) var generation = 0
  private(set) var isFetching = false
  /// Why the last fetch failed; nil after a success, and before the first fetch.
  private(set) var failure: String?
  /// The time of the last successful fetch.
  private var confirmedAt: UnixTime?
  private var nextFetchAt: UnixTime?
  private var lastFetchForUnknownKeyAt: UnixTime?
  private var failures = 0
  /// Digests of the ids that were asked for in vain before the fetch in progress or the next one, of those asked for
  /// during the fetch in progress, which may have begun before the key was published, and of those not found.
  private var wanted: Set<Int> = []
  private var late: Set<Int> = []
  private var missing: Set<Int> = []

  /// The number of ids that are remembered, for tests.
  var remembered: Int { wanted.count + late.count + missing.count }

  init(_ schedule: Schedule) { self.schedule = schedule }

  /// Whether there are keys that may be used now.
  func isUsable(at now: UnixTime) -> Bool {
    guard let confirmedAt, keys != nil else { return false }
    return now - confirmedAt < schedule.maximumAge
  }

  /// Finds a key. `startsFetch` asks the driver to start a fetch.
  ///
  /// The key of generation `rejected` does not count: it did not make the signature of a token without a key id.
  mutating func find(
    _ id: String?, _ algorithm: TokenAlgorithm, rejected: Int? = nil, at now: UnixTime
  ) -> (Answer, startsFetch: Bool) {
    guard isUsable(at: now) else { return (isFetching ? .wait : .unavailable, false) }
    if generation != rejected, let key = keys?.key(id, algorithm) {
      return (.found(key, generation: generation), false)
    }
    if let id, wanted.count + late.count < Self.maximumMissing {
      if isFetching { late.insert(id.hashValue) } else { wanted.insert(id.hashValue) }
    }
    if isFetching { return (.wait, false) }
    // A clock that was set back must not stop the refresh for long.
    let isRecent = lastFetchForUnknownKeyAt.map { $0 <= now && now - $0 < schedule.unknownKeyInterval } ?? false
    guard isRecent else {
      lastFetchForUnknownKeyAt = now
      isFetching = true
      return (.wait, true)
    }
    // While fetches fail, the key may be a new one too.
    guard failure == nil else { return (.unavailable, false) }
    return (id.map { missing.contains($0.hashValue) } ?? true ? .unknown : .notFetched, false)
  }

  /// Whether a fetch is due; if so, it counts as started.
  mutating func beginFetchIfDue(at now: UnixTime) -> Bool {
    guard !isFetching else { return false }
    if let nextFetchAt, now < nextFetchAt, nextFetchAt - now <= schedule.refreshInterval { return false }
    isFetching = true
    return true
  }

  /// Handles the result of a fetch.
  mutating func fetched(_ result: Fetched, at now: UnixTime) {
    isFetching = false
    switch result {
    case .failed(let reason):
      failure = reason
      nextFetchAt = now + min(Self.backoff.wait(failures), schedule.refreshInterval)
      failures += 1
      wanted.formUnion(late)
      late = []
      return
    case .changed(let keys):
      // Those that were withdrawn.
      wanted.formUnion((self.keys?.ids ?? []).map(\.hashValue))
      self.keys = keys
      generation += 1
    case .unchanged: break
    }
    (missing, wanted, late) = (wanted, late, [])
    failure = nil
    failures = 0
    confirmedAt = now
    nextFetchAt = now + schedule.refreshInterval
  }
}
