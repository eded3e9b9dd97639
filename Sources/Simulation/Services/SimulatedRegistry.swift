import FanfareCore

/// The model of the registry: devices, and the state of broadcasts and quotas.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedRegistry: @unchecked Sendable {
  struct Behaviour {
    /// How long a request takes, in microseconds.
    var latency: ClosedRange<World.Time> = .milliseconds(1)...(.milliseconds(8))
    /// The share of requests that fail.
    var failures = 0.0
  }

  let world: World
  var behaviour = Behaviour()
  /// Until when it cannot be asked.
  private var downUntil: World.Time = 0
  /// All devices by ascending ids.
  private var devices: [Device] = []
  private var byUser: [String: [Int]] = [:]
  private var broadcasts: [BroadcastID: Broadcast] = [:]
  private var quotas: [PushQuota: Int64] = [:]

  /// A registration of a device.
  struct Device {
    let user: String
    let tags: Set<String>
    let target: Target
    let createdAt: UnixTime
    /// Whether it was reported dead.
    var isGone = false
  }

  private struct Broadcast {
    var pages = 0
    var isAnnounced = false
    var finished: Set<Int> = []
    var control = BroadcastControl.initial
    /// The end of the reservations of its rate, in microseconds since 1970.
    var reserved: Int64 = 0
  }

  init(in world: World) {
    self.world = world
  }

  /// Registers devices, before the world begins.
  func register(_ devices: [Device]) {
    self.devices = (self.devices + devices).sorted { $0.target.registration < $1.target.registration }
    byUser = [:]
    for (index, device) in self.devices.enumerated() { byUser[device.user, default: []].append(index) }
  }

  /// The devices of an audience that are registered now.
  func registered(_ audience: Audience) -> [Device] {
    let candidates: [Device]
    switch audience {
    case .user(let name): candidates = (byUser[name] ?? []).map { devices[$0] }
    case .tag(let tag): candidates = devices.filter { $0.tags.contains(tag) }
    case .registration(let id): candidates = devices.filter { $0.target.registration == id }
    default: candidates = devices
    }
    return candidates.filter { !$0.isGone }
  }

  /// Lets no request succeed for a while.
  func takeDown(for time: World.Time) {
    downUntil = world.now + time
    world.trace.note(world.now, "the registry is down for \(time / 1000) ms")
  }

  fileprivate func check() throws {
    guard downUntil <= world.now, !world.happens(behaviour.failures) else {
      throw RegistryError(.unavailable, "simulated failure")
    }
  }

  fileprivate func page(_ query: AudienceQuery, _ slice: RegistrationSlice, createdBefore: UnixTime?, limit: Int)
    -> AudiencePage
  {
    let all = registered(query.audience).filter { slice.contains($0.target.registration) }
    let examined = all.prefix(limit)
    let targets = examined.filter { device in
      query.platforms.contains(device.target.platform) && (createdBefore.map { device.createdAt <= $0 } ?? true)
    }
    return AudiencePage(
      targets: targets.map(\.target), examined: examined.count,
      last: all.count > limit ? examined.last?.target.registration : nil)
  }

  fileprivate func drop(_ verdicts: [DeadDevice]) -> [RegistrationID] {
    var dropped: [RegistrationID] = []
    for verdict in verdicts {
      guard let index = devices.firstIndex(where: { $0.target.registration == verdict.registration }),
        !devices[index].isGone, devices[index].target.handle == verdict.handle
      else { continue }
      devices[index].isGone = true
      dropped.append(verdict.registration)
    }
    return dropped
  }

  fileprivate func plan(_ id: BroadcastID, _ plan: BroadcastPlan) -> (pages: Int, isAnnounced: Bool) {
    if broadcasts[id, default: Broadcast()].pages == 0 { broadcasts[id, default: Broadcast()].pages = plan.pages }
    let broadcast = broadcasts[id, default: Broadcast()]
    return (broadcast.pages, broadcast.isAnnounced)
  }

  fileprivate func announce(_ id: BroadcastID) { broadcasts[id, default: Broadcast()].isAnnounced = true }
  fileprivate func finish(_ pages: [Int], of id: BroadcastID) {
    broadcasts[id, default: Broadcast()].finished.formUnion(pages)
  }
  fileprivate func finished(of id: BroadcastID, in range: Range<Int>) -> [Int] {
    broadcasts[id, default: Broadcast()].finished.filter(range.contains).sorted()
  }
  fileprivate func control(of id: BroadcastID) -> BroadcastControl { broadcasts[id]?.control ?? .initial }
  func change(_ id: BroadcastID, _ control: BroadcastControl) -> BroadcastControl {
    let former = broadcasts[id, default: Broadcast()].control
    let isFixed =
      former.state == .cancelled || (control.cause == .failures && former.state == .paused && former.cause == .caller)
    if !isFixed {
      broadcasts[id, default: Broadcast()].control = BroadcastControl(
        control.state, because: control.cause, rate: former.rate)
    }
    return self.control(of: id)
  }
  fileprivate func limit(_ id: BroadcastID, to rate: BroadcastRate) -> BroadcastControl {
    broadcasts[id, default: Broadcast()].control.rate = rate
    return control(of: id)
  }
  fileprivate func reserve(_ pushes: Int, of id: BroadcastID, perSecond: Int, at now: UnixTime) -> UnixTime {
    let start = PushQuota.start(behind: broadcasts[id]?.reserved ?? 0, at: now)
    broadcasts[id, default: Broadcast()].reserved = PushQuota.end(of: pushes, from: start, perSecond: perSecond)
    return UnixTime(milliseconds: (start + 999) / 1000)
  }
  fileprivate func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) -> UnixTime {
    let reservation = quota.reservation(of: pushes, behind: quotas[quota] ?? 0, at: now)
    quotas[quota] = reservation.end
    return UnixTime(milliseconds: (reservation.start + 999) / 1000)
  }
}

