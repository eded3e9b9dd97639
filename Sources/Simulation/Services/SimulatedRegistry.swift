import DequeModule
import FanfareCore
import Registry

/// The model of the registry: a primary, and a standby that repeats its changes a while later.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedRegistry: @unchecked Sendable {
  struct Behaviour {
    /// How long a request takes.
    var latency = Latency(.milliseconds(1)...(.milliseconds(8)), slowest: .seconds(2))
    /// The share of requests that fail; half of them after they were carried out.
    var failures = 0.0
    /// How far the standby is behind the primary, in microseconds; it must be set before the first change.
    var lag: World.Time = 0
    /// The share of look-ups that the standby answers.
    var stale = 0.0
  }

  private typealias Change = (inout RegistryState) -> Void

  let world: World
  var behaviour = Behaviour()
  /// Told about the pages that a worker is about to report as finished.
  var onFinish: ([Int], BroadcastID) -> Void = { _, _ in }
  /// Until when it cannot be asked.
  private var downUntil: World.Time = 0
  private(set) var state = RegistryState()
  private var standby = RegistryState()
  /// The changes that the standby has not made yet.
  private var log: Deque<(time: World.Time, change: Change)> = []

  init(in world: World) {
    self.world = world
  }

  /// Registers devices before the world begins.
  func register(_ registrations: [Registration]) {
    // By ascending ids, so that each is the last one.
    for registration in registrations.sorted(by: { $0.id < $1.id }) { state.insert(registration) }
    standby = state
  }

  /// Lets no request succeed for a while.
  func takeDown(for time: World.Time) {
    downUntil = max(downUntil, world.now + time)
    world.note("registry", "registry", "is down", for: time, then: "is up")
  }

  /// The primary is gone: after a while the standby, without the last changes, is the primary.
  func failOver(after time: World.Time) {
    if behaviour.lag > 0 {
      replicate()
      world.trace.note(world.now, "the registry fails over and loses \(log.count) changes")
      log.removeAll()
      state = standby
    }
    takeDown(for: time)
  }

  /// Carries out the request of a change.
  func change<Value>(_ change: @escaping (inout RegistryState) throws -> Value) throws -> Value {
    let value = try change(&state)
    if behaviour.lag > 0 {
      replicate()
      // A change that has succeeded here succeeds on the standby, which then has had the same changes.
      log.append((world.now, { state in _ = try? change(&state) }))
    }
    return value
  }

  /// The state that answers a look-up.
  func stateOfLookUp() -> RegistryState {
    guard behaviour.lag > 0, world.happens(behaviour.stale) else { return state }
    replicate()
    return standby
  }

  private func replicate() {
    while let (time, change) = log.first, time + behaviour.lag <= world.now {
      log.removeFirst()
      change(&standby)
    }
  }

  fileprivate func check() throws {
    if downUntil > world.now { throw RegistryError(.unavailable, "simulated outage") }
  }
}

/// The registry as one process sees it.
struct RegistryConnection: DeviceRegistry, BroadcastStore, PushQuotaStore, ScheduledSendStore {
  private let registry: SimulatedRegistry
  private let process: SimulatedProcess
  private let promises: Promises?

  init(of process: SimulatedProcess, to registry: SimulatedRegistry, _ promises: Promises? = nil) {
    self.registry = registry
    self.process = process
    self.promises = promises
  }

  /// A request and its answer: it is carried out half-way, and its answer may be lost.
  private func ask<Value>(_ request: (SimulatedRegistry) throws -> Value) async throws -> Value {
    let latency = registry.behaviour.latency.sample(in: registry.world)
    let fails = registry.world.happens(registry.behaviour.failures)
    let isCarriedOut = fails && registry.world.happens(0.5)
    do {
      try await process.pause(latency / 2)
      guard !process.isDead else { throw CancellationError() }
      guard !process.cut.contains(.registry) else { throw RegistryError(.unavailable, "cut off") }
      try registry.check()
      if fails, !isCarriedOut { throw RegistryError(.unavailable, "simulated failure") }
      let answer = try request(registry)
      try await process.pause(latency - latency / 2)
      if fails { throw RegistryError(.unavailable, "the answer is lost", isOutcomeUnknown: true) }
      return answer
    } catch is CancellationError {
      throw RegistryError(.unavailable, "the process has died", isOutcomeUnknown: true)
    }
  }

