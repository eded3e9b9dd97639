import FanfareCore
import Registry
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Rates that front ends share through the registry.
@Suite(.timeLimit(.minutes(2))) struct RateGateTests {
  private static let start = UnixTime(milliseconds: 1_795_248_000_000)

  private func gates(_ count: Int, over store: any CallerQuotaStore) -> [RateGate] {
    (0..<count).map { _ in RateGate(.sends, hub: .default, store: store) }
  }

  @Test func frontEndsShareARate() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gates) = (RateLimit(perSecond: 7, burst: 20), gates(3, over: temporary.registry))
    var taken = 0
    for tick in 0..<1000 {
      let now = Self.start + .milliseconds(10 * tick)
      taken += try await gates[tick % 3].take(3, by: "a", within: limit, at: now).taken
    }
    // Ten seconds and the burst.
    #expect((86...91).contains(taken))
  }

  @Test func concurrentRequestsGetNoMoreThanTheBurst() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gates) = (RateLimit(perSecond: 1, burst: 50), gates(2, over: temporary.registry))
    let taken = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<200 {
        group.addTask { try await gates[number % 2].take(1, by: "a", within: limit, at: Self.start).taken }
      }
      return try await group.reduce(0, +)
    }
    #expect(taken == 50)
  }

  @Test func acceptingCostsFewStatements() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    let (limit, gate) = (RateLimit(perSecond: 1000, burst: 60_000), RateGate(.sends, hub: .default, store: store))
    // A caller within the front end's own share needs none.
    for number in 0..<600 {
      let now = Self.start + .milliseconds(number)
      #expect(try await gate.take(1, by: "rare", within: limit, at: now).taken == 1)
    }
    #expect(store.reservations == 0)
    for number in 0..<20_000 {
      let now = Self.start + .milliseconds(number)
      #expect(try await gate.take(1, by: "backend", within: limit, at: now).taken == 1)
    }
    #expect(store.reservations <= 20)
    // Nor does one that is refused all the time.
    var limits = RateLimit(perSecond: 10, burst: 10)
    for number in 0..<1000 {
      _ = try await gate.take(9, by: "flood", within: limits, at: Self.start + .milliseconds(number))
    }
    #expect(store.reservations <= 60)
    limits = RateLimit(perSecond: 1, burst: 1)
    for number in 0..<2000 {
      _ = try await gate.take(1, by: "slow", within: limits, at: Self.start + .milliseconds(number))
    }
    #expect(store.reservations <= 70)
  }

  @Test func reservedPermitsServeWhileTheRegistryIsAway() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    let (limit, gate) = (RateLimit(perSecond: 10, burst: 1600), RateGate(.sends, hub: .default, store: store))
    // The own share is 16, a reservation 10.
    #expect(try await gate.take(17, by: "a", within: limit, at: Self.start).taken == 17)
    store.isAway = true
    #expect(try await gate.take(9, by: "a", within: limit, at: Self.start).taken == 9)
    for _ in 0..<3 {
      await #expect(throws: RegistryError.self) { try await gate.take(1, by: "a", within: limit, at: Self.start) }
    }
    #expect(store.reservations == 2, "a failed reservation is not repeated at once")
    store.isAway = false
    #expect(try await gate.take(1, by: "a", within: limit, at: Self.start + .seconds(1)).taken == 1)
  }

  /// A share that is not used up must not cost more than the rate makes up for.
  @Test func callerOfSeveralFrontEndsIsNotRefusedBelowItsRate() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gates) = (RateLimit(perDay: 86_400), gates(4, over: temporary.registry))
    // A tenth of the rate, for three days.
    for number in 0..<25_920 {
      let now = Self.start + .seconds(10 * number)
      #expect(try await gates[number % 4].take(1, by: "a", within: limit, at: now).taken == 1)
    }
  }

  @Test func clockThatWasSetBackLocksNobodyOut() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gate) = (RateLimit(perSecond: 7, burst: 20), gates(1, over: temporary.registry)[0])
    #expect(try await gate.take(20, by: "a", within: limit, at: Self.start).taken == 20)
    #expect(try await gate.take(1, by: "a", within: limit, at: Self.start).taken == 0)
    // A front end whose clock is a little behind does not get a second burst.
    #expect(try await gate.take(1, by: "a", within: limit, at: Self.start + .seconds(-30)).taken == 0)
    let back = Self.start + .seconds(-3600)
    #expect(try await gate.take(99, by: "a", within: limit, at: back).taken == 20)
    #expect(try await gate.take(1, by: "a", within: limit, at: back) == (0, 1))
  }

  @Test func oneDemandMayOverdrawWhereThatIsAllowed() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gate) = (RateLimit(perDay: 86, mayOverdraw: true), gates(1, over: temporary.registry)[0])
    #expect(try await gate.take(5000, by: "a", within: limit, at: Self.start).taken == 5000)
    #expect(try await gate.take(1, by: "a", within: limit, at: Self.start + .seconds(87_000)).taken == 0)
    #expect(try await gate.take(1, by: "a", within: limit, at: Self.start + .seconds(87_500)).taken == 1)
  }

  @Test func unicodeEquivalentNamesHaveSeparateQuotas() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gate) = (RateLimit(perSecond: 1, burst: 1), gates(1, over: temporary.registry)[0])
    for (user, taken) in [("ren\u{E9}", 1), ("rene\u{301}", 1), ("ren\u{E9}", 0)] {
      #expect(try await gate.take(1, by: user, within: limit, at: Self.start).taken == taken)
    }
  }

  @Test func idleCallersAreForgotten() async throws {
    let temporary = try TemporaryRegistry()
    let (limit, gate) = (RateLimit(perSecond: 100_000, burst: 100), gates(1, over: temporary.registry)[0])
    for number in 0..<20_000 {
      _ = try await gate.take(1, by: "\(number)", within: limit, at: Self.start + .milliseconds(number))
    }
    #expect(gate.callers < 10_000)
  }

  /// Anybody can fail to log in under any name.
  @Test func inventedNamesTakeBoundedMemoryAndNoStatement() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    let (limit, gate) = (RateLimit(perDay: 5000), RateGate(.failedLogins, hub: .default, store: store, capacity: 1000))
    func fail(_ user: String) async throws {
      #expect(try await gate.take(1, by: user, within: limit, at: Self.start).taken == 1)
    }
    for _ in 0..<40 { try await fail("guessed") }
    for number in 0..<10_000 { try await fail("\(number)") }
    #expect(gate.callers <= 1000)
    // The own share is 50.
    for _ in 0..<10 { try await fail("guessed") }
    #expect(store.reservations == 0)
    try await fail("guessed")
    #expect(store.reservations == 1, "names that failed often are not forgotten")
  }
}

