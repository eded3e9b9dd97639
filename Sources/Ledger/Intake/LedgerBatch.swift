package import FanfareCore
package import RDKafka

/// Records that go into the store in one transaction, and how far in the log they reach.
package struct LedgerBatch: Sendable {
  private(set) var entries: [LedgerEntry] = []
  /// The offset after the last record of each partition.
  private(set) var positions: [TopicPartition: Int64] = [:]
  /// When the last record of each partition was written, in Unix milliseconds; -1 where the log does not say.
  private(set) var timestamps: [TopicPartition: Int64] = [:]
  /// When the first record of each partition was written, likewise.
  private(set) var firstTimestamps: [TopicPartition: Int64] = [:]
  /// Records, read or not, and their bytes.
  private(set) var records = 0
  private(set) var bytes = 0
  /// Records that could be read, by topic.
  private(set) var recordsByTopic: [String: Int] = [:]
  /// Records that could not be read, by topic, with the first reason.
  private(set) var undecodable: [String: (count: Int, reason: RecordError)] = [:]

  /// No records.
  init() {}

  /// Reads records. One that cannot be read is counted and passed over: the worker sets it aside, and here nothing can
  /// be done about it.
  package init(_ records: [ConsumedRecord], topics: Topics, maximumDevices: Int) {
    entries.reserveCapacity(records.count)
    self.records = records.count
    for record in records {
      bytes += record.value.count + (record.key?.count ?? 0)
      if positions.updateValue(record.offset + 1, forKey: record.topicPartition) == nil {
        firstTimestamps[record.topicPartition] = record.timestamp
      }
      timestamps[record.topicPartition] = record.timestamp
      do throws(RecordError) {
        if let entry = try Self.entry(record, topics: topics, maximumDevices: maximumDevices) { entries.append(entry) }
        recordsByTopic[record.topic, default: 0] += 1
      } catch {
        undecodable[record.topic, default: (0, error)].count += 1
      }
    }
  }

  /// Appends a later batch.
  mutating func append(_ next: LedgerBatch) {
    entries += next.entries
    positions.merge(next.positions) { $1 }
    timestamps.merge(next.timestamps) { $1 }
    firstTimestamps.merge(next.firstTimestamps) { first, _ in first }
    records += next.records
    bytes += next.bytes
    recordsByTopic.merge(next.recordsByTopic) { $0 + $1 }
    undecodable.merge(next.undecodable) { ($0.count + $1.count, $0.reason) }
  }

  private static func entry(_ record: ConsumedRecord, topics: Topics, maximumDevices: Int) throws(RecordError)
    -> LedgerEntry?
  {
    guard record.topic == topics.status else {
      let recordTime = UnixTime(milliseconds: max(0, record.timestamp))
      do throws(RecordError) {
        return .accepted(LedgerEntry.Acceptance(try SendRequest.decode(record.value, recordTime: recordTime)))
      } catch  where error.reason == .unknownType {
        // What comes back from a retry topic was accepted when it came first.
        guard (try? RetryRecord.wait(of: record.value, at: UnixTime(milliseconds: 0))) != nil else { throw error }
        return nil
      }
    }
    return .settled(LedgerEntry.Settlement(try StatusRecord.decode(record.value), maximumDevices: maximumDevices))
  }
}
