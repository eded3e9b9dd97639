package import FanfareCore
package import RDKafka

/// Decoded records to be written together, with the positions that they reach.
package struct LedgerBatch: Sendable {
  private(set) var entries: [LedgerEntry] = []
  /// The next offset of each partition: one after its last record.
  private(set) var positions: [TopicPartition: Int64] = [:]
  /// The timestamp of the last record of each partition, in Unix milliseconds; -1 if it has none.
  private(set) var timestamps: [TopicPartition: Int64] = [:]
  /// The timestamp of the first record of each partition, likewise.
  private(set) var firstTimestamps: [TopicPartition: Int64] = [:]
  /// All records, decodable or not, and their bytes.
  private(set) var records = 0
  private(set) var bytes = 0
  /// Decoded records by topic.
  private(set) var recordsByTopic: [String: Int] = [:]
  /// Undecodable records by topic, with the first error.
  private(set) var undecodable: [String: (count: Int, reason: RecordError)] = [:]

  /// The settled work items of sampled sends, whose spans end with the transaction.
  private(set) var traces: [LedgerTrace] = []

  init() {}

  /// Decodes records. Undecodable ones are counted and skipped: the worker dead-letters them.
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
        try append(record, topics: topics, maximumDevices: maximumDevices)
        recordsByTopic[record.topic, default: 0] += 1
      } catch {
        undecodable[record.topic, default: (0, error)].count += 1
      }
    }
  }

  /// Appends a later batch.
  mutating func append(_ next: LedgerBatch) {
    entries += next.entries
    traces += next.traces
    positions.merge(next.positions) { $1 }
    timestamps.merge(next.timestamps) { $1 }
    firstTimestamps.merge(next.firstTimestamps) { first, _ in first }
    records += next.records
    bytes += next.bytes
    recordsByTopic.merge(next.recordsByTopic) { $0 + $1 }
    undecodable.merge(next.undecodable) { ($0.count + $1.count, $0.reason) }
  }

  private mutating func append(
    _ record: ConsumedRecord, topics: Topics, maximumDevices: Int
  ) throws(RecordError) {
    guard record.topic == topics.status else {
      let recordTime = UnixTime(milliseconds: max(0, record.timestamp))
      do throws(RecordError) {
        let send = try SendRequest.decode(record.value, recordTime: recordTime)
        return entries.append(.accepted(LedgerEntry.Acceptance(send)))
      } catch  where error.reason == .unknownType {
        // A retry record's send was counted as accepted when it was first consumed.
        guard (try? RetryRecord.wait(of: record.value, at: UnixTime(milliseconds: 0))) != nil else { throw error }
        return
      }
    }
    let status = try StatusRecord.decode(record.value)
    if let text = status.traceparent, let parent = TraceContext(traceparent: text, tracestate: status.tracestate),
      parent.isSampled
    {
      traces.append(LedgerTrace(parent: parent, send: status.send, hub: status.hub, state: status.state))
    }
    entries.append(.settled(LedgerEntry.Settlement(status, maximumDevices: maximumDevices)))
  }
}

/// A settled work item of a sampled send.
struct LedgerTrace: Sendable {
  let parent: TraceContext
  let send: SendID
  let hub: HubName
  let state: StatusRecord.State

  /// The span of its recording.
  func span(topic: String, from start: UnixTime, to end: UnixTime) -> TraceSpan {
    var generator = SystemRandomNumberGenerator()
    return TraceSpan(
      "send settle", .consumer, parent.child(using: &generator), parent: parent.span, from: start, to: end,
      attributes: TraceSpan.messaging("process", topic: topic, send: send, hub: hub) + [
        ("fanfare.state", .text(state.rawValue))
      ])
  }
}
