import FanfareCore
import Worker

/// A worker as flows: its places in memory and in flight, its processors, its look-ups, its commits.
final class FlowWorker {
  enum Phase {
    case running
    /// Takes no records any more; ends when nothing is in flight.
    case draining
    case down
  }

  /// The part of a worker that serves one push service.
  struct Lane {
    var queue = CohortQueue()
    var outage: Outage
    var quota: PlatformQuota
    /// Pushes of single sends in flight, by the step of their answer; the same of broadcasts.
    var answers: Wheel
    var broadcastAnswers: Wheel
    /// The most pushes in flight.
    let places: Int
    /// Whether single pushes had to wait for a place.
    /// The sum of the pushes in flight of all steps, and the most.
    var flying = 0
    var mostFlying = 0
  }

  private let flow: Flow
  private let number: Int
  private let limits: WorkerConfiguration.Limits
  private let costs: Costs
  var phase = Phase.running
  /// Whether it gives back partitions, and reads none meanwhile.
  var isRevoking = false
  var partitions: [Int] = []
  private(set) var cpu: Station
  private(set) var lanes: [Lane]
  private var pages: PageWalk
  /// Records that are taken and not settled.
  private(set) var held = 0
  /// Records whose status is on its way.
  private var settling: Wheel
  /// Records whose pushes are on their way to a retry topic.
  private var deferring: Wheel
  /// Records settled since the last commit.
  private var uncommitted = 0
  private var nextCommit = 0
  private let commitSteps: Int
  /// Sends that it has divided among the platforms.
  private var dealt = 0
  private let shares: [Double]
  private(set) var mostHeld = 0
  /// The sum of `held` of all steps.
  private(set) var heldSum = 0

  init(_ number: Int, in flow: Flow) {
    (self.flow, self.number) = (flow, number)
    let configuration = flow.profile.worker
    limits = configuration.limits
    costs = flow.profile.costs
    cpu = Station("worker", machines: 1, cores: flow.profile.cores, delay: 0)
    // Pushes without an answer are given up by then.
    let longest = flow.steps(World.Time.seconds(21))
    lanes = flow.services.map { service in
      Lane(
        outage: Outage(configuration), quota: PlatformQuota(service.row?.quota),
        answers: Wheel(steps: longest), broadcastAnswers: Wheel(steps: longest),
        places: min(configuration.limits.maximumPushesPerSender, service.streams))
    }
    settling = Wheel(steps: longest)
    deferring = Wheel(steps: longest)
    commitSteps = flow.steps(World.Time(configuration.times.commitInterval))
    // Workers commit at different moments.
    nextCommit = number % commitSteps
    var sum = 0.0
    shares = flow.services.map {
      sum += $0.share
      return sum
    }
    pages = PageWalk(configuration.broadcasts)
  }

  /// Pushes of single sends in flight.
  var inFlight: Int { lanes.reduce(0) { $0 + $1.answers.count } }
  /// Sends that are taken and not handed over.
  var waiting: Int { lanes.reduce(0) { $0 + $1.queue.count + $1.outage.waiting } }
  /// Deferred pushes that have not come back.
  var awayCount: Int { lanes.reduce(0) { $0 + $1.outage.awayCount } }
  var isIdle: Bool { held == 0 && !pages.isBusy }

  /// One step of time.
  func advance(_ step: Int) {
    guard phase != .down else { return }
    cpu.begin(flow.seconds, at: flow.world.now)
    receiveAnswers(step)
    for lane in lanes.indices { lanes[lane].outage.release(at: step, in: flow) }
    if phase == .running, !isRevoking { takeRecords(step) }
    for lane in lanes.indices {
      if lanes[lane].outage.note(isDown: flow.services[lane].isDown(at: flow.world.now), at: flow.world.now) {
        handOver(lane, step)
      } else {
        keepAway(lane, step)
      }
      deferOverQuota(lane, step)
      countPlaces(lane)
    }
    if phase == .running { walkPages(step) }
    mostHeld = max(mostHeld, held)
    heldSum += held
  }

