import RDKafka
import Support
import Synchronization

@testable import Worker

/// A topic with batches of records.
final class FakeTopic: RecordSource {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let positions = Mutex<[PartitionOffset]>([])
  private let grants = Mutex<[Int]>([])
  private let last: Int64?

  /// `ends`: whether the stream ends with the records; if not, it ends when the position `last` is committed.
  init(_ batches: [[ConsumedRecord]], ends: Bool = true, last: Int64? = nil) {
    self.last = last
    (events, continuation) = AsyncStream.makeStream()
    let partitions = Set(batches.joined().map(\.topicPartition))
    continuation.yield(.assigned(Array(partitions), Rebalance {}))
    for batch in batches { continuation.yield(.records(batch)) }
    if ends, last == nil { continuation.finish() }
  }

  /// The offsets that were committed, in order.
  var committed: [Int64] { positions.withLock { $0.map(\.offset) } }

  /// The changes of credit, in order.
  var granted: [Int] { grants.withLock { $0 } }

  func end() { continuation.finish() }

  func grant(records: Int) { grants.withLock { $0.append(records) } }
  func setPaused(_ isPaused: Bool) {}
  func clusterID() async -> String? { nil }
  func committed(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
  func kept(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
  func commit(_ offsets: [PartitionOffset]) async {
    positions.withLock { $0 += offsets }
    if let last, offsets.contains(where: { $0.offset >= last }) { end() }
  }
  func lag() -> [TopicPartition: Int64] { [:] }
  func run() async {}
  func close() async {}
}

/// Takes no record of the sends topic, and no dead letter with a value.
final class SmallTopics: RecordSink {
  let written = MemorySink()
  private let hasBoth: @Sendable () -> Void

  /// `hasBoth` is called when dead letter and status are there.
  init(hasBoth: @escaping @Sendable () -> Void) { self.hasBoth = hasBoth }

  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    let tooLarge = RDKafkaError(code: .messageTooLarge, message: "refused by the test")
    let isRefused = records.map { record in
      record.topic == "fanfare.sends" || (record.topic == "fanfare.dead-letter" && record.value.count > 1_000)
    }
    written.submit(zip(records, isRefused).filter { !$1 }.map(\.0)) { _ in }
    completion(
      zip(records, isRefused).map { record, isRefused in
        isRefused ? .failure(tooLarge) : .success(RecordPosition(topic: record.topic, partition: 0, offset: 0))
      })
    if written.topics.isSuperset(of: ["fanfare.dead-letter", "fanfare.status"]) { hasBoth() }
  }
}
