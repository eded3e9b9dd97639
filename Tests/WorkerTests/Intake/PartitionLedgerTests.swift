import RDKafka
import Testing

@testable import Worker

struct PartitionLedgerTests {
  private let first = TopicPartition(topic: "sends", partition: 0)
  private let second = TopicPartition(topic: "sends", partition: 1)

  private func record(_ partition: TopicPartition, _ offset: Int64) -> ConsumedRecord {
    ConsumedRecord(topic: partition.topic, partition: partition.partition, offset: offset, timestamp: 1, key: nil, value: [])
  }

  /// Takes note of a record of a partition that is owned.
  private func begin(_ partition: TopicPartition, _ offset: Int64, in ledger: inout PartitionLedger) throws -> Origin {
    let origin = ledger.begin(record(partition, offset))
    return try #require(origin)
  }

  private func advanced(_ ledger: inout PartitionLedger) -> [PartitionOffset] { ledger.takeAdvanced() }

  private func close(_ partition: TopicPartition, _ ledger: inout PartitionLedger) -> PartitionOffset? { ledger.close(partition) }

  @Test func `records of partitions that are not owned are left alone`() {
    var ledger = PartitionLedger()
    ledger.assign(first)
    let foreign = ledger.begin(record(second, 0))
    #expect(foreign == nil)
    let own = ledger.begin(record(first, 0))
    #expect(own != nil)
  }

  @Test func `each position is handed out once, and the last one at the end`() throws {
    var ledger = PartitionLedger()
    ledger.assign(first)
    ledger.assign(second)
    let origins = try (0..<3).map { try begin(first, $0, in: &ledger) }
    ledger.settle(origins[1])
    #expect(advanced(&ledger).isEmpty)
    ledger.settle(origins[0])
    #expect(advanced(&ledger) == [PartitionOffset(partition: first, offset: 2)])
    #expect(advanced(&ledger).isEmpty)
    #expect(close(first, &ledger)?.offset == 2)
    #expect(close(second, &ledger) == nil)
  }

  @Test func `a late outcome of an older assignment commits nothing`() throws {
    var ledger = PartitionLedger()
    ledger.assign(first)
    let old = try begin(first, 7, in: &ledger)
    ledger.close(first)
    ledger.settle(old)
    #expect(advanced(&ledger).isEmpty)
    ledger.assign(first)
    let new = try begin(first, 7, in: &ledger)
    ledger.settle(old)
    #expect(advanced(&ledger).isEmpty)
    #expect(!ledger.isOwned(old))
    ledger.settle(new)
    #expect(advanced(&ledger) == [PartitionOffset(partition: first, offset: 8)])
  }

  @Test func `a slot that another partition has taken over does not answer for the old one`() throws {
    var ledger = PartitionLedger()
    ledger.assign(first)
    let old = try begin(first, 3, in: &ledger)
    ledger.close(first)
    ledger.assign(second)
    _ = try begin(second, 90, in: &ledger)
    ledger.settle(old)
    #expect(advanced(&ledger).isEmpty)
    let refused = ledger.begin(record(first, 4))
    #expect(refused == nil)
  }

  @Test func `a closing partition settles but takes nothing`() throws {
    var ledger = PartitionLedger()
    ledger.assign(first)
    let origin = try begin(first, 0, in: &ledger)
    ledger.beginClosing(first)
    let refused = ledger.begin(record(first, 1))
    #expect(refused == nil)
    #expect(!ledger.isOpen(origin))
    #expect(ledger.isOwned(origin))
    ledger.settle(origin)
    #expect(close(first, &ledger)?.offset == 1)
  }
}
