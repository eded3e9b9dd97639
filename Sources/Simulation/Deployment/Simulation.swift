import FanfareCore
import Glibc
import RDKafka

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
    package let virtualTime: Duration
    package let steps: UInt64
    package let digest: UInt64
  }

  private let world: World
  private let profile: Profile
  private let topics = Topics(prefix: "simulated")
  private let cluster: SimulatedCluster
  private let registry: SimulatedRegistry
  private let services: [PushServiceModel]
  private let accounts: Accounts
  private let caller: SimulatedProcess
  private let producer: SimulatedProducer
  private var workers: [WorkerProcess] = []
  private var started = 0
  private var faults: [Profile.Fault: Int] = [:]

  package init(_ profile: Profile, seed: UInt64, trace: Trace = Trace()) {
    self.profile = profile
    world = World(seed: seed, trace: trace)
    cluster = SimulatedCluster(in: world)
    registry = SimulatedRegistry(in: world)
    services = [Platform.apns, .fcm].map { [world] in PushServiceModel($0, in: world) }
    accounts = Accounts(in: world, topics: topics, keepsOrder: !profile.disturbsServices)
    caller = SimulatedProcess("caller", in: world)
    producer = SimulatedProducer(of: caller, to: cluster)
  }

  /// Runs the world: sends and faults for the profile's duration, then until everything has settled, then the end of all
  /// workers.
  package func run() -> Report {
    prepare()
    for _ in 0..<profile.workers { startWorker() }
    postNext()
    if !profile.faults.isEmpty { injectNext() }
    let end = World.Time(profile.duration)
    world.run(until: end)
    heal()
    // Everything settles within its life; a worker needs a while more to notice.
    let patience = World.Time.seconds(profile.timesToLive.upperBound + 400)
    world.run(until: end + patience) { [accounts] in accounts.isSettled }
    // The last commits, and sends whose callers were not answered yet.
    world.run(until: world.now + .seconds(10))
    // A worker that has died just before leaves its last commits to another, when its session is over.
    world.run(until: world.now + .seconds(120)) { [self] in accounts.hasPositions(cluster.position) }
    accounts.finish(mayRepeat: profile.mayRepeat, longest: profile.longest)
    for worker in workers { worker.stop() }
    world.run(until: world.now + .seconds(60)) { [self] in workers.allSatisfy(\.isOver) }
    if !workers.allSatisfy(\.isOver) { accounts.violate("a worker does not end") }
    accounts.checkPositions(cluster.position)
    let report = Report(
      counts: accounts.counts, violations: accounts.violations, faults: faults,
      virtualTime: .microseconds(world.now), steps: world.steps, digest: world.trace.digest.value)
    world.stop()
    return report
  }

  private func prepare() {
    for topic in topics.all { cluster.create(topic, partitions: profile.partitions) }
    cluster.behaviour.doubt = profile.doubt
    registry.behaviour.failures = profile.registryFailures
    cluster.onAppend = { [accounts] in accounts.appended($0, $1, $2) }
    cluster.onCommit = { [accounts] in accounts.committed($0, $1, $2) }
    for service in services {
      service.behaviour.doubt = profile.doubt
      service.behaviour.glitches = profile.glitches
      service.behaviour.dead = profile.dead
      service.onDelivery = { [accounts] in accounts.delivered($0) }
    }
    var devices: [Registration] = []
    for user in 0..<profile.users {
      for _ in 0..<world.random(profile.devicesPerUser) { devices.append(device(of: "user\(user)", tags: [])) }
    }
    for number in 0..<profile.tagged { devices.append(device(of: "reader\(number)", tags: ["news"])) }
    registry.register(devices)
  }

  private func device(of user: String, tags: [String]) -> Registration {
    let id = RegistrationID.random(using: &world.chance)
    let service = services[Int(world.random(0...Int64(services.count - 1)))]
    let registered = World.epoch + .seconds(-3600)
    return Registration(
      id: id, hub: .default, user: user, platform: service.platform, handle: "\(id)",
      tags: tags + [Tag.username(user)], installation: nil, registeredAt: registered, createdAt: registered)
  }

  // Processes.

  private func startWorker() {
    started += 1
    world.trace.note(world.now, "worker\(started) starts")
    workers.append(
      WorkerProcess(
        "worker\(started)", in: world, cluster: cluster, registry: registry, services: services, topics: topics,
        accounts: accounts))
  }

  // Sends.

  private func postNext() {
    // Arrivals at random: exponential pauses.
    let pause = -log(1 - Double.random(in: 0..<1, using: &world.chance)) / profile.rate
    caller.after(World.Time(pause * 1_000_000)) { [self] in
      guard world.now < World.Time(profile.duration) else { return }
      post()
      postNext()
    }
  }

  private func post() {
    let audience: Audience =
      world.happens(profile.broadcastShare)
      ? .tag("news") : .user("user\(world.random(0...Int64(profile.users - 1)))")
    let send = SendRequest(
      id: .timeOrdered(at: world.wall, using: &world.chance), acceptedAt: caller.now(), audience: audience,
      content: Content(message: Message(body: "hello")), timeToLive: Int(world.random(profile.timesToLive)))
    accounts.post(send)
    let accounts = accounts
    let record = ProducerRecord(
      topic: topics.sends, key: audience.recordKey(of: send.id, hub: .default), value: send.encoded())
    producer.submit([record]) { results in
      if case .success = results[0] { accounts.accept(send.id) }
    }
  }

  // Faults.

  private func injectNext() {
    let mean = Double(World.Time(profile.meanTimeBetweenFaults))
    let pause = -log(1 - Double.random(in: 0..<1, using: &world.chance)) * mean
    world.after(World.Time(pause)) { [self] in
      guard world.now < World.Time(profile.duration) else { return }
      let kinds = profile.faults.sorted { $0.rawValue < $1.rawValue }
      inject(kinds[Int(world.random(0...Int64(kinds.count - 1)))])
      injectNext()
    }
  }

  private func inject(_ fault: Profile.Fault) {
    faults[fault, default: 0] += 1
    let length = World.Time.milliseconds(world.random(100...30_000))
    let service = services[Int(world.random(0...Int64(services.count - 1)))]
    let live = workers.filter { !$0.process.isDead && !$0.isOver }
    let worker = live.isEmpty ? nil : live[Int(world.random(0...Int64(live.count - 1)))]
    switch fault {
    case .crash:
      trouble(worker)
      worker?.process.kill()
      world.after(length / 4) { [self] in startWorker() }
    case .freeze:
      trouble(worker, for: length)
      worker?.process.freeze()
      world.after(length) { worker?.process.thaw() }
    case .restart:
      worker?.stop()
      world.after(length / 4) { [self] in startWorker() }
    case .addWorker: if live.count < profile.workers * 2 { startWorker() }
    case .leaderLoss:
      let topic = topics.all[Int(world.random(0...Int64(topics.all.count - 1)))]
      let number = Int32(world.random(0...Int64(profile.partitions - 1)))
      cluster.takeDown(TopicPartition(topic: topic, partition: number), for: length / 2)
    case .registryOutage: registry.takeDown(for: length)
    case .serviceOutage: disturb(service, .unavailable, for: length)
    case .serviceSilence: disturb(service, .silent, for: length)
    case .credentialRefusal: disturb(service, .refusing, for: length)
    case .throttling: disturb(service, .throttling, for: length)
    case .cut:
      trouble(worker, for: length)
      let peers = SimulatedProcess.Peer.allCases
      worker?.process.cut(from: peers[Int(world.random(0...Int64(peers.count - 1)))], for: length)
    case .clockStep: worker?.process.clockOffset = world.random(-2_000...2_000)
    }
  }

  private func trouble(_ worker: WorkerProcess?, for time: World.Time = 0) {
    if let worker { accounts.troubled(worker.process.name, for: time) }
  }

  private func disturb(_ service: PushServiceModel, _ mode: PushServiceModel.Mode, for length: World.Time) {
    service.become(mode)
    world.after(length) { service.become(.healthy) }
  }

  /// Ends all faults.
  private func heal() {
    for service in services { service.become(.healthy) }
    for worker in workers { worker.process.thaw() }
    registry.behaviour.failures = 0
    cluster.behaviour.doubt = 0
  }
}