  private func receiveAnswers(_ step: Int) {
    for lane in lanes.indices {
      let answered = lanes[lane].answers.take(at: step)
      if answered > 0 { settling.add(answered, in: flow.settleSteps, after: step) }
      _ = lanes[lane].broadcastAnswers.take(at: step)
      flow.statuses += answered
    }
    let settled = settling.take(at: step)
    let deferred = deferring.take(at: step)
    held -= settled + deferred
    flow.counts.settled += settled
    uncommitted += settled + deferred
    guard uncommitted > 0, step >= nextCommit || uncommitted >= limits.commitRecords else { return }
    uncommitted = 0
    nextCommit = step + commitSteps
    flow.counts.commits += 1
    if flow.isForming { flow.counts.interim += 1 }
  }

  /// Takes records as far as there is room, time and an answer of the registry.
  private func takeRecords(_ step: Int) {
    let requests = max(1, Double(flow.step) / Double(max(1, flow.registry.latency)))
    var room = min(limits.maximumRecords - held, cpu.allowance(cost: costs.single))
    // One request is open at a time.
    room = min(room, Int(clamping: Double(limits.lookUpBatch) * requests))
    room = min(room, flow.registry.allowance(cost: costs.lookUp))
    guard room > 0, !partitions.isEmpty else { return }
    room -= readmit(room)
    var taken = 0
    for offset in partitions.indices {
      // Another partition is the first in each step.
      let partition = partitions[(step + offset) % partitions.count]
      guard flow.partitions[partition].idleSince == nil, flow.partitions[partition].downUntil <= flow.world.now else {
        continue
      }
      while let cohort = flow.partitions[partition].backlog.pop(room - taken) {
        taken += cohort.count
        divide(cohort)
      }
      if taken == room { break }
    }
    guard taken > 0 else { return }
    held += taken
    cpu.work(Double(taken) * costs.single)
    let asked = min(Double(taken), requests)
    flow.registry.work(Double(taken) * costs.lookUp + asked * costs.request)
    flow.counts.lookUps += taken
    flow.counts.lookUpRequests += Int(asked)
  }

  /// Takes deferred records that are back. Their devices are in them.
  private func readmit(_ room: Int) -> Int {
    var taken = 0
    for lane in lanes.indices {
      while let cohort = lanes[lane].outage.returned.pop(room - taken) {
        taken += cohort.count
        lanes[lane].queue.append(cohort)
      }
    }
    held += taken
    cpu.work(Double(taken) * costs.deferral)
    return taken
  }

  /// Keeps the pushes to a service that does not work: until the circuit opens in memory, then in the retry topics.
  private func keepAway(_ lane: Int, _ step: Int) {
    guard lanes[lane].outage.isOpen else {
      while let cohort = lanes[lane].queue.pop(.max) { lanes[lane].outage.rest(cohort) }
      return
    }
    while let cohort = lanes[lane].outage.popResting() { deferPushes(lane, cohort, step) }
    while let cohort = lanes[lane].queue.pop(.max) { deferPushes(lane, cohort, step) }
  }

  private func deferPushes(_ lane: Int, _ cohort: Cohort, _ step: Int) {
    lanes[lane].outage.deferPushes(cohort, at: step, in: flow)
    deferring.add(cohort.count, in: flow.settleSteps, after: step)
    flow.deferrals += cohort.count
    flow.counts.deferred += cohort.count
  }

  /// Divides sends among the platforms, by their shares.
  private func divide(_ cohort: Cohort) {
    var before = 0
    for lane in lanes.indices {
      let (start, end) = (Double(dealt) * shares[lane], Double(dealt + cohort.count) * shares[lane])
      let due = Int(clamping: end) - Int(clamping: start)
      let until = lane == lanes.count - 1 ? cohort.count : min(cohort.count, max(before, due))
      lanes[lane].queue.append(Cohort(born: cohort.born, count: until - before))
      before = until
    }
    dealt += cohort.count
  }

