import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LogReaderTests {
  @Test func spansAreReadExactlyToTheirEnds() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 3)
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    try await kafka.withProducer { producer in
      var records = (0..<3000).map { record(topic, key: "k\($0)", "v\($0)") }
      for index in records.indices { records[index].partition = Int32(index % 2) }
      #expect(await producer.send(records).compactMap { failure($0) }.isEmpty)
      let spans = try await reader.spans(of: [topic])
      #expect(spans.map(\.count) == [1500, 1500, 0])
      // Written after the ends were read.
      #expect(await producer.send(records).compactMap { failure($0) }.isEmpty)

      var read: [Int32: [ConsumedRecord]] = [:]
      let scan = try reader.scan(spans)
      while let records = try await scan.next() {
        for record in records { read[record.partition, default: []].append(record) }
      }
      #expect(read.keys.sorted() == [0, 1])
      for (partition, records) in read {
        #expect(records.map(\.offset) == Array(0..<1500))
        #expect(records.map(\.text) == (0..<1500).map { "v\($0 * 2 + Int(partition))" })
      }
    }
  }

  @Test func spanMayBeginAnywhereAndEmptySpanEndsAtOnce() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    try await kafka.withProducer { producer in
      #expect(
        await producer.send((0..<10).map { record(topic, key: "k", "v\($0)") }).compactMap { failure($0) }.isEmpty)
    }
    let partition = TopicPartition(topic: topic, partition: 0)
    let scan = try reader.scan([LogSpan(partition: partition, start: 4, end: 6)])
    #expect(try await scan.next()?.map(\.text) == ["v4", "v5"])
    #expect(try await scan.next() == nil)
    let empty = try reader.scan([LogSpan(partition: partition, start: 10, end: 10)])
    #expect(try await empty.next() == nil)
  }

  @Test func missingTopicIsNamedAndNotCreated() async throws {
    let kafka = try TestKafka.shared()
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    for _ in 0..<2 {
      let error = await #expect(throws: RDKafkaError.self) { try await reader.spans(of: ["no-such-topic"]) }
      #expect(error?.code == .unknownTopic)
      #expect(error?.message.contains("no-such-topic") == true)
    }
  }

  @Test func committedOffsetsAreThoseOfTheGroup() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let partition = TopicPartition(topic: topic, partition: 0)
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let group = kafka.group()
    #expect(try await reader.committed(by: group, in: [partition]) == [])
    try await kafka.withProducer { producer in
      #expect(await producer.send([record(topic, key: "k", "v")]).compactMap { failure($0) }.isEmpty)
    }
    try await kafka.withConsumer(topics: [topic], group: group) { consumer in
      for await event in consumer.events {
        guard case .assigned(_, let rebalance) = event else { continue }
        rebalance.complete()
        break
      }
      try await consumer.commit([PartitionOffset(partition: partition, offset: 1)])
    }
    #expect(try await reader.committed(by: group, in: [partition]).map(\.offset) == [1])
  }
}
