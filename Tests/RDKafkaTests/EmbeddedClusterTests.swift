import EmbeddedKafka
import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EmbeddedClusterTests {
  @Test(.enabled(if: Kcat.isInstalled, "kcat is not installed"))
  func anotherProcessReadsAndWrites() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      let results = await producer.send((0..<100).map { record(topic, key: "k\($0)", "v\($0)") })
      #expect(results.compactMap { failure($0) }.isEmpty)
    }
    let read = try await Kcat.run(["-C", "-b", kafka.bootstrapServers, "-t", topic, "-e", "-q", "-f", "%k=%s\n"])
    #expect(read == (0..<100).map { "k\($0)=v\($0)\n" }.joined())

    _ = try await Kcat.run(["-P", "-b", kafka.bootstrapServers, "-t", topic, "-k", "key"], input: "from outside\n")
    try await kafka.withConsumer(topics: [topic], group: kafka.group()) { consumer in
      consumer.grant(records: 200)
      var texts: [String] = []
      for await case .records(let records) in consumer.events {
        texts += records.map(\.text)
        if texts.count >= 101 { break }
      }
      #expect(texts.last == "from outside")
    }
  }

  @Test func topicsCanBeCheckedButNotCreatedFromOutside() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 3)
    let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
    let outcomes = try await administrator.createTopics([
      TopicSpecification(name: topic, partitions: 2), TopicSpecification(name: topic, partitions: 8),
      TopicSpecification(name: "\(topic)-missing", partitions: 1),
    ]).map(\.outcome)
    #expect(outcomes[0] == .existed(partitions: 3))
    guard case .failed(let conflict) = outcomes[1], case .failed(let missing) = outcomes[2] else {
      Issue.record("topics that do not fit, or do not exist, were accepted: \(outcomes)")
      return
    }
    #expect(conflict.code == .conflict)
    #expect(conflict.message.contains("3") && conflict.message.contains("8"))
    #expect(missing.code == .unsupported)
    // Topics cannot be deleted either: the request fails at once and the topic is unchanged.
    let refusal = await #expect(throws: RDKafkaError.self) { try await administrator.deleteTopics([topic]) }
    #expect(refusal?.code == .unsupported)
    #expect(
      try await administrator.createTopics([TopicSpecification(name: topic, partitions: 3)]).map(\.outcome) == [
        .existed(partitions: 3)
      ])
  }

  @Test func recordsSurviveATemporaryBrokerOutage() async throws {
    let kafka = try TestKafka.embedded(brokers: 3)
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      let partition = TopicPartition(topic: topic, partition: 0)
      try kafka.cluster?.setLeader(of: partition, broker: 1)
      _ = try await producer.send(record(topic, "before"))
      try kafka.cluster?.setBroker(1, isUp: false)
      async let during = producer.send((0..<20).map { record(topic, "\($0)") })
      try await until { producer.recordsInFlight == 20 }
      try kafka.cluster?.setLeader(of: partition, broker: 2)
      #expect(try await during.map { try $0.get().offset } == (1...20).map { Int64($0) })
    }
  }

  @Test func closedClusterThrows() throws {
    let cluster = try EmbeddedCluster(
      topics: [TopicSpecification(name: "a", partitions: 1)], logger: TestKafka.quietLogger)
    let twice = #expect(throws: RDKafkaError.self) {
      try cluster.createTopics([TopicSpecification(name: "a", partitions: 1)])
    }
    #expect(twice?.number == 36)
    cluster.close()
    cluster.close()
    let closed = #expect(throws: RDKafkaError.self) {
      try cluster.createTopics([TopicSpecification(name: "b", partitions: 1)])
    }
    #expect(closed?.code == .closed)
    #expect(throws: RDKafkaError.self) { try EmbeddedCluster(brokers: 0, topics: [], logger: TestKafka.quietLogger) }
  }
}
