import RDKafka
import Synchronization

@testable import Worker

/// A partition, and a group that keeps what is committed for it: members come one after another, and each begins at the
/// committed position.
final class MemoryGroup: Sendable {
  static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)

  private struct State {
    var committed: PartitionOffset?
    var waiter: (goal: @Sendable (PartitionOffset) -> Bool, continuation: CheckedContinuation<Void, Never>)?
  }

  /// The records of the partition, by ascending offsets.
  let log: [ConsumedRecord]
  private let state = Mutex(State())

  init(log: [ConsumedRecord]) {
    self.log = log
  }

  var committed: PartitionOffset? { state.withLock { $0.committed } }

  func commit(_ offset: PartitionOffset) {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.committed = offset
      guard let waiter = state.waiter, waiter.goal(offset) else { return nil }
      state.waiter = nil
      return waiter.continuation
    }
    waiter?.resume()
  }

  /// Returns when something has been committed that satisfies the condition. One caller.
  func waitForCommit(_ goal: @escaping @Sendable (PartitionOffset) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.committed.map(goal) == true { return true }
        state.waiter = (goal, continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
  }
}

/// A member of the group: owns the partition, and delivers what lies in it from the committed offset on.
final class MemoryMember: RecordSource {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let group: MemoryGroup

  init(of group: MemoryGroup) {
    self.group = group
    (events, continuation) = AsyncStream.makeStream()
    let first = group.committed?.offset ?? 0
    continuation.yield(
      .assigned(
        [MemoryGroup.partition],
        Rebalance { [continuation] in continuation.yield(.records(group.log.filter { $0.offset >= first })) }))
  }

  func grant(records: Int) {}
  func setPaused(_ isPaused: Bool) {}
  func clusterID() async -> String? { nil }
  func committed(_ partitions: [TopicPartition]) async -> [PartitionOffset] { group.committed.map { [$0] } ?? [] }
  func kept(_ partitions: [TopicPartition]) async -> [PartitionOffset] { [] }
  func commit(_ offsets: [PartitionOffset]) async { for offset in offsets { group.commit(offset) } }
  func lag() -> [TopicPartition: Int64] { [:] }
  func run() async {}

  func close() async {
    continuation.yield(.revoked([MemoryGroup.partition], Rebalance { [continuation] in continuation.finish() }))
  }
}

/// Has every record at once, and remembers them.
final class MemorySink: RecordSink {
  private let written = Mutex<[ProducerRecord]>([])

  /// The records written, in order.
  var records: [ProducerRecord] { written.withLock { $0 } }
  /// The topics that something was written to.
  var topics: Set<String> { Set(records.map(\.topic)) }

  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    written.withLock { $0 += records }
    completion(records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) })
  }
}
