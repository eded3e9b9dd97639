import RDKafka
import Synchronization
import Worker

/// A member of a group that completes every rebalance at once, and what it has seen.
final class ClusterMember: Sendable {
  struct Seen {
    var owned: Set<TopicPartition> = []
    var records: [(number: Int, partition: TopicPartition, offset: Int64)] = []
    /// One after the last record that was read, of each partition.
    var ends: [TopicPartition: Int64] = [:]
    /// How often partitions were assigned, revoked or lost.
    var changes = 0
    /// How often it was told its new partitions, if only that there are none.
    var assignments = 0
    /// The error that has ended it.
    var failure: RDKafkaError?
    var hasEnded = false
  }

  let source: any RecordSource
  private let state = Mutex(Seen())
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  init(_ source: any RecordSource) {
    self.source = source
    (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  var seen: Seen { state.withLock { $0 } }

  func start(in tasks: inout ThrowingTaskGroup<Void, any Error>) {
    tasks.addTask { [self] in await source.run() }
    tasks.addTask { [self] in
      for await event in source.events { take(event) }
      state.withLock { $0.hasEnded = true }
      change.yield()
    }
    source.grant(records: 10_000)
  }

  /// Returns when it has seen what is waited for. One caller.
  func wait(until isReached: (Seen) -> Bool) async {
    if isReached(seen) { return }
    for await _ in changes where isReached(seen) { return }
  }

  private func take(_ event: ConsumerEvent) {
    state.withLock { seen in
      switch event {
      case .records(let records):
        for record in records {
          let number = Int(String(decoding: record.value, as: UTF8.self)) ?? -1
          seen.records.append((number, record.topicPartition, record.offset))
          seen.ends[record.topicPartition] = record.offset + 1
        }
      case .assigned(let partitions, let rebalance):
        seen.owned.formUnion(partitions)
        if !partitions.isEmpty { seen.changes += 1 }
        seen.assignments += 1
        rebalance.complete()
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        seen.owned.subtract(partitions)
        if !partitions.isEmpty { seen.changes += 1 }
        rebalance.complete()
      case .failed(let error): if error.isFatal { seen.failure = error }
      }
    }
    change.yield()
  }
}
