import FanfareCore
import RDKafka
import Testing

@testable import Worker

struct PartitionOffsetsTests {
  private let first = TopicPartition(topic: "sends", partition: 0)
  private let second = TopicPartition(topic: "sends", partition: 1)

  private func record(_ partition: TopicPartition, _ offset: Int64, at timestamp: Int64 = 1) -> ConsumedRecord {
    ConsumedRecord(
      topic: partition.topic, partition: partition.partition, offset: offset, timestamp: timestamp, key: nil, value: [])
  }

  /// Takes note of a record of a partition that is owned.
  private func begin(
    _ partition: TopicPartition, _ offset: Int64, at timestamp: Int64 = 1, in ledger: inout PartitionOffsets
  ) throws -> Origin {
    let origin = ledger.begin(record(partition, offset, at: timestamp))
    return try #require(origin)
  }

  private func changed(_ ledger: inout PartitionOffsets) -> [PartitionOffset] {
    ledger.takeChanged(metadataLimit: 3_500).map(\.withRunsAlone)
  }

  @Test func recordsOfUnownedPartitionsAreIgnored() {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    let foreign = ledger.begin(record(second, 0))
    #expect(foreign == nil)
    let own = ledger.begin(record(first, 0))
    #expect(own != nil)
  }

  @Test func eachChangeIsHandedOutOnceUnlessRestored() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    ledger.assign(second)
    let origins = try (0..<3).map { try begin(first, $0, in: &ledger) }
    #expect(!ledger.hasChanges)
    ledger.settle(origins[1])
    #expect(ledger.hasChanges)
    #expect(ledger.hasChanges(in: [second, first]))
    #expect(!ledger.hasChanges(in: [second]))
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 0, metadata: "BB")])
    ledger.settle(origins[0])
    let end = PartitionOffset(partition: first, offset: 2)
    #expect(changed(&ledger) == [end])
    #expect(changed(&ledger).isEmpty)
    #expect(!ledger.hasChanges)
    ledger.restore([end, PartitionOffset(partition: second, offset: 9)])
    ledger.settle(origins[2])
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 3)])
    ledger.restore([end])
    ledger.close(first)
    #expect(!ledger.hasChanges)
    #expect(changed(&ledger).isEmpty)
  }

  @Test func recordsSettledByEarlierOwnerAreSkippedNotLost() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    ledger.resume(PartitionOffset(first, 5, settled: "BB"))
    ledger.resume(PartitionOffset(second, 5, settled: "BB"))
    let open = try begin(first, 5, in: &ledger)
    let settled = ledger.begin(record(first, 6))
    #expect(settled == nil)
    let skipped = ledger.takeSkipped()
    #expect(skipped == 1)
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 5, metadata: "BB")])
    ledger.settle(open)
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 7)])
  }

  @Test func lateOutcomeOfOlderAssignmentCommitsNothing() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    let old = try begin(first, 7, in: &ledger)
    ledger.close(first)
    ledger.settle(old)
    #expect(changed(&ledger).isEmpty)
    ledger.assign(first)
    let new = try begin(first, 7, in: &ledger)
    ledger.settle(old)
    #expect(changed(&ledger).isEmpty)
    #expect(!ledger.isOwned(old))
    ledger.settle(new)
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 8)])
  }

  @Test func slotOfReleasedPartitionIgnoresOrigins() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    ledger.assign(second)
    let old = try begin(first, 3, in: &ledger)
    for offset in 4..<9 { _ = try begin(first, Int64(offset), in: &ledger) }
    _ = try begin(second, 0, in: &ledger)
    #expect(ledger.largestSpan == 6)
    #expect(ledger.isOpen(old))
    #expect(ledger.partition(of: old) == first)
    #expect(ledger.oldestTimestamp(of: first) == 1)
    ledger.close(first)
    #expect(!ledger.isOwned(old))
    #expect(!ledger.isOpen(old))
    #expect(ledger.partition(of: old) == nil)
    #expect(ledger.oldestTimestamp(of: first) == nil)
    #expect(ledger.partitions == [second])
    #expect(ledger.largestSpan == 1)
  }

  /// What an operator alarms on: one send that hangs, however fast those behind it go.
  @Test func lagIsAgeOfOldestUnsettledRecord() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    #expect(ledger.oldestTimestamp(of: first) == nil)
    let origins = try [1_000, 61_000, 121_000].enumerated().map { try begin(first, Int64($0), at: $1, in: &ledger) }
    #expect(ledger.oldestTimestamp(of: first) == 1_000)
    ledger.settle(origins[1])
    #expect(ledger.oldestTimestamp(of: first) == 1_000)
    ledger.settle(origins[0])
    #expect(ledger.oldestTimestamp(of: first) == 121_000)
    // Records that wait now, if there are any, were written after the last one.
    ledger.settle(origins[2])
    #expect(ledger.oldestTimestamp(of: first) == 121_000)
    _ = try begin(first, 3, at: 500_000, in: &ledger)
    #expect(ledger.oldestTimestamp(of: first) == 500_000)
  }

  @Test func idleTimeIsNoLag() throws {
    var tracker = PartitionTracker(commits: CommitSchedule(interval: 0, records: 1, metadataBytes: 0))
    var metrics = WorkerMetrics(table: SenderTable([:]), group: "workers")
    var actions = GroupActions()
    let start = Moment(wall: UnixTime(milliseconds: 1_000), uptime: 0)
    tracker.assign([first], Rebalance {}, segments: "", resumeDeadline: .seconds(5), at: start, into: &actions)
    let origin = tracker.begin(record(first, 0, at: 1_000))
    tracker.settle(try #require(origin))
    let noon = UnixTime(milliseconds: 3 * 3_600_000)
    metrics.show(lag: [first: 0], partitions: &tracker, at: noon)
    // One was fetched meanwhile, and not taken yet.
    metrics.show(lag: [first: 1], partitions: &tracker, at: noon + .seconds(1))
    #expect(tracker.offsets.oldestTimestamp(of: first) == noon.milliseconds)
    _ = tracker.begin(record(first, 1, at: noon.milliseconds + 700))
    #expect(tracker.offsets.oldestTimestamp(of: first) == noon.milliseconds + 700)
  }

  @Test func slotReusedByAnotherPartitionIgnoresOldOrigin() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    let old = try begin(first, 3, in: &ledger)
    ledger.close(first)
    ledger.assign(second)
    _ = try begin(second, 90, in: &ledger)
    ledger.settle(old)
    #expect(changed(&ledger).isEmpty)
    let refused = ledger.begin(record(first, 4))
    #expect(refused == nil)
  }

  @Test func closingPartitionSettlesButTakesNothing() throws {
    var ledger = PartitionOffsets()
    ledger.assign(first)
    let origin = try begin(first, 0, in: &ledger)
    ledger.beginClosing(first)
    let refused = ledger.begin(record(first, 1))
    #expect(refused == nil)
    #expect(!ledger.isOpen(origin))
    #expect(ledger.isOwned(origin))
    ledger.settle(origin)
    #expect(changed(&ledger) == [PartitionOffset(partition: first, offset: 1)])
  }
}
