import Synchronization

/// A scan of spans of the log, batch by batch, in order within each partition.
/// Records after the spans are not read.
package final class LogScan: Sendable {
  private let handle: LogHandle
  private let timeout: Duration
  private let state: Mutex<State>

  private struct State {
    let reader: RecordReader
    /// The ends of the unfinished partitions.
    var ends: [TopicPartition: Int64]
  }

  /// An empty span ends when the broker says that the log ends there.
  init(_ spans: [LogSpan], properties: PropertySet, timeout: Duration) throws(RDKafkaError) {
    handle = try LogHandle(
      properties: properties, from: spans.map { PartitionOffset(partition: $0.partition, offset: $0.start) })
    self.timeout = timeout
    let reader = RecordReader(queue: handle.records, readsHeaders: true)
    reader.own(spans.map(\.partition))
    state = Mutex(
      State(reader: reader, ends: Dictionary(spans.map { ($0.partition, $0.end) }) { max($0, $1) }))
  }

  /// The next records, at least one; nil after the last. For one caller at a time.
  ///
  /// - Throws: `timedOut` when no record comes within the reader's timeout, and the brokers' permanent errors.
  package func next() async throws(RDKafkaError) -> [ConsumedRecord]? {
    try await BlockingCalls.run { [self] () throws(RDKafkaError) in
      let deadline = ContinuousClock.now + timeout
      while true {
        let (records, hasMore, isAtEnd) = try take()
        if !records.isEmpty { return records }
        if isAtEnd { return nil }
        guard ContinuousClock.now < deadline else {
          throw RDKafkaError(code: .timedOut, message: "no more records came for \(timeout)")
        }
        if !hasMore { handle.wakeUp.wait(milliseconds: 100) }
      }
    }
  }

  private func take() throws(RDKafkaError) -> (records: [ConsumedRecord], hasMore: Bool, isAtEnd: Bool) {
    try state.withLock { state throws(RDKafkaError) in
      guard !state.ends.isEmpty else { return ([], false, true) }
      let taken = state.reader.take(limit: RecordReader.capacity)
      if let error = taken.errors.first(where: { !$0.isRetriable }) { throw error }
      var records: [ConsumedRecord] = []
      records.reserveCapacity(taken.count)
      var finished: [TopicPartition] = []
      var current: (partition: TopicPartition, end: Int64)?
      for record in taken.batches.joined() {
        if current?.partition.partition != record.partition || current?.partition.topic != record.topic {
          current = (record.topicPartition, state.ends[record.topicPartition] ?? 0)
        }
        guard let (partition, end) = current, end > 0 else { continue }
        if record.offset < end { records.append(record) }
        if record.offset >= end - 1 {
          finished.append(partition)
          state.ends[partition] = nil
          current = (partition, 0)
        }
      }
      for place in taken.ends where place.offset >= state.ends[place.partition] ?? .max {
        finished.append(place.partition)
        state.ends[place.partition] = nil
      }
      if !finished.isEmpty { try handle.stop(finished) }
      return (records, taken.popped > 0, state.ends.isEmpty)
    }
  }
}