/// The registry as one process sees it.
struct RegistryConnection: DeviceRegistry, BroadcastStore, PushQuotaStore {
  private let registry: SimulatedRegistry
  private let process: SimulatedProcess

  init(of process: SimulatedProcess, to registry: SimulatedRegistry) {
    self.registry = registry
    self.process = process
  }

  /// A request and its answer: what it changes happens half-way, and its answer may be lost.
  private func ask<Value>(_ request: (SimulatedRegistry) throws -> Value) async throws -> Value {
    let latency = registry.world.random(registry.behaviour.latency)
    do {
      try await process.pause(latency / 2)
      guard !process.isDead else { throw CancellationError() }
      guard !process.cut.contains(.registry) else { throw RegistryError(.unavailable, "cut off") }
      try registry.check()
      let answer = try request(registry)
      try await process.pause(latency - latency / 2)
      return answer
    } catch is CancellationError {
      throw RegistryError(.unavailable, "the process has died", isOutcomeUnknown: true)
    }
  }

  func hubs() async throws -> [HubName] { try await ask { _ in [.default] } }

  func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    try await ask { registry in
      queries.map { registry.page($0, .whole, createdBefore: $0.createdBefore, limit: limit) }
    }
  }

  func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await ask { $0.page(query, slice, createdBefore: createdBefore, limit: limit) }
  }

  func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    try await ask { $0.drop(verdicts) }
  }

  func check() async throws { try await ask { _ in } }

  // What devices do is not simulated yet.

  private static let isReadOnly = RegistryError(.forbidden, "no device registers in the simulation")
  func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    throw Self.isReadOnly
  }
  func complete(
    _ request: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration { throw Self.isReadOnly }
  func install(_ request: DeviceRequest, at now: UnixTime) async throws -> Registration {
    throw Self.isReadOnly
  }
  func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws { throw Self.isReadOnly }
  func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? { nil }

  // Broadcasts.

  func plan(_ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime) async throws -> (
    pages: Int, isAnnounced: Bool
  ) {
    try await ask { $0.plan(broadcast, plan) }
  }
  func announce(_ broadcast: BroadcastID) async throws { try await ask { $0.announce(broadcast) } }
  func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] {
    try await ask { $0.finished(of: broadcast, in: range) }
  }
  func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws {
    try await ask { $0.finish(pages, of: broadcast) }
  }
  func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] {
    try await ask { registry in broadcasts.map(registry.control) }
  }
  func control(_ broadcast: BroadcastID, _ control: BroadcastControl, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await ask { $0.change(broadcast, control) }
  }
  func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await ask { $0.limit(broadcast, to: rate) }
  }
  func reserve(_ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime) async throws
    -> UnixTime
  {
    try await ask { $0.reserve(pushes, of: broadcast, perSecond: perSecond, at: now) }
  }
  func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? { nil }

  func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await ask { $0.reserve(pushes, of: quota, at: now) }
  }
}
