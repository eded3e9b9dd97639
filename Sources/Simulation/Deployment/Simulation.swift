import FanfareCore
import RDKafka
import Worker

/// A whole deployment in one world: callers, a Kafka cluster, workers, a registry and push services, with the faults of
/// a profile.
///
/// `@unchecked Sendable`: see `World`.
package final class Simulation: @unchecked Sendable {
  /// The outcome of a run.
  package struct Report: Sendable {
    package let counts: Accounts.Counts
    package let violations: [Accounts.Violation]
    package let faults: [Profile.Fault: Int]
    /// How many faults there were, those left out included.
    package let injected: Int
    package let virtualTime: Duration
    package let steps: UInt64
    package let digest: UInt64
    /// From the post of a send to the answer to a push: p50, p99 and p99.9.
    package let latency: [Duration]
    package let coverage: Coverage
  }

  private let world: World
  private let profile: Profile
  private let topics = Topics(prefix: "simulated")
  private let cluster: SimulatedCluster
  private let registry: SimulatedRegistry
  private let services: [PushServiceModel]
  /// Those of hubs that the workers have senders for.
  private var served: [PushServiceModel] { Array(services.dropLast(2 * profile.unservedHubs)) }
  private let accounts: Accounts
  private let promises: Promises
  private let counting: Counting
  private let configuration: WorkerConfiguration
  private let caller: SimulatedProcess
  private let producer: SimulatedProducer
  private let operators: Operators
  private let schedulers: Schedulers
  private let liveness: Liveness
  private var workers: [WorkerProcess] = []
  private var started = 0
  private var faults: [Profile.Fault: Int] = [:]
  private var injected = 0
  /// The numbers of the faults that are left out.
  private let without: Set<Int>
  private let seed: UInt64

  /// `without`: the numbers of the faults that are left out. `check` is asked about each push that is handed over,
  /// besides the promises.
  package init(
    _ profile: Profile, seed: UInt64, without: Set<Int> = [], trace: Trace = Trace(), check: Accounts.Check? = nil
  ) {
    (self.profile, self.seed, self.without) = (profile, seed, without)
    world = World(seed: seed, trace: trace)
    cluster = SimulatedCluster(in: world)
    registry = SimulatedRegistry(in: world)
    services = (0..<profile.hubs).flatMap { [world] number in
      let hub = number == 0 ? HubName.default : HubName("hub\(number)") ?? .default
      return [Platform.apns, .fcm].map { PushServiceModel($0, of: hub, in: world) }
    }
    configuration = WorkerProcess.configuration(profile, services: services)
    let accounts = Accounts(in: world, topics: topics, keepsOrder: profile.keepsOrder)
    accounts.check = check
    self.accounts = accounts
    counting = Counting(topics, hubs: Set(services.map(\.hub)), accounts)
    promises = Promises(in: world, profile, limits: configuration) { accounts.violate($0) }
    caller = SimulatedProcess("caller", in: world)
    producer = SimulatedProducer(of: caller, to: cluster)
    operators = Operators(at: caller, registry: registry)
    schedulers = Schedulers(
      profile, topics: topics, caller: caller, cluster: cluster, registry: registry, accounts: accounts)
    liveness = Liveness(
      of: cluster, Liveness.readings(of: topics, by: WorkerConfiguration().consumerGroup)
    ) { accounts.violate($0) }
  }

  /// Runs the world: sends and faults for the profile's duration, then until everything has settled, then the end of
  /// all workers.
  package func run() -> Report {
    prepare()
    for _ in 0..<profile.workers { startWorker() }
    postNext()
    if !profile.faults.isEmpty { injectNext() }
    if profile.isStatic { watchOwners() }
    let end = World.Time(profile.duration)
    world.run(until: end)
    heal()
    // Everything settles within its life; a worker needs a while more to notice.
    let patience = World.Time.seconds(profile.timesToLive.upperBound + 400)
    world.run(until: end + patience) { [accounts] in accounts.isSettled }
    // The last commits, and sends whose callers were not answered yet.
    world.run(until: world.now + .seconds(10))
    // A worker that has died just before leaves its last commits to another, when its session is over.
    world.run(until: world.now + .seconds(120)) { [self] in accounts.hasPositions(position) }
    accounts.checkPositions(position)
    if !profile.losesRecords { world.run(until: world.now + .seconds(300)) { [liveness] in liveness.isDone } }
    checkRecovery()
    accounts.finish(mayRepeat: profile.mayRepeat, longest: profile.longest)
    // Of two dispatches of a part only one counts, and may have reached fewer of its devices.
    if !profile.losesRecords { counting.finish(mayDiffer: profile.mayRepeat || accounts.counts.repeated > 0) }
    for worker in workers { worker.stop() }
    schedulers.stop()
    world.run(until: world.now + .seconds(60)) { [self] in workers.allSatisfy(\.isOver) && schedulers.isOver }
    if !workers.allSatisfy(\.isOver) { accounts.violate("a worker does not end") }
    if !schedulers.isOver { accounts.violate("a scheduler does not end") }
    accounts.checkPositions(position)
    var counts = accounts.counts
    counts.checks += promises.checks + counting.checks + cluster.sharing.checks + schedulers.checks + liveness.checks
    let report = Report(
      counts: counts, violations: accounts.violations, faults: faults, injected: injected,
      virtualTime: .microseconds(world.now), steps: world.steps, digest: world.trace.digest.value,
      latency: [0.5, 0.99, 0.999].map { .microseconds(accounts.latency.quantile($0)) },
      coverage: workers.reduce(into: Coverage()) { $0.add($1.steps.coverage) })
    world.stop()
    cluster.stop()
    return report
  }

  /// The position of the workers' group.
  private func position(_ partition: TopicPartition) -> Int64 {
    cluster.position(partition, of: WorkerConfiguration().consumerGroup)
  }

  /// The operator looks twice a minute whether a partition has had no owner since the last look. The coordinator does
  /// nothing about that (see `SimulatedGroup.replace`), but a member that joins makes the group share its partitions.
  private func watchOwners(besides former: Set<Int32> = []) {
    world.after(.seconds(30)) { [self] in
      let unowned = cluster.group(WorkerConfiguration().consumerGroup).unowned
      if !unowned.isDisjoint(with: former) {
        world.trace.note(world.now, "partitions \(unowned.sorted()) have no owner: the operator adds a worker")
        startWorker()
      }
      watchOwners(besides: unowned)
    }
  }

  /// Posts a send to each user, long after the last fault: the deployment works as if nothing had happened.
  private func checkRecovery() {
    // The sessions of members that have died end, and positions are committed.
    world.run(until: world.now + .seconds(60))
    let start = world.now
    for user in 0..<profile.users { post(to: .user("user\(user)"), by: served) }
    world.run(until: start + .seconds(10)) { [accounts] in accounts.isSettled(since: start) }
    if !accounts.isSettled(since: start) { accounts.violate("a send takes more than 10 s, long after the last fault") }
  }

  private func prepare() {
    if !profile.losesRecords {
      let violate: (String) -> Void = { [weak accounts] in accounts?.violate($0) }
      accounts.results = Results(in: world, registry, profile, violate: violate)
      let pages = FinishedPages(in: world, registry, operators, profile, violate: violate)
      accounts.pages = pages
      registry.onFinish = { [weak pages] in pages?.finishing($0, of: $1) }
    }
    for topic in topics.all { cluster.create(topic, partitions: profile.partitions) }
    cluster.behaviour.doubt = profile.doubt
    registry.behaviour.failures = profile.registryFailures
    registry.behaviour.latency.slow = profile.slowRequests
    (registry.behaviour.lag, registry.behaviour.stale) = (World.Time(profile.registryLag), profile.staleLookUps)
    cluster.behaviour.gaps = profile.gaps
    cluster.behaviour.knowsEpochs = world.happens(0.5)
    cluster.sharing.violate = { [accounts] in accounts.violate($0) }
    cluster.onLoss = { [accounts] in accounts.lost($0, $1, isEnd: $2) }
    let losesRecords = profile.losesRecords
    cluster.onAppend = { [accounts, counting] in
      accounts.appended($0, $1, $2)
      // A ledger that has read an offset skips the record that stands there after the log has lost its end.
      if !losesRecords { counting.appended($0, $1, $2) }
    }
    cluster.onDoubt = { [accounts] in accounts.doubted($0, $1) }
    accounts.retriesTakeCommits = { [weak cluster, topics] moment in
      topics.retries.compactMap { cluster?.group($0.name).takesCommits(since: moment) }.max() ?? moment
    }
    cluster.onCommit = { [accounts] in accounts.committed($0, $1, $2) }
    for service in services {
      service.behaviour.doubt = profile.doubt
      service.behaviour.latency.slow = profile.slowPushes
      service.behaviour.glitches = profile.glitches
      (service.behaviour.dead, service.behaviour.refusing) = (profile.dead, profile.refusing)
      service.onDelivery = { [accounts, name = service.name] in accounts.delivered($0, by: name) }
      service.onLapse = { [accounts] in accounts.lapsed($0) }
    }
    SimulatedDevices(profile, services: services, frontEnd: caller, registry: registry).changeNext()
    schedulers.start()
    if !profile.losesRecords { liveness.watch() }
  }

  // Processes.

  /// Starts a worker, with the name of one before it or a new one.
  private func startWorker(named instance: String? = nil) {
    started += 1
    let instance = profile.isStatic ? instance ?? "instance\(started)" : nil
    if let instance {
      // Another one with this name hears of it with its next heartbeat.
      for worker in workers where worker.instance == instance && !worker.process.isDead {
        trouble(worker, for: World.Time(ClusterProfile().heartbeatInterval))
      }
    }
    workers.append(
      WorkerProcess(
        "worker\(started)", configuration, instance: instance, in: world, cluster: cluster, registry: registry,
        services: served, topics: topics, accounts: accounts, promises: promises))
  }

  // Sends.

  private func postNext() {
    caller.after(world.pause(perSecond: profile.rate)) { [self] in
      // The last sends and commits have their faults, too.
      guard world.now < World.Time(profile.duration * 5 / 6) else { return }
      post()
      postNext()
    }
  }

  private func post() {
    let isBroadcast = world.happens(profile.broadcastShare)
    let audience: Audience =
      isBroadcast ? .tag("news") : .user("user\(world.random(0...Int64(profile.users - 1)))")
    guard world.happens(profile.scheduledShare) else { return post(to: audience) }
    schedulers.schedule(request(to: audience, after: .milliseconds(world.random(1_000...20_000))))
  }

  /// `services`: those whose hub it may be for; nil: all.
  private func request(
    to audience: Audience, by services: [PushServiceModel]? = nil, after delay: Duration = .zero
  ) -> SendRequest {
    let hub = world.element(of: services ?? self.services)?.hub ?? .default
    let send = SendRequest(
      id: .timeOrdered(at: world.wall, using: &world.chance), hub: hub, acceptedAt: caller.now() + delay,
      audience: audience, content: Content(message: Message(body: "hello")),
      timeToLive: Int(world.random(profile.timesToLive)),
      maximumPerSecond: audience.isBroadcast ? profile.maximumPerSecond : nil)
    if audience.isBroadcast { operators.watch(BroadcastID(hub: hub, send: send.id)) }
    return send
  }

  private func post(to audience: Audience, by services: [PushServiceModel]? = nil) {
    let send = request(to: audience, by: services)
    accounts.post(send)
    let accounts = accounts
    let record = ProducerRecord(
      topic: topics.sends, key: audience.recordKey(of: send.id, hub: send.hub), value: send.encoded())
    producer.submit([record]) { results in
      if case .success = results[0] { accounts.accept(send.id) }
    }
    // A caller that has not seen the answer posts the send again; not at the end, when the workers are about to end.
    guard services == nil, world.happens(profile.duplicates) else { return }
    caller.after(world.random(0...World.Time.seconds(5))) { [producer] in
      accounts.repeated(send.id)
      producer.submit([record]) { _ in }
    }
  }

  // Faults.

  private func injectNext() {
    let number = injected
    let pause = withChance(ofFault: number) {
      world.pause(perSecond: 1 / (profile.meanTimeBetweenFaults / .seconds(1)))
    }
    world.after(pause) { [self] in
      guard world.now < World.Time(profile.duration) else { return }
      injected += 1
      let kinds = profile.faults.sorted { $0.rawValue < $1.rawValue }
      if !without.contains(number) {
        withChance(ofFault: -1 - number) { if let kind = world.element(of: kinds) { inject(kind) } }
      }
      injectNext()
    }
  }

  /// Leaves it to a generator of the fault's own what happens: without one fault, the others stay as they are.
  private func withChance<Value>(ofFault number: Int, _ body: () -> Value) -> Value {
    let chance = world.chance
    defer { world.chance = chance }
    world.chance = SplitMix64(seed: seed ^ UInt64(bitPattern: Int64(number)) &* 0x9E37_79B9_7F4A_7C15)
    return body()
  }

  private func inject(_ fault: Profile.Fault) {
    faults[fault, default: 0] += 1
    if fault == profile.planted { accounts.violate("the fault \(fault) was planted") }
    let length = World.Time.milliseconds(world.random(100...30_000))
    guard let service = world.element(of: services) else { return }
    let live = workers.filter { !$0.process.isDead && !$0.isOver }
    let worker = world.element(of: live)
    let broker = SimulatedProcess.Peer.kafka[Int(world.random(0...Int64(SimulatedCluster.brokers - 1)))]
    for concerned in fault.concernsOneWorker ? [worker].compactMap(\.self) : live { concerned.steps.meet(fault) }
    switch fault {
    case .crash:
      trouble(worker)
      worker?.process.kill()
      world.after(length / 4) { [self] in startWorker(named: worker?.instance) }
    case .freeze:
      trouble(worker, for: length)
      worker?.process.freeze()
      world.after(length) { worker?.process.thaw() }
    case .stall:
      trouble(worker, for: length)
      worker?.process.stall(for: length)
    case .restart:
      if let worker { accounts.ends(worker.process.name) }
      worker?.stop()
      world.after(length / 4) { [self] in replace(worker) }
    case .addWorker: if live.count < profile.workers * 2 { startWorker() }
    case .leaderLoss:
      cluster.elect(randomPartition(), after: length / 2)
    case .registryOutage:
      accounts.troubled("registry", for: length)
      registry.takeDown(for: length)
    case .registryFailOver: registry.failOver(after: length / 10)
    case .pause: operators.pause(for: length)
    case .cancellation: operators.cancel()
    case .serviceOutage: disturb(service, .answering(.unavailable), for: length)
    case .serviceSilence: disturb(service, .answering(.silence), for: length)
    case .credentialRefusal: disturb(service, .answering(.refused), for: length)
    case .throttling: disturb(service, .throttling, for: length)
    case .goAway: service.closeConnections()
    case .credentialExpiry: service.expireCredentials()
    case .cut:
      trouble(worker, for: length)
      let peers = [SimulatedProcess.Peer.kafka, [broker], [.registry], [.services]]
      for peer in peers[Int(world.random(0...3))] { worker?.process.cut(from: peer, for: length) }
    case .clockStep: worker?.process.clockOffset = world.random(-2_000...2_000)
    case .clockDrift: worker?.process.setDrift(world.random(-5_000...5_000))
    case .packetLoss:
      trouble(worker, for: length)
      for peer in SimulatedProcess.Peer.kafka { worker?.process.lose(0.3, to: peer, for: length) }
    case .twoDeaths: twoDie(live, within: World.Time(ClusterProfile().sessionTimeout))
    case .twin:
      guard let worker, live.count < profile.workers * 2 else { break }
      startWorker(named: worker.instance)
    case .brokerDeath:
      for worker in live { trouble(worker, for: SimulatedCluster.takeOver.upperBound) }
      cluster.takeDown(Int(world.random(0...Int64(SimulatedCluster.brokers - 1))), for: length)
    case .coordinatorLoss:
      for worker in live { trouble(worker, for: length / 8) }
      cluster.moveCoordinator(of: cluster.group(WorkerConfiguration().consumerGroup), after: length / 8)
    case .uncleanElection: cluster.elect(randomPartition(), after: length / 8, losing: Int(world.random(1...10)))
    case .retention: cluster.delete(Int(world.random(1...100)), of: randomPartition())
    case .schedulerTrouble: schedulers.disturb(for: length)
    }
  }

  private func randomPartition() -> TopicPartition {
    let topic = topics.all[Int(world.random(0...Int64(topics.all.count - 1)))]
    return TopicPartition(topic: topic, partition: Int32(world.random(0...Int64(profile.partitions - 1))))
  }

  /// Two workers die within one session time, and others take their places.
  private func twoDie(_ live: [WorkerProcess], within session: World.Time) {
    for (place, worker) in live.shuffled(using: &world.chance).prefix(2).enumerated() {
      world.after(place == 0 ? 0 : world.random(0...session)) { [self] in
        trouble(worker)
        worker.process.kill()
        world.after(world.random(.milliseconds(100)...session)) { [self] in startWorker(named: worker.instance) }
      }
    }
  }

  /// Starts a worker in the place of one that ends in order; one with its name not before it has ended.
  private func replace(_ worker: WorkerProcess?) {
    guard let worker, worker.instance != nil, !worker.isOver else { return startWorker(named: worker?.instance) }
    world.after(.seconds(1)) { [self] in replace(worker) }
  }

  private func trouble(_ worker: WorkerProcess?, for time: World.Time = 0) {
    if let worker { accounts.troubled(worker.process.name, for: time) }
  }

  private func disturb(_ service: PushServiceModel, _ mode: PushServiceModel.Mode, for length: World.Time) {
    service.become(mode)
    world.after(length) { service.become(.healthy) }
  }

  /// Ends the outages of services and processes, the services' doubt, glitches and refusals, the registry's failures
  /// and slow answers, and doubt about Kafka's answers. The services' slow answers go on.
  private func heal() {
    for service in services {
      service.become(.healthy)
      (service.behaviour.doubt, service.behaviour.glitches, service.behaviour.refusing) = (0, 0, 0)
    }
    for worker in workers {
      worker.process.thaw()
      worker.process.goOn()
    }
    schedulers.thaw()
    // Some faults last for half a minute more, and deaths for a session.
    liveness.quietSince = world.now + .seconds(profile.isStatic ? 150 : 75)
    (registry.behaviour.failures, registry.behaviour.latency.slow) = (0, 0)
    cluster.behaviour.doubt = 0
  }
}
