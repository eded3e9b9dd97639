import FanfareCore
import Metrics
import RDKafka
import Synchronization

/// How far the ledger is behind in each partition it has: in records, and in the age of the last record it has taken in.
final class LagMetrics: Sendable {
  private struct Partition {
    let records: Gauge
    let seconds: Gauge
    /// When the last record in the file was written; nil where nobody knows.
    var timestamp: UnixTime?

    init(_ partition: TopicPartition) {
      let dimensions = [("topic", partition.topic), ("partition", "\(partition.partition)")]
      records = Gauge(label: "fanfare_consumer_lag_records", dimensions: dimensions)
      seconds = Gauge(label: "fanfare_consumer_lag_seconds", dimensions: dimensions)
    }
  }

  private let partitions = Mutex<[TopicPartition: Partition]>([:])

  /// The records of this batch are in the file now.
  func recorded(_ batch: LedgerBatch) {
    partitions.withLock { partitions in
      for (partition, milliseconds) in batch.timestamps where milliseconds >= 0 {
        partitions[partition, default: Partition(partition)].timestamp = UnixTime(milliseconds: milliseconds)
      }
    }
  }

  /// Sets the gauges to what the consumer knows now; partitions that it no longer has get none.
  func update(_ lag: [TopicPartition: Int64], at now: UnixTime) {
    partitions.withLock { partitions in
      for (partition, records) in lag {
        let entry = partitions[partition, default: Partition(partition)]
        entry.records.record(records)
        // What waits was written after what was taken in last: it is at most this old.
        entry.seconds.record(records > 0 ? entry.timestamp.map { max(0, (now - $0) / .seconds(1)) } ?? 0 : 0)
        partitions[partition] = entry
      }
      for (partition, entry) in partitions where lag[partition] == nil {
        entry.records.destroy()
        entry.seconds.destroy()
        partitions[partition] = nil
      }
    }
  }
}
