import FanfareCore
import RDKafka
import Support
import Testing

@testable import Simulation

/// The models do what the real things do.
@Suite(.timeLimit(.minutes(5))) struct ModelTests {
  @Test func simulatedClusterDoesWhatTheWorkerReliesOn() throws {
    let world = World(seed: 1, trace: Trace())
    defer { world.stop() }
    let cluster = SimulatedCluster(in: world)
    cluster.create("topic", partitions: 4)
    let process = SimulatedProcess("test", in: world)
    let conformance = KafkaConformance(
      cluster: ClusterUnderTest(
        topic: "topic", partitions: 4,
        member: {
          let client = KafkaClientConfiguration(bootstrapServers: "simulated", clientID: "test")
          var configuration = ConsumerConfiguration(client: client, groupID: "group", topics: ["topic"])
          configuration.autoCommitInterval = nil
          return SimulatedConsumer(configuration, of: process, in: cluster)
        },
        sink: SimulatedProducer(of: process, to: cluster)))
    let outcome = Outcome()
    process.start {
      do {
        try await conformance.run()
        outcome.result = .success(())
      } catch {
        outcome.result = .failure(error)
      }
    }
    world.run(until: .seconds(600)) { outcome.result != nil }
    try #require(outcome.result, "the script does not end").get()
  }

  @Test func realClusterDoesWhatTheWorkerReliesOn() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 4)
    let group = kafka.group()
    try await kafka.withProducer { producer in
      let conformance = KafkaConformance(
        cluster: ClusterUnderTest(
          topic: topic, partitions: 4,
          member: {
            var configuration = ConsumerConfiguration(
              client: kafka.client("test-member"), groupID: group, topics: [topic])
            configuration.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
            configuration.autoCommitInterval = nil
            return try Consumer(configuration: configuration, logger: TestKafka.quietLogger)
          }, sink: producer))
      try await conformance.run()
    }
  }

  /// `@unchecked Sendable`: used on the world's thread.
  private final class Outcome: @unchecked Sendable {
    var result: Result<Void, any Error>?
  }
}
