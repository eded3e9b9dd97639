import RDKafka
import Support
import Testing

@testable import EmbeddedKafka

@Suite(.timeLimit(.minutes(1)))
struct BacklogMonitorTests {
  @Test func roomEndsAndReturnsAsTheGroupReads() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let group = kafka.group()
    let monitor = try BacklogMonitor(
      client: kafka.client(), topic: topic, groupID: group, limitBytesPerPartition: 10_000,
      logger: TestKafka.quietLogger)
    #expect(!monitor.hasRoom(), "nothing is known yet")
    try await monitor.observe()
    #expect(monitor.hasRoom())

    let value = String(repeating: "x", count: 900)
    try await kafka.withProducer(watch: monitor) { producer in
      _ = await producer.send((0..<8).map { _ in record(topic, value) })
      #expect(monitor.hasRoom())
      #expect(monitor.worstPartition == BacklogMonitor.Backlog(partition: 0, records: 8, bytes: 8_000))
      _ = await producer.send((0..<4).map { _ in record(topic, value) })
      #expect(!monitor.hasRoom(), "it counts without asking")
    }
    try await monitor.observe()
    #expect(!monitor.hasRoom())
    #expect(monitor.records == 12)

    try await kafka.withConsumer(topics: [topic], group: group) { consumer in
      consumer.grant(records: 12)
      var count = 0
      for await case .records(let records) in consumer.events {
        count += records.count
        if count == 12 { break }
      }
      let partition = TopicPartition(topic: topic, partition: 0)
      try await consumer.commit([PartitionOffset(partition: partition, offset: 11)])
    }
    try await monitor.observe()
    #expect(monitor.hasRoom())
    #expect(monitor.records == 1)
  }

  @Test func recordsOfOthersAreCounted() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 2)
    let monitor = try BacklogMonitor(
      client: kafka.client(), topic: topic, groupID: kafka.group(), limitBytesPerPartition: 50_000,
      logger: TestKafka.quietLogger)
    try await monitor.observe()
    #expect(monitor.hasRoom())
    try await kafka.withProducer { producer in
      _ = await producer.send((0..<100).map { record(topic, "\($0)", partition: 1) })
    }
    #expect(monitor.hasRoom())
    try await monitor.observe()
    #expect(monitor.worstPartition?.records == 100)
    #expect(monitor.worstPartition?.partition == 1)
    #expect(!monitor.hasRoom())
  }

  @Test func recordsInFlightCount() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let monitor = try BacklogMonitor(
      client: kafka.client(), topic: topic, groupID: kafka.group(), limitRecordsPerPartition: 10,
      logger: TestKafka.quietLogger)
    try await monitor.observe()
    let other = try await kafka.topic(partitions: 1)
    try await kafka.withProducer(watch: monitor) { producer in
      producer.submit((0..<10).map { record(other, "\($0)") }) { _ in }
      #expect(monitor.hasRoom(), "another topic")
      let (acknowledged, acknowledging) = AsyncStream.makeStream(of: Void.self)
      producer.submit((0..<10).map { record(topic, "\($0)") }) { _ in acknowledging.finish() }
      #expect(!monitor.hasRoom())
      for await _ in acknowledged {}
      #expect(!monitor.hasRoom())
    }
  }

  @Test func bytesFollowTheMarks() {
    var partition = PartitionBacklog()
    for offset in 0..<10 { partition.produced(offset: Int64(offset), bytes: 100) }
    #expect(partition.bytes(averageBytes: 1) == 1_000)
    // Other producers have produced 10 more records of unknown size.
    partition.observed(next: 0, end: 20, before: (10, 1_000))
    #expect(partition.records == 20)
    #expect(partition.bytes(averageBytes: 7) == 1_070)
    // The group has read up to the mark: records produced before it no longer count.
    partition.observed(next: 20, end: 20, before: (10, 1_000))
    #expect(partition.bytes(averageBytes: 7) == 0)
    for offset in 20..<30 { partition.produced(offset: Int64(offset), bytes: 500) }
    #expect(partition.bytes(averageBytes: 7) == 5_000)
    // Half of the records are read, and there is no mark in between.
    partition.observed(next: 25, end: 30, before: (20, 6_000))
    #expect(partition.bytes(averageBytes: 7) == 2_500)
  }

  @Test func manyMarksMakeTheEstimateCoarserOnly() {
    var partition = PartitionBacklog()
    for offset in 0..<5_000 {
      partition.produced(offset: Int64(offset), bytes: 10)
      partition.observed(next: 0, end: Int64(offset) + 1, before: (offset + 1, (offset + 1) * 10))
    }
    #expect(partition.bytes(averageBytes: 1) == 50_000)
    partition.observed(next: 4_000, end: 5_000, before: (5_000, 50_000))
    let bytes = partition.bytes(averageBytes: 1)
    #expect((10_000...10_500).contains(bytes), "\(bytes)")
  }
}
