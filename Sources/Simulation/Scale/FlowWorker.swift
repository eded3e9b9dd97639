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
    /// Pushes of single sends in flight, by the step of their answer; the same of broadcasts.
    var answers: Wheel
    var broadcastAnswers: Wheel
    /// The most pushes in flight.
    let places: Int
    /// Whether single pushes had to wait for a place.
    var fullSteps = 0
    /// The sum of the pushes in flight of all steps, and the most.
    var flying = 0
    var mostFlying = 0
  }

  private let flow: Flow
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
    self.flow = flow
    let configuration = flow.profile.worker
    limits = configuration.limits
    costs = flow.profile.costs
    cpu = Station("worker", machines: 1, cores: flow.profile.cores, delay: 0)
    // Pushes without an answer are given up by then.
    let longest = flow.steps(World.Time.seconds(21))
    lanes = flow.services.map { service in
      Lane(
        answers: Wheel(steps: longest), broadcastAnswers: Wheel(steps: longest),
        places: min(configuration.limits.maximumPushesPerSender, service.streams))
    }
    settling = Wheel(steps: longest)
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
  var waiting: Int { lanes.reduce(0) { $0 + $1.queue.count } }
  var isIdle: Bool { held == 0 && !pages.isBusy }

  /// One step of time.
  func advance(_ step: Int) {
    guard phase != .down else { return }
    cpu.begin(flow.seconds, at: flow.world.now)
    receiveAnswers(step)
    if phase == .running, !isRevoking { takeRecords(step) }
    for lane in lanes.indices { handOver(lane, step) }
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
    held -= settled
    flow.counts.settled += settled
    uncommitted += settled
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
    var taken = 0
    for offset in partitions.indices {
      // Another partition is the first in each step.
      let partition = partitions[(step + offset) % partitions.count]
      guard flow.partitions[partition].idleSince == nil else { continue }
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
    while let cohort = lanes[lane].queue.pop(room) {
      room -= cohort.count
      let age = World.Time(step - cohort.born) * flow.step + flow.passage
      for _ in 0..<cohort.count {
        let time = flow.services[lane].answerTime()
        lanes[lane].answers.add(1, in: flow.steps(time), after: step)
        flow.services[lane].deliver(after: age + time)
      }
    }
    if lanes[lane].queue.count > 0 { lanes[lane].fullSteps += 1 }
    let flying = lanes[lane].answers.count + lanes[lane].broadcastAnswers.count
    lanes[lane].flying += flying
    lanes[lane].mostFlying = max(lanes[lane].mostFlying, flying)
  }

  private func walkPages(_ step: Int) {
    guard flow.hasBroadcasts else { return }
    pages.advance(step, flow, partitions, &cpu, &lanes, inFlight: inFlight)
  }

  /// Puts everything that no commit covers back into its partitions: the process has died.
  func die(_ step: Int) {
    let open = lanes.indices.reduce(0) { $0 + lanes[$1].answers.clear() } + settling.clear() + uncommitted
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