  private func change<Value>(_ change: @escaping (inout RegistryState) throws -> Value) async throws -> Value {
    try await ask { try $0.change(change) }
  }

  private func change<Value>(
    _ id: BroadcastID, _ change: @escaping (inout BroadcastState) -> Value
  ) async throws -> Value {
    try await self.change { change(&$0.broadcasts[id, default: BroadcastState()]) }
  }

  private func lookUp(
    _ queries: [AudienceQuery], _ find: (RegistryState, AudienceQuery) -> AudiencePage
  ) async throws -> [AudiencePage] {
    let askedAt = registry.world.now
    let pages = try await ask { registry in
      let state = registry.stateOfLookUp()
      return queries.map { find(state, $0) }
    }
    promises?.found(pages, of: queries, by: process.name, askedAt: askedAt)
    return pages
  }

  // Devices.

  func hubs() async throws -> [HubName] { try await ask { $0.state.hubs } }

  func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    try await lookUp(queries) { state, query in
      // Another audience's moment of creation does not matter.
      let moment = if case .registration = query.audience { query.createdBefore } else { UnixTime?.none }
      return state.page(query, .whole, createdBefore: moment, limit: limit)
    }
  }

  func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await lookUp([query]) { $0.page($1, slice, createdBefore: createdBefore, limit: limit) }[0]
  }

  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    try await change { [promises] state in
      let dropped = state.drop(verdicts)
      promises?.dropped(verdicts.filter { dropped.contains($0.registration) })
      return dropped
    }
  }

  func check() async throws { try await ask { _ in } }

  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    let id = newID()
    return try await change { $0.issue(id, hub: hub, handle: handle, at: now) }
  }
  func complete(
    _ request: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration {
    try await change { try $0.complete(request, if: condition, at: now) }
  }
  func install(_ request: DeviceRequest, at now: UnixTime) async throws -> Registration {
    let id = newID()
    return try await change { try $0.install(request, orAs: id, at: now) }
  }
  func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws {
    try await change { try $0.remove(id, hub: hub, user: user, if: condition) }
  }
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await ask { $0.state[id, hub] }
  }

  private func newID() -> RegistrationID { .random(using: &registry.world.chance) }

  // Broadcasts and quotas.

  func plan(_ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime) async throws -> (
    pages: Int, segments: Int, isAnnounced: Bool
  ) {
    try await change(broadcast) { $0.plan(plan, at: now) }
  }
  func announce(_ broadcast: BroadcastID) async throws { try await change(broadcast) { $0.announce() } }
  func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] {
    try await ask { $0.state.broadcasts[broadcast]?.finished.keys.filter(range.contains).sorted() ?? [] }
  }
  func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws {
    registry.onFinish(pages, broadcast)
    try await change(broadcast) { $0.finish(pages, at: now) }
  }
  func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] {
    try await ask { registry in broadcasts.map { registry.state.broadcasts[$0]?.control ?? .initial } }
  }
  func control(_ broadcast: BroadcastID, _ control: BroadcastControl, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await change(broadcast) { $0.steer(control) }
  }
  func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await change(broadcast) { $0.limit(to: rate) }
  }
  func reserve(_ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime) async throws
    -> UnixTime
  {
    try await change(broadcast) { $0.reserve(pushes, perSecond: perSecond, at: now) }
  }
  func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? {
    try await ask { $0.state.broadcasts[broadcast]?.progress(at: now) }
  }
  func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await change { $0.reserve(pushes, of: quota, at: now) }
  }
  // Scheduled sends.

  func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws -> QuotaName? {
    try await change { $0.schedule.hold(sends) }
    return nil
  }
  func nextDue() async throws -> UnixTime? { try await ask { $0.state.schedule.nextDue } }
  func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    try await change { $0.schedule.takeDue(limit, for: lease, until: end, at: now) }
  }
  func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await change { $0.schedule.finish(sends, of: lease) }
  }
  func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await change { $0.schedule.release(sends, of: lease, until: moment) }
  }
  func control(_ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime) async throws
    -> ScheduledSend?
  {
    try await change { $0.schedule.control(send, hub: hub, to: state) }
  }
  func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await ask { $0.state.schedule.scheduled(send, hub: hub) }
  }
  func waiting(_ query: SendQuery) async throws -> [ScheduledSend] {
    try await ask { $0.state.schedule.waiting(query) }
  }
}
