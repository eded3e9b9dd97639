import FanfareCore
import RDKafka
import Testing

@testable import Ledger

@Suite(.timeLimit(.minutes(1))) struct IntakeTests {
  private let topics = Samples.topics

  private func record(_ topic: String, _ offset: Int64, _ value: [UInt8], partition: Int32 = 0) -> ConsumedRecord {
    ConsumedRecord(topic: topic, partition: partition, offset: offset, timestamp: 5, key: nil, value: value[...])
  }

  @Test func undecodableRecordsAreCountedAndSkipped() throws {
    let id = SendID.random()
    let negative = String(decoding: Samples.status(id).encoded(), as: UTF8.self)
      .replacing(#""part":0"#, with: #""part":-1"#)
    let future = String(decoding: Samples.status(id).encoded(), as: UTF8.self)
      .replacing("fanfare.status.v1", with: "fanfare.status.v9")
    let batch = LedgerBatch(
      [
        record(topics.sends, 0, Samples.send(id).encoded()), record(topics.sends, 1, Array("{".utf8)),
        record(topics.status, 7, []), record(topics.status, 8, Array(future.utf8)),
        record(topics.status, 9, Array(negative.utf8)),
        record(topics.status, 10, Samples.status(id).encoded()),
        record(topics.status, 3, Samples.status(id).encoded(), partition: 2),
      ], topics: topics, maximumDevices: 4)
    #expect(batch.records == 7)
    #expect(batch.entries.count == 3)
    #expect(batch.recordsByTopic == [topics.sends: 1, topics.status: 2])
    #expect(batch.undecodable[topics.sends]?.count == 1)
    #expect(batch.undecodable[topics.status]?.count == 3)
    // The positions include them.
    #expect(batch.positions[TopicPartition(topic: topics.sends, partition: 0)] == 2)
    #expect(batch.positions[TopicPartition(topic: topics.status, partition: 0)] == 11)
    #expect(batch.positions[TopicPartition(topic: topics.status, partition: 2)] == 4)
  }

  @Test func queueMergesBatchesButNotAcrossARebalance() async {
    func batch(_ count: Int) -> LedgerBatch {
      LedgerBatch((0..<count).map { record(topics.sends, Int64($0), []) }, topics: topics, maximumDevices: 0)
    }
    let queue = WorkQueue()
    for count in [3, 4, 5] { queue.append(.record(batch(count))) }
    queue.append(.revoked([], Rebalance {}))
    queue.append(.record(batch(100)))
    queue.finish()
    queue.append(.record(batch(1)))
    var seen: [String] = []
    while let work = await queue.next(limit: 8) {
      switch work {
      case .record(let batch): seen.append("\(batch.records)")
      case .revoked: seen.append("revoked")
      case .assigned: seen.append("assigned")
      case .written: seen.append("written")
      }
    }
    #expect(seen == ["7", "5", "revoked", "100"])
  }

  @Test func resultsComeFirstAndAloneWithoutRoom() async {
    let queue = WorkQueue()
    queue.append(.revoked([], Rebalance {}))
    async let work = queue.next(limit: 1, hasRoom: false)
    queue.append(WorkQueue.Written(number: 7, duplicates: .success(0)))
    guard case .written(let written)? = await work else {
      Issue.record("the result did not come first")
      return
    }
    #expect(written.number == 7)
    guard case .revoked? = await queue.next(limit: 1) else {
      Issue.record("the revocation did not follow")
      return
    }
  }

  @Test func batchesSettleInOrder() {
    var writes = PendingWrites()
    let numbers = (0..<3).map { _ in writes.begin(LedgerBatch()) }
    writes.end(numbers[1], duplicates: 1)
    #expect(writes.takeFirst()?.batch.records == nil)
    writes.end(numbers[0], duplicates: nil)
    #expect(writes.takeFirst().map(\.duplicates) == .some(nil))
    #expect(writes.takeFirst()?.duplicates == 1)
    #expect(writes.takeFirst()?.batch.records == nil && writes.count == 1)
  }

  @Test func appendWakesTheWaitingReader() async {
    let queue = WorkQueue()
    async let work = queue.next(limit: 1)
    queue.append(.assigned([], Rebalance {}))
    guard case .assigned? = await work else {
      Issue.record("no assignment came")
      return
    }
    let waiter = Task { await queue.next(limit: 1) == nil }
    waiter.cancel()
    #expect(await waiter.value)
    async let last = queue.next(limit: 1)
    queue.finish()
    #expect(await last == nil)
  }

  @Test func offsetsAreRewoundToTheStoresPositions() async throws {
    let partitions = (0..<5).map { TopicPartition(topic: "t", partition: $0) }
    let rewinds = await OffsetRewind.offsets(
      of: partitions,
      committed: [
        PartitionOffset(partition: partitions[0], offset: 10), PartitionOffset(partition: partitions[1], offset: 10),
        PartitionOffset(partition: partitions[2], offset: 10), PartitionOffset(partition: partitions[3], offset: 10),
      ],
      recorded: [partitions[0]: 10, partitions[1]: 7, partitions[2]: 15, partitions[4]: 3],
      lowest: { $0.map { PartitionOffset(partition: $0, offset: 2) } })
    #expect(
      rewinds == [
        // The store is behind: after a power failure, or restored from a backup.
        PartitionOffset(partition: partitions[1], offset: 7),
        // The store does not know the partition.
        PartitionOffset(partition: partitions[3], offset: 2),
      ])
  }
}