/// A store that counts reservations, can be away, and can take each audience for equally large.
final class WatchedQuotas: CallerQuotaStore {
  private let store: any CallerQuotaStore
  private let state = Mutex((reservations: 0, isAway: false, devices: Int?.none))

  init(over store: any CallerQuotaStore) { self.store = store }

  var reservations: Int { state.withLock { $0.reservations } }
  var isAway: Bool {
    get { state.withLock { $0.isAway } }
    set { state.withLock { $0.isAway = newValue } }
  }
  /// The estimated size of each audience; nil for that of the store.
  var devices: Int? {
    get { state.withLock { $0.devices } }
    set { state.withLock { $0.devices = newValue } }
  }

  private func requirePresence() throws {
    if isAway { throw RegistryError(.unavailable, "the registry is away") }
  }

  func reserve(_ demand: RateDemand, of rate: CallerRate, at now: UnixTime) async throws -> RateGrant {
    state.withLock { $0.reservations += 1 }
    try requirePresence()
    return try await store.reserve(demand, of: rate, at: now)
  }

  func open(_ broadcast: BroadcastID, by user: String, until end: UnixTime, limit: Int, at now: UnixTime) async throws
    -> Bool
  {
    try requirePresence()
    return try await store.open(broadcast, by: user, until: end, limit: limit, at: now)
  }

  func close(_ broadcast: BroadcastID, by user: String) async throws { try await store.close(broadcast, by: user) }

  func estimatedDevices(of audiences: [Audience], hub: HubName) async throws -> [Int] {
    try requirePresence()
    if let devices { return audiences.map { _ in devices } }
    return try await store.estimatedDevices(of: audiences, hub: hub)
  }

  func quotaUse(
    hub: HubName, user: String?, after: String?, limit: Int, at now: UnixTime
  ) async throws -> [QuotaUse] {
    try await store.quotaUse(hub: hub, user: user, after: after, limit: limit, at: now)
  }
}
