import FanfareCore
import Metrics
import RDKafka
import Synchronization

/// How far the ledger is behind in each partition it has: in records, and in the age of the oldest that is not in the
/// file, or the most that it can be.
final class LagMetrics: Sendable {
  private struct Partition {
    let records: Gauge
    /// Nil until something is known: none says more than zero.
    var seconds: Gauge?
    /// When the last record in the file was written, or as long as there is none the first one that was taken in; nil
    /// where nobody knows.
    var timestamp: UnixTime?

    private let dimensions: [(String, String)]

    init(_ partition: TopicPartition) {
      dimensions = [("topic", partition.topic), ("partition", "\(partition.partition)")]
      records = Gauge(label: "fanfare_consumer_lag_records", dimensions: dimensions)
    }

    mutating func set(records count: Int64, at now: UnixTime) {
      records.record(count)
      // What waits was written after what is in the file: it is at most this old.
      guard let age = count == 0 ? 0 : timestamp.map({ max(0, (now - $0) / .seconds(1)) }) else { return }
      let gauge = seconds ?? Gauge(label: "fanfare_consumer_lag_seconds", dimensions: dimensions)
      gauge.record(age)
      seconds = gauge
    }

    func destroy() {
      records.destroy()
      seconds?.destroy()
    }
  }

  private let partitions = Mutex<[TopicPartition: Partition]>([:])

  /// The records of this batch have come. Of a partition of which nothing has been recorded since it was assigned, the
  /// first waits longest.
  func takenIn(_ batch: LedgerBatch) {
    partitions.withLock { partitions in
      for (partition, milliseconds) in batch.firstTimestamps
      where milliseconds >= 0 && partitions[partition]?.timestamp == nil {
        partitions[partition, default: Partition(partition)].timestamp = UnixTime(milliseconds: milliseconds)
      }
    }
  }

  /// The records of this batch are in the file now.
  func recorded(_ batch: LedgerBatch) {
    partitions.withLock { partitions in
      for (partition, milliseconds) in batch.timestamps where milliseconds >= 0 {
        partitions[partition, default: Partition(partition)].timestamp = UnixTime(milliseconds: milliseconds)
      }
    }
  }

  /// Sets the gauges to what the consumer knows now; partitions that it no longer has get none.
  func update(_ current: @autoclosure () -> [TopicPartition: Int64], at now: UnixTime) {
    partitions.withLock { partitions in
      // What has been taken in by now is not missing there.
      let lag = current()
      for (partition, records) in lag {
        partitions[partition, default: Partition(partition)].set(records: records, at: now)
      }
      for (partition, entry) in partitions where lag[partition] == nil {
        entry.destroy()
        partitions[partition] = nil
      }
    }
  }

  /// The ledger has no partitions any more, and none will report again: whoever comes after it has gauges of its own.
  func end() {
    partitions.withLock { partitions in
      for entry in partitions.values { entry.destroy() }
      partitions = [:]
    }
  }
}
