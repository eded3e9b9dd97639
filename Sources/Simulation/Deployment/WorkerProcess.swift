import FanfareCore
import Logging
import RDKafka
import ServiceLifecycle
import Worker

/// A worker and its retry pumps in one process, as `fanfare worker` runs them.
///
/// `@unchecked Sendable`: see `World`.
final class WorkerProcess: @unchecked Sendable {
  let process: SimulatedProcess
  private(set) var isOver = false
  /// The name that its next process has, too; nil: a dynamic member of the group.
  let instance: String?
  let steps: StepLog
  private let group: ServiceGroup

  init(
    _ name: String, _ configuration: WorkerConfiguration, instance: String? = nil, in world: World,
    cluster: SimulatedCluster, registry: SimulatedRegistry, services: [PushServiceModel], topics: Topics,
    accounts: Accounts, promises: Promises
  ) {
    let process = SimulatedProcess(name, in: world)
    self.process = process
    self.instance = instance
    let steps = StepLog()
    self.steps = steps
    let logger = Logger(label: name) { _ in SwiftLogNoOpLogHandler() }
    let client = KafkaClientConfiguration(bootstrapServers: "simulated", clientID: name)
    let producer = SimulatedProducer(of: process, to: cluster)
    var senders: [HubName: [Platform: any PushSender]] = [:]
    for service in services {
      let connection = ServiceConnection(of: process, to: service, accounts, promises)
      senders[service.hub, default: [:]][service.platform] = connection
    }
    var member = configuration.consumer(client: client, topics: topics)
    member.instanceID = instance
    let drain = World.Time(configuration.times.revokeDeadline + configuration.times.lastCommitDeadline)
    let consumer = SimulatedConsumer(
      member, of: process, in: cluster, onDisown: { accounts.troubled(name, for: drain) })
    let worker = Worker(
      configuration: configuration, consumer: consumer,
      producer: producer, broadcastProducer: SimulatedProducer(of: process, to: cluster),
      registry: RegistryConnection(of: process, to: registry, promises), senders: senders, topics: topics,
      clock: process, delays: process, seed: world.chance.next(), logger: logger,
      audit: WorkerAudit(
        turned: { found, load in
          accounts.audited(name, found)
          promises.turned(name, load)
          world.trace.sample(world.now, name, load)
        },
        stepped: { step in
          if !process.isDead, !steps.add(step) { accounts.violate("\(name) takes a step without a name: \(step)") }
        }))
    let pumps = topics.retries.map { retry in
      let topic = RetryTopic(retry, topics: topics, logger: logger)
      let consumer = SimulatedConsumer(Pump.consumer(topic, client: client), of: process, in: cluster)
      return Pump(topic, consumer: consumer, producer: producer, clock: process, delays: process, logger: logger)
    }
    group = ServiceGroup(services: [worker] + pumps, logger: logger)
    let services = group
    process.start { [weak self] in
      do { try await services.run() } catch {
        if !process.isDead, !consumer.isFenced { accounts.violate("\(name) ends with an error: \(error)") }
      }
      if !process.isDead { world.note(.well(name, "process", "has ended")) }
      self?.isOver = true
    }
  }

  /// The configuration of the workers. Its limits are small, so that a short run reaches them and has many pages.
  static func configuration(_ profile: Profile, services: [PushServiceModel]) -> WorkerConfiguration {
    var configuration = WorkerConfiguration()
    (configuration.limits.maximumRecords, configuration.limits.maximumDevices) = (500, 2_000)
    (configuration.limits.maximumPushes, configuration.limits.maximumPushesPerSender) = (900, 500)
    configuration.broadcasts.maximumBroadcastPushesPerSender = 60
    configuration.broadcasts.undividedDevices = 100
    configuration.broadcasts.pageDevices = profile.pageDevices
    (configuration.broadcasts.segments, configuration.broadcasts.mostSegments) = (profile.segments, profile.segments)
    configuration.circuit.refusals = profile.mostRefused
    if let quota = profile.pushesPerMinute {
      for service in services where service.platform == .fcm {
        configuration.pushesPerMinute[service.hub] = [.fcm: quota]
      }
    }
    return configuration
  }

  /// Asks the process to end in order.
  func stop() {
    let group = group
    if !process.isDead, !isOver { process.world.note(.well(process.name, "process", "is to end")) }
    process.start { await group.triggerGracefulShutdown() }
  }
}
