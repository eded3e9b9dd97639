import FanfareCore
import RDKafka
import Support
import Synchronization
import Testing

@testable import Simulation

/// The models do what the real things do.
@Suite(.timeLimit(.minutes(5))) struct KafkaModelTests {
  @Test func simulatedClusterDoesWhatTheWorkerReliesOn() throws {
    let world = World(seed: 1, trace: Trace())
    let cluster = SimulatedCluster(in: world)
    let topics = Mutex(0)
    try runInWorld(world) { process in
      let conformance = KafkaConformance(
        cluster: ClusterUnderTest(
          topic: {
            let name = topics.withLock { count in
              count += 1
              return "topic\(count)"
            }
            cluster.create(name, partitions: Int(ClusterUnderTest.partitions))
            return name
          },
          configuration: { topic in
            let client = KafkaClientConfiguration(bootstrapServers: "simulated", clientID: "test")
            var configuration = ConsumerConfiguration(client: client, groupID: "group of \(topic)", topics: [topic])
            configuration.autoCommitInterval = nil
            return configuration
          },
          consumer: { SimulatedConsumer($0, of: process, in: cluster) },
          sink: SimulatedProducer(of: process, to: cluster),
          abilities: ClusterUnderTest.Abilities(deletesRecords: { cluster.delete(10, of: $0) })))
      try await conformance.run()
    }
  }

  @Test func realClusterDoesWhatTheWorkerReliesOn() async throws {
    let kafka = try TestKafka.shared()
    try await kafka.withProducer { producer in
      var abilities = ClusterUnderTest.Abilities(hasStaticMembers: kafka.cluster == nil)
      if kafka.cluster != nil {
        abilities.deletesRecords = { partition in try await Self.overflow(partition, with: producer) }
      }
      let conformance = KafkaConformance(
        cluster: ClusterUnderTest(
          topic: { try await kafka.topic(partitions: ClusterUnderTest.partitions) },
          configuration: { topic in
            var configuration = ConsumerConfiguration(
              client: kafka.client("test-member"), groupID: kafka.group(), topics: [topic])
            configuration.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
            configuration.autoCommitInterval = nil
            return configuration
          },
          consumer: { try Consumer(configuration: $0, logger: TestKafka.quietLogger) }, sink: producer,
          abilities: abilities))
      try await conformance.run()
    }
  }

  /// Produces more than the embedded cluster keeps of a partition, 5 MiB, in bytes that no codec makes fewer.
  private static func overflow(_ partition: TopicPartition, with producer: Producer) async throws {
    var generator = SplitMix64(seed: 1)
    for _ in 0..<12 {
      let value = (0..<500_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let record = ProducerRecord(topic: partition.topic, partition: partition.partition, key: nil, value: value)
      let results = await withCheckedContinuation { continuation in
        producer.submit([record]) { continuation.resume(returning: $0) }
      }
      for result in results { _ = try result.get() }
    }
  }
}
