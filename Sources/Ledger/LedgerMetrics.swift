import FanfareCore
import Metrics
import RDKafka
import Synchronization

/// The ledger's counters and timers; the handles are created once.
struct LedgerMetrics: Sendable {
  let records: [String: Counter]
  let undecodable: [String: Counter]
  let duplicates = Counter(label: "fanfare_ledger_duplicates_total")
  let batchSeconds = Timer(label: "fanfare_ledger_batch_seconds")
  let storeFailures = Counter(label: "fanfare_ledger_store_failures_total")

  init(topics: [String]) {
    func counters(_ label: String) -> [String: Counter] {
      Dictionary(uniqueKeysWithValues: topics.map { ($0, Counter(label: label, dimensions: [("topic", $0)])) })
    }
    records = counters("fanfare_ledger_records_total")
    undecodable = counters("fanfare_ledger_undecodable_total")
  }
}

/// The lag of each assigned partition, in records and in seconds.
///
/// The lag in seconds is an upper bound of the age of the oldest record that is not written yet.
final class LagMetrics: Sendable {
  private struct Partition {
    let records: Gauge
    /// Nil while the age is unknown: no value is better than a wrong zero.
    var seconds: Gauge?
    /// The timestamp of the last recorded record, or before any is recorded of the first consumed one; nil if unknown.
    var timestamp: UnixTime?

    private let dimensions: [(String, String)]

    init(_ partition: TopicPartition, group: String) {
      dimensions = [
        ("consumer_group", group), ("topic", partition.topic), ("partition", "\(partition.partition)"),
      ]
      records = Gauge(label: "fanfare_consumer_lag_records", dimensions: dimensions)
    }

    mutating func set(records count: Int64, at now: UnixTime) {
      records.record(count)
      // Waiting records are younger than the recorded ones, so this is an upper bound of their age.
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

  private let group: String
  private let partitions = Mutex<[TopicPartition: Partition]>([:])

  init(group: String) { self.group = group }

  /// Observes a consumed batch. In a partition without recorded records, the first one has waited longest.
  func consumed(_ batch: LedgerBatch) {
    partitions.withLock { partitions in
      for (partition, milliseconds) in batch.firstTimestamps
      where milliseconds >= 0 && partitions[partition]?.timestamp == nil {
        partitions[partition, default: Partition(partition, group: group)].timestamp = UnixTime(
          milliseconds: milliseconds)
      }
    }
  }

  /// Observes a written batch.
  func recorded(_ batch: LedgerBatch) {
    partitions.withLock { partitions in
      for (partition, milliseconds) in batch.timestamps where milliseconds >= 0 {
        partitions[partition, default: Partition(partition, group: group)].timestamp = UnixTime(
          milliseconds: milliseconds)
      }
    }
  }

  /// Sets the gauges to the consumer's present lag and destroys those of partitions that are no longer assigned.
  func update(_ current: @autoclosure () -> [TopicPartition: Int64], at now: UnixTime) {
    partitions.withLock { partitions in
      // Evaluated under the lock, so that every partition already consumed from is included.
      let lag = current()
      for (partition, records) in lag {
        partitions[partition, default: Partition(partition, group: group)].set(records: records, at: now)
      }
      for (partition, entry) in partitions where lag[partition] == nil {
        entry.destroy()
        partitions[partition] = nil
      }
    }
  }

  /// Destroys all gauges when the ledger ends; its successor creates its own.
  func end() {
    partitions.withLock { partitions in
      for entry in partitions.values { entry.destroy() }
      partitions = [:]
    }
  }
}