  private func handOver(_ lane: Int, _ step: Int) {
    var room = min(
      lanes[lane].places - lanes[lane].answers.count - lanes[lane].broadcastAnswers.count,
      limits.maximumPushes - inFlight)
    while let cohort = lanes[lane].outage.popResting() { lanes[lane].queue.append(cohort) }
    if flow.services[lane].row != nil { room = min(room, allowed(lane, step)) }
    while let cohort = lanes[lane].queue.pop(room) {
      room -= cohort.count
      let age = World.Time(step - cohort.born) * flow.step + flow.passage
      for _ in 0..<cohort.count {
        let time = flow.services[lane].answerTime()
        lanes[lane].answers.add(1, in: flow.steps(time), after: step)
        flow.services[lane].deliver(after: age + time)
      }
    }
  }

  /// Defers the youngest pushes that exceed what may wait for the quota.
  private func deferOverQuota(_ lane: Int, _ step: Int) {
    guard let quota = flow.services[lane].row?.quota else { return }
    let most = quota.mostWaiting(flow.profile.worker)
    while let cohort = lanes[lane].queue.popLast(lanes[lane].queue.count - most) { deferPushes(lane, cohort, step) }
  }

  /// How many of the waiting pushes the quota allows now. Asks for the next reservation.
  private func allowed(_ lane: Int, _ step: Int) -> Int {
    let now = flow.world.wall
    var count = 0
    while count < lanes[lane].queue.count, lanes[lane].quota.allowsPush(at: now) {
      lanes[lane].quota.spend()
      count += 1
    }
    let isWaiting = count < lanes[lane].queue.count
    if let request = lanes[lane].quota.request(isWaiting: isWaiting, checks: 0, at: now) {
      flow.services[lane].row?.ask(number, request.pushes, lead: request.lead, in: flow.world)
    }
    return count
  }

  /// The row has answered.
  func grant(_ lane: Int, _ pushes: Int, from moment: UnixTime) {
    lanes[lane].quota.grant(pushes, from: moment, at: flow.world.wall)
  }

  private func countPlaces(_ lane: Int) {
    let flying = lanes[lane].answers.count + lanes[lane].broadcastAnswers.count
    lanes[lane].flying += flying
    lanes[lane].mostFlying = max(lanes[lane].mostFlying, flying)
  }

  private func walkPages(_ step: Int) {
    guard flow.hasBroadcasts else { return }
    pages.advance(step, flow, partitions, &cpu, &lanes)
  }

  /// Puts everything that no commit covers back into its partitions: the process has died.
  func die(_ step: Int) {
    let open = lanes.indices.reduce(0) { $0 + lanes[$1].answers.clear() } + settling.clear() + uncommitted
    _ = deferring.clear()
    flow.counts.repeated += open
    flow.lost += open
    flow.counts.settled -= uncommitted
    var lost = open
    for lane in lanes.indices {
      _ = lanes[lane].broadcastAnswers.clear()
      while let cohort = lanes[lane].queue.pop(.max) { lost += cohort.count }
    }
    // A worker that has given back all partitions has nothing open, unless it was too slow: then any partition will do.
    let heirs = partitions.isEmpty ? [0] : partitions
    for (index, partition) in heirs.enumerated() {
      let count = lost / (heirs.count - index)
      lost -= count
      flow.partitions[partition].backlog.putBack(Cohort(born: step, count: count))
    }
    flow.counts.repeated += pages.giveUp(flow)
    (held, uncommitted, phase) = (0, 0, .down)
  }

  /// Commits and ends, when everything is settled.
  func end() {
    flow.counts.commits += 1
    uncommitted = 0
    phase = .down
    _ = pages.giveUp(flow)
  }
}
