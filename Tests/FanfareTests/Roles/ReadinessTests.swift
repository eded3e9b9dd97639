import EmbeddedKafka
import RDKafka
import Support
import Testing

@testable import Roles

/// The readiness check `kafka` of the roles.
@Suite(.timeLimit(.minutes(2))) struct ReadinessTests {
  @Test func roleIsNotReadyWhileBrokersAreDown() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic()
    try await kafka.withProducer { producer in
      // The same request as the check of the api and the worker.
      func problem(within patience: Duration) async -> String? {
        await RoleServices.problem { _ = try await producer.prepare(topics: [topic], timeout: patience) }
      }
      #expect(await problem(within: .seconds(30)) == nil)
      try kafka.cluster?.setBroker(isUp: false)
      let words = await problem(within: .seconds(1))
      #expect(words?.contains(topic) == true, "\(words ?? "ready")")
      try kafka.cluster?.setBroker(isUp: true)
      #expect(await problem(within: .seconds(60)) == nil)
    }
    kafka.cluster?.close()
  }

  @Test func roleIsNotReadyWithoutBroker() async throws {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", profile: .embedded)
    let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: TestKafka.quietLogger)
    let words = await RoleServices.problem {
      _ = try await producer.prepare(topics: ["sends"], timeout: .milliseconds(200))
    }
    #expect(words != nil)
    await producer.close(timeout: .zero)
  }
}
