import RDKafka
import Testing

@testable import Worker

/// A topic that is made again, or whose log is cut, while a worker reads it.
struct FreshLogTests {
  private static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)

  private func record(_ offset: Int64) -> ConsumedRecord {
    ConsumedRecord(
      topic: Self.partition.topic, partition: Self.partition.partition, offset: offset, timestamp: 0, key: nil,
      value: [])
  }

  /// Takes note of a record that is to be worked on.
  private func begin(_ offset: Int64, in ledger: inout PartitionOffsets) throws -> Origin {
    let origin = ledger.begin(record(offset))
    return try #require(origin)
  }

  @Test func recordsKeptByTheLogAreStillUnsettled() throws {
    var ledger = PartitionOffsets()
    ledger.assign(Self.partition)
    let old = try (100...104).map { try begin($0, in: &ledger) }
    ledger.settle(old[1])
    // An election has cut what begins with 103.
    let new = try begin(103, in: &ledger)
    #expect(ledger.takeChanged(metadataLimit: 100).map(\.offset) == [100])
    for lost in old[3...] { ledger.settle(lost) }
    ledger.settle(new)
    ledger.settle(old[0])
    #expect(ledger.takeChanged(metadataLimit: 100).map(\.offset) == [102], "102 has not ended")
    ledger.settle(old[2])
    #expect(ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 104)])
  }

  @Test func positionIsThatOfPresentLog() throws {
    var ledger = PartitionOffsets()
    ledger.assign(Self.partition)
    let old = try [100, 101].map { try begin($0, in: &ledger) }
    ledger.settle(old[0])
    #expect(ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 101)])
    let new = try [0, 1].map { try begin($0, in: &ledger) }
    #expect(
      ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 0)],
      "before the next owner skips it")
    // Of a record that is gone.
    ledger.settle(old[1])
    #expect(ledger.takeChanged(metadataLimit: 100) == [])
    #expect(ledger.largestSpan == 2)
    ledger.settle(new[0])
    #expect(ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 1)])
    ledger.settle(new[1])
    #expect(ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 2)])
  }

  @Test func positionBeyondTheLogIsIgnored() throws {
    var ledger = PartitionOffsets()
    ledger.assign(Self.partition)
    ledger.resume(PartitionOffset(Self.partition, 100, settled: "BB"))
    let first = try begin(3, in: &ledger)
    ledger.settle(first)
    #expect(ledger.takeChanged(metadataLimit: 100) == [PartitionOffset(partition: Self.partition, offset: 4)])
  }
}
