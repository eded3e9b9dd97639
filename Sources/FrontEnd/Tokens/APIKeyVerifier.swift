import FanfareCore
import HTTPServer
import Logging
import Synchronization

/// Verifies the API keys of one hub, through a small cache over the store that all front ends share.
///
/// A cached key is looked up again after `lifetime`: a revoked key stops working that much later, at the latest. While
/// the store fails, known keys keep working for `grace`. Concurrent requests share one look-up; those with a known key
/// do not wait for it. Look-ups of unknown keys are limited, for each network and altogether: strangers cannot occupy
/// the store, and those of one network cannot keep others from it.
final class APIKeyVerifier: Sendable {
  /// The time after which a cached key is looked up again.
  static let lifetime: Duration = .seconds(5)
  /// How long known keys keep working while the store fails.
  static let grace: Duration = .seconds(300)
  /// The most keys that are cached, and the most ids without a key.
  static let capacity = 10_000
  /// The most look-ups of unknown keys at a time.
  static let maximumStrangers = 64
  /// The most look-ups of unknown keys at a time for callers of one network.
  static let maximumStrangersPerNetwork = 16

  private typealias Outcome = Result<StoredAPIKey?, AuthenticationError>

  private struct Known {
    var key: StoredAPIKey
    /// When the store returned the key.
    var confirmedAt: UnixTime
    var nextLookUpAt: UnixTime
  }

  private struct State {
    var known = ExpiringCache<String, Known, UnixTime>(capacity: APIKeyVerifier.capacity)
    /// The store has answered that there is no such key.
    var unknown = ExpiringCache<String, Void, UnixTime>(capacity: APIKeyVerifier.capacity)
    /// The requests that wait for each look-up in progress.
    var pending: [String: [CheckedContinuation<Outcome?, Never>]] = [:]
    /// Look-ups in progress of keys that are not known, by the network of the first caller.
    var strangers: [ClientAddress: Int] = [:]
  }

  private enum Step {
    case answer(StoredAPIKey?), lookUp(Known?), join, refuse
  }

  private let hub: HubName
  private let store: any APIKeyStore
  private let clock: any WallClock
  private let logger: Logger
  private let state = Mutex(State())

  init(hub: HubName, store: any APIKeyStore, clock: any WallClock, logger: Logger) {
    self.hub = hub
    self.store = store
    self.clock = clock
    self.logger = logger
  }

  /// Returns the stored key if the text is a valid key of the hub, else nil.
  /// Throws `AuthenticationError` if that cannot be found out at the moment.
  func verify(_ text: String, from address: ClientAddress) async throws(AuthenticationError) -> StoredAPIKey? {
    guard let key = APIKey(text) else { return nil }
    let now = clock.now()
    guard let stored = try await find(key.id, for: address.network, at: now), Self.isEqual(stored.digest, key.digest),
      !stored.isExpired(at: now)
    else { return nil }
    await markUsed(stored, at: now)
    return stored
  }

  /// Until when a verified key may be used without asking the store again. Nil if that is due now.
  func validity(of key: StoredAPIKey) -> Validity? {
    let known = state.withLock { $0.known[key.id] }
    // Another look-up may have replaced it.
    guard let known, known.key.digest == key.digest, known.key.scopes == key.scopes, known.key.user == key.user else {
      return nil
    }
    let day = known.key.lastUsedDay
    return Validity { [clock] in
      let now = clock.now()
      return now >= known.confirmedAt && now < known.nextLookUpAt && !key.isExpired(at: now) && day == now.startOfDay
    }
  }

  private func find(
    _ id: String, for network: ClientAddress, at now: UnixTime
  ) async throws(AuthenticationError) -> StoredAPIKey? {
    while true {
      switch state.withLock({ Self.step(&$0, id, for: network, at: now) }) {
      case .answer(let key): return key
      case .refuse: throw .overloaded
      case .lookUp(let known): return try await lookUp(id, for: network, known: known, at: now)
      // Nil if the look-up ended in between: then its answer is in the cache.
      case .join: if let outcome = await join(id) { return try outcome.get() }
      }
    }
  }

  private static func step(
    _ state: inout State, _ id: String, for network: ClientAddress, at now: UnixTime
  ) -> Step {
    if let known = state.known[id] {
      // A clock that was set back must not prolong the use of a key.
      if now >= known.confirmedAt, now < known.nextLookUpAt { return .answer(known.key) }
      if state.pending[id] != nil, now - known.confirmedAt < grace { return .answer(known.key) }
      guard state.pending[id] == nil else { return .join }
      state.pending[id] = []
      return .lookUp(known)
    }
    if state.unknown.value(id, at: now) != nil { return .answer(nil) }
    guard state.pending[id] == nil else { return .join }
    let own = state.strangers[network, default: 0]
    guard own < maximumStrangersPerNetwork, state.strangers.values.reduce(0, +) < maximumStrangers else {
      return .refuse
    }
    state.strangers[network] = own + 1
    state.pending[id] = []
    return .lookUp(nil)
  }

  private func join(_ id: String) async -> Outcome? {
    await withCheckedContinuation { continuation in
      let isWaiting = state.withLock { $0.pending[id]?.append(continuation) != nil }
      if !isWaiting { continuation.resume(returning: nil) }
    }
  }

  private func lookUp(
    _ id: String, for network: ClientAddress, known: Known?, at now: UnixTime
  ) async throws(AuthenticationError) -> StoredAPIKey? {
    var outcome: Outcome
    var next: Known?
    do {
      let key = try await store.apiKey(id, hub: hub)
      outcome = .success(key)
      next = key.map { Known(key: $0, confirmedAt: now, nextLookUpAt: now + Self.lifetime) }
    } catch {
      outcome = .failure(.unavailable)
      if var known, now >= known.confirmedAt, now - known.confirmedAt < Self.grace {
        known.nextLookUpAt = now + Self.lifetime
        outcome = .success(known.key)
        next = known
      }
      logger.warning("API key could not be looked up", metadata: [LogKeys.cause: "\(error)"])
    }
    let waiting = state.withLock { state in
      if known == nil, let own = state.strangers[network] { state.strangers[network] = own == 1 ? nil : own - 1 }
      state.known[id] = next
      state.unknown[id] = nil
      if case .success(nil) = outcome { state.unknown.insert((), for: id, from: now, to: now + Self.lifetime) }
      return state.pending.removeValue(forKey: id) ?? []
    }
    for continuation in waiting { continuation.resume(returning: outcome) }
    return try outcome.get()
  }

  /// Stores the day of the first use on each day.
  private func markUsed(_ key: StoredAPIKey, at now: UnixTime) async {
    let day = now.startOfDay
    guard key.lastUsedDay.map({ $0 < day }) ?? true else { return }
    let isFirst = state.withLock { state in
      guard var known = state.known[key.id], known.key.lastUsedDay != day else { return false }
      known.key.lastUsedDay = day
      state.known[key.id] = known
      return true
    }
    guard isFirst else { return }
    do { try await store.markAPIKeyUsed(key.id, hub: hub, day: day) } catch {
      logger.warning("Use of an API key could not be stored", metadata: [LogKeys.cause: "\(error)"])
    }
  }

  private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    var difference = UInt8(left.count == right.count ? 0 : 1)
    for (one, other) in zip(left, right) { difference |= one ^ other }
    return difference == 0
  }
}
