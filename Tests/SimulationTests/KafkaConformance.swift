import RDKafka
import Synchronization
import Testing
import Worker

/// A cluster, real or simulated, with one topic.
struct ClusterUnderTest: Sendable {
  let topic: String
  let partitions: Int32
  /// A member of the one group; it commits by itself and stores nothing.
  let member: @Sendable () throws -> any RecordSource
  let sink: any RecordSink
}

/// What the worker relies on when it uses Kafka. The model must do what the real client and a real cluster do.
struct KafkaConformance {
  let cluster: ClusterUnderTest

  /// All scripts, one after another.
  func run() async throws {
    try await recordsAreReadInOrderFromTheCommittedPosition()
    try await membersShareThePartitions()
  }

  /// A member reads everything once, in the order of each partition; the next one begins at the committed positions, and
  /// finds their metadata.
  private func recordsAreReadInOrderFromTheCommittedPosition() async throws {
    try await produce(0..<200)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      let member = Member(try cluster.member())
      member.start(in: &tasks)
      await member.wait { $0.records.count == 200 }
      let records = member.seen.records
      #expect(Set(records.map(\.number)) == Set(0..<200))
      for (partition, records) in Dictionary(grouping: records, by: \.partition) {
        let offsets = records.map(\.offset)
        #expect(offsets == Array((offsets.first ?? 0)..<(offsets.first ?? 0) + Int64(offsets.count)), "\(partition)")
      }
      for (key, records) in Dictionary(grouping: records, by: { $0.number % 10 }) {
        #expect(records.map(\.number) == records.map(\.number).sorted(), "key \(key)")
        #expect(Set(records.map(\.partition)).count == 1, "key \(key)")
      }
      let positions = member.seen.ends.map { partition, end in
        PartitionOffset(partition: partition, offset: end, metadata: "end \(end)")
      }
      try await member.source.commit(positions)
      let committed = try await member.source.committed(Array(member.seen.owned))
      #expect(Set(committed) == Set(positions))
      await member.source.close()
      #expect(member.seen.owned.isEmpty)
    }
    try await produce(200..<250)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      let member = Member(try cluster.member())
      member.start(in: &tasks)
      await member.wait { $0.records.count >= 50 }
      #expect(Set(member.seen.records.map(\.number)) == Set(200..<250))
      await member.source.close()
    }
  }

  /// Two members have equal shares, and no partition at the same time; when one leaves, the other has all.
  private func membersShareThePartitions() async throws {
    let all = Set((0..<cluster.partitions).map { TopicPartition(topic: cluster.topic, partition: $0) })
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      let first = Member(try cluster.member())
      first.start(in: &tasks)
      await first.wait { $0.owned == all }
      let second = Member(try cluster.member())
      second.start(in: &tasks)
      await second.wait { $0.owned.count == all.count / 2 }
      #expect(first.seen.owned.union(second.seen.owned) == all)
      #expect(first.seen.owned.isDisjoint(with: second.seen.owned))
      await second.source.close()
      await first.wait { $0.owned == all }
      await first.source.close()
    }
  }

  private func produce(_ numbers: Range<Int>) async throws {
    let records = numbers.map { number in
      ProducerRecord(topic: cluster.topic, key: Array("key\(number % 10)".utf8), value: Array("\(number)".utf8))
    }
    let results = await withCheckedContinuation { continuation in
      cluster.sink.submit(records) { continuation.resume(returning: $0) }
    }
    for result in results { _ = try result.get() }
  }
}

/// A member of the group, and what it has seen.
private final class Member: Sendable {
  struct Seen {
    var owned: Set<TopicPartition> = []
    var records: [(number: Int, partition: TopicPartition, offset: Int64)] = []
    /// One after the last record that was read, of each partition.
    var ends: [TopicPartition: Int64] = [:]
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
    }
    source.grant(records: 1_000)
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
        rebalance.complete()
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        seen.owned.subtract(partitions)
        rebalance.complete()
      case .failed: break
      }
    }
    change.yield()
  }
}
