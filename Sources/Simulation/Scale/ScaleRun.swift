import FanfareCore
import Glibc
import RDKafka
import Worker

/// A run of a scale profile: a deployment as flows in a world.
///
/// Rebalances, faults and restarts are events of the world; between them time passes in steps.
package final class ScaleRun {
  private let world: World
  private let profile: ScaleProfile
  private let flow: Flow
  private var workers: [FlowWorker] = []
  private var group: FlowGroup?
  private var step = 0
  /// The devices of broadcasts, when their last page was finished, and when the first was sent.
  private var audience = 0
  private var broadcastAt: World.Time?
  private var broadcastEnd: World.Time?
  /// The deployment of new processes: the next worker, and when it began and ended.
  private var nextRestart = 0
  private var deployAt: World.Time?
  private var deployEnd: World.Time?
  /// The longest time that a send has waited in the log, and the most that have waited.
  private var oldest: World.Time = 0
  private var mostLag = 0
  private var lagEnd: World.Time?
  private var lastFault: World.Time?
  /// The end of a service's outage, and when the last deferred record was back; the most records deferred in a second.
  private var outageEnd: World.Time?
  private var allBack: World.Time = 0
  private var mostDeferrals = 0
  private var deferredBefore = 0

  package init(_ profile: ScaleProfile, seed: UInt64, trace: Trace = Trace()) {
    self.profile = profile
    world = World(seed: seed, trace: trace)
    flow = Flow(profile, in: world)
  }

  package func run() -> ScaleReport {
    workers = (0..<profile.workers).map { FlowWorker($0, in: flow) }
    let group = FlowGroup(
      members: profile.workers, partitions: profile.partitions, heartbeat: World.Time(profile.kafka.heartbeatInterval),
      session: World.Time(profile.kafka.sessionTimeout), in: world
    ) { [unowned self] in change($0, $1) }
    self.group = group
    group.settle()
    for event in profile.events { world.after(World.Time(event.after)) { [unowned self] in begin(event.kind) } }
    tick()
    world.run(until: World.Time(profile.duration))
    defer { world.stop() }
    return report(group)
  }

  // Time.

  private func tick() {
    advance()
    world.after(flow.step) { [unowned self] in tick() }
  }

  private func advance() {
    flow.begin()
    for lane in flow.services.indices {
      for answer in flow.services[lane].row?.arrived(at: world.now) ?? [] {
        workers[answer.worker].grant(lane, answer.pushes, from: answer.from)
      }
    }
    flow.isForming = group?.isStable == false
    let mean = profile.sendsPerSecond * flow.seconds / Double(profile.partitions)
    let floor = exp(-mean)
    var accepted = 0
    for partition in flow.partitions.indices {
      let count = arrivals(mean, floor)
      accepted += count
      flow.partitions[partition].backlog.append(Cohort(born: step, count: count))
    }
    flow.counts.accepted += accepted
    // Another worker is the first in each step, because all share the registry.
    var running = 0
    for offset in workers.indices {
      let worker = workers[(step + offset) % workers.count]
      worker.advance(step)
      if worker.phase != .down { running += 1 }
    }
    flow.produce(sends: accepted, workers: running)
    step += 1
    if step % flow.steps(World.Time.seconds(1)) == 0 { observe() }
  }

  /// A number of arrivals in a step: Poisson's distribution.
  private func arrivals(_ mean: Double, _ floor: Double) -> Int {
    guard mean < 30 else {
      let first = Double.random(in: 1e-300..<1, using: &world.chance)
      let second = Double.random(in: 0..<1, using: &world.chance)
      let normal = (-2 * log(first)).squareRoot() * cos(2 * Double.pi * second)
      return max(0, Int(clamping: (mean + mean.squareRoot() * normal).rounded()))
    }
    var (count, product) = (0, Double.random(in: 0..<1, using: &world.chance))
    while product > floor {
      count += 1
      product *= Double.random(in: 0..<1, using: &world.chance)
    }
    return count
  }

  private func observe() {
    let (lag, age) = (flow.lag, flow.age(at: step))
    oldest = max(oldest, age)
    mostLag = max(mostLag, lag)
    if age > .seconds(1) { lagEnd = world.now }
    mostDeferrals = max(mostDeferrals, flow.counts.deferred - deferredBefore)
    deferredBefore = flow.counts.deferred
    if outageEnd != nil, workers.contains(where: { $0.awayCount > 0 }) { allBack = world.now }
    if flow.hasBroadcasts, broadcastEnd == nil, flow.counts.devices >= audience { broadcastEnd = world.now }
    world.trace.note(
      world.now,
      "\(flow.counts.accepted) accepted, \(flow.services.map(\.delivered)) delivered, \(lag) wait, "
        + "\(flow.counts.devices) devices")
  }

  // Faults.

  private func begin(_ kind: ScaleProfile.Event.Kind) {
    world.trace.note(world.now, "\(kind)")
    lastFault = world.now
    switch kind {
    case .broadcast(let devices): broadcast(to: devices)
    case .outage(let platform, let time):
      for index in flow.services.indices where flow.services[index].platform == platform {
        flow.services[index].downUntil = world.now + World.Time(time)
        outageEnd = world.now + World.Time(time)
      }
    case .deaths(let share): kill(share)
    case .regionLoss(let share, let leaders, let registry):
      kill(share)
      flow.kafka.lose(share)
      flow.registry.downUntil = world.now + World.Time(registry)
      for partition in flow.partitions.indices where Double(partition % 100) < share * 100 {
        flow.partitions[partition].downUntil = world.now + World.Time(leaders)
      }
    case .deploy(let atOnce):
      deployAt = world.now
      for _ in 0..<atOnce { restartNext() }
    }
  }

  private func broadcast(to devices: Int) {
    let broadcasts = profile.worker.broadcasts
    let perPage = broadcasts.pageDevices - broadcasts.headStart
    let pages = max(1, devices / perPage)
    let segments = broadcasts.segments(pages: pages)
    for segment in 0..<segments {
      let range = SegmentRecord.range(ofSegment: segment, of: segments, pages: pages)
      let partition = Int(world.random(0...Int64(profile.partitions - 1)))
      flow.partitions[partition].segments.append(Flow.Segment(devicesPerPage: perPage, pages: range.count))
    }
    audience += pages * perPage
    broadcastAt = broadcastAt ?? world.now
    flow.hasBroadcasts = true
  }

  private func kill(_ share: Double) {
    for index in workers.indices.prefix(Int(clamping: Double(workers.count) * share)) { kill(index) }
  }

  private func kill(_ index: Int) {
    let (worker, partitions) = (workers[index], workers[index].partitions)
    worker.die(step)
    worker.partitions = []
    for partition in partitions { flow.partitions[partition].idleSince = world.now }
    group?.die(index)
  }

  // Restarts.

  private func restartNext() {
    guard nextRestart < workers.count else {
      if group?.isStable == true, workers.allSatisfy({ $0.phase == .running }) { deployEnd = deployEnd ?? world.now }
      return
    }
    let index = nextRestart
    nextRestart += 1
    workers[index].phase = .draining
    let deadline = world.now + World.Time(profile.worker.times.drainDeadline)
    awaitDrain(index, deadline)
  }

  private func awaitDrain(_ index: Int, _ deadline: World.Time) {
    let worker = workers[index]
    for partition in worker.partitions where flow.partitions[partition].idleSince == nil {
      flow.partitions[partition].idleSince = world.now
    }
    guard worker.isIdle || world.now >= deadline else {
      return world.after(flow.step) { [unowned self] in awaitDrain(index, deadline) }
    }
    if worker.isIdle { worker.end() } else { worker.die(step) }
    if !profile.isStatic {
      worker.partitions = []
      group?.leave(index)
    }
    world.after(World.Time(profile.restart)) { [unowned self] in comeBack(index) }
  }

  private func comeBack(_ index: Int) {
    workers[index].phase = .running
    for partition in workers[index].partitions { take(partition) }
    if !profile.isStatic { group?.join(index) }
    awaitShare(index)
  }

  /// The next worker is restarted when this one has partitions and the group has formed.
  private func awaitShare(_ index: Int) {
    guard group?.isStable == true, !workers[index].partitions.isEmpty || profile.workers > profile.partitions else {
      return world.after(.milliseconds(500)) { [unowned self] in awaitShare(index) }
    }
    restartNext()
  }

  // The group.

  private func change(_ member: Int, _ change: FlowGroup.Change) {
    let worker = workers[member]
    switch change {
    case .assign(let partitions):
      worker.partitions += partitions
      // The offsets of the last owner are asked for first.
      let recovery = flow.passage + flow.kafka.latency
      world.after(step == 0 ? 0 : recovery) { [unowned self] in for partition in partitions { take(partition) } }
    case .revoke(let partitions):
      let leaving = Set(partitions)
      worker.partitions.removeAll(where: leaving.contains)
      worker.isRevoking = true
      for partition in partitions { flow.partitions[partition].idleSince = world.now }
      // Work in flight is awaited, and the last positions are committed.
      let times = profile.worker.times
      let last = World.Time(times.statusLinger) + flow.kafka.latency * 2
      let drain = min(World.Time(times.revokeDeadline), flow.tail) + last
      world.after(drain) { [unowned self] in
        worker.isRevoking = false
        group?.released(member)
      }
    }
  }

  /// A partition is read again.
  private func take(_ partition: Int) {
    guard let since = flow.partitions[partition].idleSince else { return }
    flow.partitions[partition].idleSince = nil
    flow.pauses.add(world.now - since)
  }

  // The outcome.

  private func report(_ group: FlowGroup) -> ScaleReport {
    ScaleReport(
      profile: profile, flow: flow, workers: workers, group: group, steps: step, digest: world.trace.digest.value,
      oldest: oldest, mostLag: mostLag, mostDeferrals: mostDeferrals,
      allBack: outageEnd.map { allBack - $0 },
      recovery: lastFault.flatMap { fault in lagEnd.map { max(0, $0 - fault) } },
      broadcast: broadcastAt.map { (audience, (broadcastEnd ?? world.now) - $0, broadcastEnd != nil) },
      deploy: deployAt.map { (nextRestart, (deployEnd ?? world.now) - $0, deployEnd != nil) })
  }
}
