import FanfareCore
import Metrics
import Synchronization

/// The quotas of a hub's callers.
struct HubQuotas: Sendable {
  /// The smallest audience, in devices, of a broadcast that counts as open. Smaller ones end before they can stall a
  /// worker.
  static let largeBroadcast = 20_000
  /// The bytes that are charged for a stored row besides its payload.
  static let rowBytes = 256
  /// The most names whose failed logins are remembered: anybody can invent them.
  private static let maximumNames = 100_000
  /// When to come back after a refusal for objects that exist.
  private static let stockRetry = 60

  let policy: QuotaPolicy
  private let hub: HubName
  private let store: any CallerQuotaStore
  private let gates: [QuotaName: RateGate]
  private let refused: [QuotaName: Counter]
  private let recent = RecentRefusals()

  init(_ policy: QuotaPolicy, hub: HubName, store: any CallerQuotaStore) {
    (self.policy, self.hub, self.store) = (policy, hub, store)
    gates = Dictionary(
      uniqueKeysWithValues: QuotaName.allCases.filter(\.isRate).map { name in
        let capacity = name == .failedLogins ? Self.maximumNames : .max
        return (name, RateGate(name, hub: hub, store: store, capacity: capacity))
      })
    refused = Dictionary(
      uniqueKeysWithValues: QuotaName.allCases.map { name in
        (
          name,
          Counter(
            label: "fanfare_quota_refused_total", dimensions: [("hub", hub.rawValue), ("quota", name.rawValue)])
        )
      })
  }

  /// Takes permits of a rate; see `RateGate.take`. All of them without a limit.
  func take(
    _ count: Int, of name: QuotaName, by user: String, at now: UnixTime, asWhole: Bool = false
  ) async throws -> (taken: Int, retryAfter: Int?) {
    guard count > 0, let limit = policy.limits(of: user).rate(name), let gate = gates[name] else { return (count, 1) }
    return try await gate.take(count, by: user, within: limit, at: now, asWhole: asWhole)
  }

  /// Takes what a send needs if the front end has it without the database: one permit of the rate of sends. Otherwise
  /// returns false and takes nothing; then `SendAdmission` decides.
  func takeHere(for submission: Submission) -> Bool {
    let (sender, name) = (submission.send.sender ?? "", QuotaName.sends)
    guard !submission.isHeld, !submission.send.isBroadcast || !limitsBroadcasts(of: sender) else { return false }
    guard let limit = policy.limits(of: sender).rate(name), let gate = gates[name] else { return true }
    return gate.takeHere(1, by: sender, within: limit, at: submission.receivedAt)
  }

  /// Throws the refusal that `charge` would give without asking the database. Takes nothing.
  func requireProspect(of name: QuotaName, by user: String, at now: UnixTime) throws {
    guard let limit = policy.limits(of: user).rate(name), let gate = gates[name],
      let seconds = try gate.wait(of: user, within: limit, at: now)
    else { return }
    throw refusal(name, retryAfter: seconds)
  }

  /// Counts a refused body of this size, in permits, as sends: as many as are free.
  func countRefused(_ size: Int, by user: String, at now: UnixTime) async {
    // While the database is away the permits of this front end are the limit.
    do { _ = try await take(size, of: .sends, by: user, at: now) } catch {}
  }

  /// Takes all permits, or throws `.overQuota`.
  func charge(_ count: Int, to name: QuotaName, of user: String, at now: UnixTime) async throws {
    let (taken, seconds) = try await take(count, of: name, by: user, at: now, asWhole: true)
    guard taken == count else { throw refusal(name, retryAfter: seconds ?? Self.stockRetry) }
  }

  /// Charges the rest of a demand, whose first permit was taken before, for something that was accepted.
  ///
  /// In this order a refusal in between costs nothing; requests at the same moment may together exceed the quota, and
  /// what they exceed it by has to come back before another is accepted.
  func chargeRest(of count: Int, to name: QuotaName, of user: String, at now: UnixTime) async {
    guard count > 1, let limit = policy.limits(of: user).rate(name), let gate = gates[name] else { return }
    await gate.owe(count - 1, by: user, within: limit, at: now)
  }

  /// Throws `.tooLarge` if a batch of `count` sends exceeds the burst.
  /// It could never be accepted as a whole.
  func requireRoomInBurst(for count: Int, by user: String) throws(Refusal) {
    guard let limit = policy.limits(of: user).rate(.sends), count > limit.burst else { return }
    throw Refusal(
      .tooLarge,
      "a request that is accepted as a whole has \(count) sends and the quota allows \(limit.burst) at once; divide it, "
        + "and give each part an Idempotency-Key of its own if it has one")
  }

  /// Whether a caller's broadcasts are limited at all.
  func limitsBroadcasts(of user: String) -> Bool {
    let limits = policy.limits(of: user)
    return limits.devicesPerDay > 0 || limits.openBroadcasts > 0
  }

  /// Estimates the devices of each audience, at least one; one each while the registry is away.
  func devices(of audiences: [Audience]) async -> [Int] {
    do {
      return try await store.estimatedDevices(of: audiences, hub: hub).map { max(1, $0) }
    } catch {
      return audiences.map { _ in 1 }
    }
  }

  /// Counts a large broadcast as open until `end`. Throws `.overQuota`.
  func open(_ send: SendID, by user: String, until end: UnixTime, at now: UnixTime) async throws {
    let limit = policy.limits(of: user).openBroadcasts
    guard limit > 0 else { return }
    let caller = Array(user.utf8)
    guard recent.refusals.withLock({ $0.value(caller, at: now) }) == nil,
      try await store.open(BroadcastID(hub: hub, send: send), by: user, until: end, limit: limit, at: now)
    else {
      recent.refusals.withLock { $0.insert((), for: caller, from: now, to: now + .seconds(1)) }
      throw refusal(.openBroadcasts)
    }
  }

  /// Stops counting a broadcast that was not accepted. Errors are ignored: it counts until it would have expired.
  func close(_ send: SendID, by user: String) async {
    guard policy.limits(of: user).openBroadcasts > 0 else { return }
    // Its quota is freed later, at its end.
    try? await store.close(BroadcastID(hub: hub, send: send), by: user)
  }

  /// The limit of a caller's scheduled sends.
  func scheduledLimit(of user: String) -> ScheduledSendLimit {
    let limits = policy.limits(of: user)
    return ScheduledSendLimit(sends: limits.scheduledSends, bytes: limits.scheduledBytes)
  }

  /// The refusal of `count` requests over a quota, which counts them.
  func refusal(_ name: QuotaName, retryAfter seconds: Int = stockRetry, count: Int = 1) -> Refusal {
    refused[name]?.increment(by: count)
    var refusal = Refusal(.overQuota, "the caller's quota \(name.rawValue) is exceeded; try again in \(seconds) s")
    refusal.retryAfter = seconds
    refusal.quota = name
    return refusal
  }
}

/// The callers whose broadcasts were refused in the last second: the database need not count theirs again.
private final class RecentRefusals: Sendable {
  let refusals = Mutex(ExpiringCache<[UInt8], Void, UnixTime>(capacity: 4096))
}
