import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct RetryPumpTests {
  /// A retry topic with one record, which is due.
  private final class RetryTopic: StoringSource {
    let events: AsyncStream<ConsumerEvent>

    init(_ record: ConsumedRecord) {
      let continuation: AsyncStream<ConsumerEvent>.Continuation
      (events, continuation) = AsyncStream.makeStream()
      continuation.yield(.assigned([TopicPartition(topic: record.topic, partition: record.partition)], Rebalance {}))
      continuation.yield(.records([record]))
      continuation.finish()
    }

    func grant(records: Int) {}
    func setPaused(_ isPaused: Bool) {}
    func clusterID() async -> String? { nil }
    func committed(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
    func kept(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
    func commit(_ offsets: [PartitionOffset]) async {}
    func store(_ offsets: [PartitionOffset]) {}
    func lag() -> [TopicPartition: Int64] { [:] }
    func run() async {}
    func close() async {}
  }

  @Test func readmittedRecordIsTheOriginalEvent() async throws {
    let value = Array("what cannot be read is due at once".utf8)
    let record = ConsumedRecord(
      topic: "fanfare.retry.15s", partition: 0, offset: 0, timestamp: 0, key: Array("key".utf8)[...], value: value[...])
    let sink = MemorySink()
    let pump = RetryPump(
      consumer: RetryTopic(record), producer: sink, topics: Topics(retryDelays: [15]), delay: .seconds(15),
      logger: TestKafka.quietLogger)
    try await pump.run()
    #expect(sink.records.map(\.topic) == ["fanfare.sends"])
    #expect(sink.records.map(\.value) == [value])
    #expect(sink.records.map(\.key) == [Array("key".utf8)])
    #expect(sink.records.map(\.headers) == [Desk.headers])
  }
}
