package import FanfareCore
import Logging
import Operations
import PushServices
package import RDKafka
import ServiceLifecycle
import SettingsTable
import Worker

/// A worker as a role.
package enum WorkerRole {
  package static func services(_ runtime: Runtime) async throws -> RoleServices {
    let settings = runtime.settings
    let check = try await DurabilityCheck.start(
      settings.kafka, role: "worker", topics: settings.kafka.topics.all, logger: runtime.logger)
    let registry = try await settings.registry.open(role: "worker", waits: true, logger: runtime.logger)
    var senders: [HubName: [any PushSender]] = [:]
    var watches: [CredentialWatch] = []
    for hub in settings.hubs {
      let ofHub = try hub.senders(runtime)
      senders[hub.name] = ofHub.map(\.sender)
      watches += hub.credentialWatches(of: ofHub, logger: runtime.logger)
    }
    // A hub that this worker does not know may have registrations: their sends are deferred, not refused.
    for hub in try await registry.hubs() where senders[hub] == nil {
      runtime.logger.error(
        "Hub has registrations but is not configured; its sends are deferred", metadata: [LogKeys.hub: "\(hub)"])
      senders[hub] = []
    }
    var role = try services(runtime, client: try settings.kafka.client("worker"), registry: registry, senders: senders)
    if let check { role.services.insert(check, at: 0) }
    // After everything else that a configuration can have wrong.
    try requirePlatform(senders.values.count { !$0.isEmpty })
    role.services += watches
    role.services += settings.kafka.credentialWatches(logger: runtime.logger)
    role.addOperations(
      runtime, loops: [(name: "event loops of pushes", group: Runtime.pushEventLoopGroup)])
    try role.addPulse("worker", runtime, client: try settings.kafka.client("pulse"))
    return role
  }

  /// Throws unless there are senders.
  static func requirePlatform(_ senders: Int) throws(SettingsError) {
    guard senders == 0 else { return }
    throw SettingsError(
      "hub.NAME",
      "has no credentials of a platform, so this worker could not push anything: set "
        + PushServiceList.sections.alternatives)
  }

  /// Creates the worker without an operations server, over an open registry and senders.
  package static func services(
    _ runtime: Runtime, client: KafkaClientConfiguration,
    registry: any DeviceRegistry & BroadcastStore & PushQuotaStore,
    senders: [HubName: [any PushSender]]
  ) throws -> RoleServices {
    let settings = runtime.settings
    var configuration = settings.worker.configuration
    configuration.consumerGroup = settings.workerGroup
    for hub in settings.hubs { configuration.pushesPerMinute[hub.name] = hub.pushesPerMinute }
    var consumer = configuration.consumer(client: client, topics: settings.kafka.topics)
    consumer.instanceID = settings.worker.instance
    var production = ProducerConfiguration(client: client)
    production.maximumRecordBytes = StatusRecord.maximumRecordSize
    production.linger = configuration.times.statusLinger
    let producer = try Producer(configuration: production, logger: runtime.logger)
    // A broadcast waits for the acknowledgement of its segments and of each page's status record.
    production.linger = .zero
    let broadcastProducer = try Producer(configuration: production, logger: runtime.logger)
    let worker = Worker(
      configuration: configuration, consumer: try Consumer(configuration: consumer, logger: runtime.logger),
      producer: producer,
      broadcastProducer: broadcastProducer, registry: registry,
      senders: senders.mapValues { Dictionary(uniqueKeysWithValues: $0.map { ($0.platform, $0) }) },
      topics: settings.kafka.topics, clock: runtime.clock, logger: runtime.logger, spans: runtime.tracing?.sink)
    let topics = settings.kafka.topics
    let pumped: [any PumpedTopic] =
      topics.retries.map { RetryTopic($0, topics: topics, logger: runtime.logger) }
      + settings.hubs.map(\.name).filter(topics.ingressHubs.contains).map { IngressTopic(topics: topics, hub: $0) }
    var pumps: [any Service] = try pumped.map { topic in
      try Pump(topic, client: client, producer: producer, clock: runtime.clock, logger: runtime.logger)
    }
    pumps.append(
      RetiredRetries(
        client: client, topics: settings.kafka.topics, producer: producer, clock: runtime.clock, logger: runtime.logger)
    )
    let producing = [producer, broadcastProducer].map { producer in UntilShutdown("producer") { await producer.run() } }
    let running = senders.values.flatMap(\.self).map { sender in
      UntilShutdown("sender of \(sender.platform.name)") { try await sender.run() }
    }
    var role = RoleServices(
      // With Kafka away each consumer takes some seconds to leave its group, and each producer to give up its records.
      services: [
        settings.registry.spaceService(logger: runtime.logger), Together(services: producing),
      ] + running + [Together(services: pumps + [worker])],
      checks: [
        NamedCheck("worker", problems: { worker.readinessProblems }),
        NamedCheck("registry") { await RoleServices.problem(of: settings) { try await registry.check() } },
        NamedCheck("kafka") {
          await RoleServices.problem(of: settings) {
            _ = try await producer.prepare(topics: [settings.kafka.topics.sends], timeout: .seconds(2))
          }
        },
      ])
    role.segments = {
      worker.heldSegments.map {
        Pulse.Segments(
          hub: $0.broadcast.hub.rawValue, send: $0.broadcast.send.description, segments: $0.segments,
          pagesAhead: $0.pagesAhead)
      }
    }
    return role
  }
}

extension RoleServices {
  /// Runs a readiness check and returns its error in words; nil if it throws none.
  package static func problem(of settings: Settings? = nil, _ check: () async throws -> Void) async -> String? {
    do {
      try await check()
      return nil
    } catch {
      return ErrorWords(settings).text(error)
    }
  }
}
