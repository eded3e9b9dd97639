package import Logging
package import RDKafka
import Synchronization

/// Estimates a group's lag on a topic, so that a front end can refuse work before a cluster with
/// limited memory drops unread records.
///
/// Broker and group may be other processes: the monitor requests the ends of the partitions and the group's committed
/// offsets a few times a second over its own connection. In between it counts the records of a ``Producer`` that was
/// given the monitor, including those in flight.
package final class BacklogMonitor: ProductionWatch {
  package let topic: String

  /// An upper bound for the bytes of a record in the log beyond its key and value.
  private static let overheadPerRecord = 100
  /// The assumed size of a record before this process has produced one.
  private static let assumedRecordBytes = 1024

  private let groupID: String
  private let limitBytes: Int
  private let limitRecords: Int
  private let reader: LogReader
  private let logger: Logger
  private let state = Mutex(State())
  /// The highest lag of a partition, for ``hasRoom()``.
  private let worstBytes = Atomic(0)
  private let worstRecords = Atomic(0)
  /// Bytes of records submitted and not yet settled; their partitions are not known yet.
  private let inFlightBytes = Atomic(0)
  private let inFlightRecords = Atomic(0)
  private let hasObserved = Atomic(false)

  private struct State {
    var partitions: [Int32: PartitionBacklog] = [:]
    /// The offsets up to which losses have been reported.
    var lostUpTo: [Int32: Int64] = [:]

    /// The average size of this process's records.
    var averageBytes: Int {
      let records = partitions.values.reduce(0) { $0 + $1.ownRecords }
      guard records > 0 else { return BacklogMonitor.assumedRecordBytes }
      return partitions.values.reduce(0) { $0 + $1.ownBytes } / records
    }
  }

  /// The lag of one partition.
  package struct Backlog: Sendable, Hashable {
    package var partition: Int32
    /// Records that the group has not committed.
    package var records: Int
    /// Their size, estimated.
    package var bytes: Int
  }

  /// Creates a monitor without contacting a broker.
  /// The defaults keep a margin below the limits of librdkafka's mock cluster.
  ///
  /// - Parameters:
  ///   - client: The cluster.
  ///   - topic: The topic.
  ///   - groupID: The group that reads it.
  ///   - limitBytesPerPartition: The lag in bytes of one partition from which there is no room.
  ///   - limitRecordsPerPartition: The lag in records of one partition from which there is no room.
  ///   - logger: The logger for lost records.
  /// - Throws: `configuration`, naming the key.
  package init(
    client: KafkaClientConfiguration,
    topic: String,
    groupID: String,
    limitBytesPerPartition: Int = 4 * 1024 * 1024,
    limitRecordsPerPartition: Int = 90_000,
    logger: Logger
  ) throws(RDKafkaError) {
    self.topic = topic
    self.groupID = groupID
    self.limitBytes = limitBytesPerPartition
    self.limitRecords = limitRecordsPerPartition
    self.logger = logger
    // With the group's name it reads the group's offsets through its own connections.
    var client = client
    client.clientID = groupID
    reader = try LogReader(client: client, timeout: .seconds(5), logger: logger)
  }

  /// Observes until cancelled.
  package func run() async {
    while !Task.isCancelled {
      do throws(RDKafkaError) {
        try await observe()
      } catch {
        // Produced records are still counted, so there is no room any more if the cluster stays unreachable.
        logger.debug(
          "Lag could not be read", metadata: [LogKeys.topic: "\(topic)", LogKeys.error: "\(error)"])
      }
      do {
        try await Task.sleep(for: .milliseconds(250))
      } catch {
        return
      }
    }
  }

  /// Queries the cluster once. Call it before the first ``hasRoom()``, which is false until then.
  package func observe() async throws(RDKafkaError) {
    let before = state.withLock { $0.partitions.mapValues { (records: $0.ownRecords, bytes: $0.ownBytes) } }
    let partitions = try await reader.partitions(of: [topic])
    var next: [Int32: Int64] = [:]
    for offset in try await reader.committed(by: groupID, in: partitions) {
      next[offset.partition.partition] = offset.offset
    }
    let spans = try await reader.spans(of: [topic])
    var lost: Int64 = 0
    state.withLock { state in
      for span in spans {
        let partition = span.partition.partition
        if let committed = next[partition], committed < span.start {
          lost += span.start - max(committed, state.lostUpTo[partition] ?? 0)
          state.lostUpTo[partition] = span.start
        }
        state.partitions[partition, default: PartitionBacklog()].observed(
          next: max(next[partition] ?? 0, span.start), end: span.end, before: before[partition] ?? (0, 0))
      }
      updateWorst(state)
    }
    hasObserved.store(true, ordering: .releasing)
    if lost > 0 {
      logger.error(
        "Cluster dropped unread records",
        metadata: [LogKeys.topic: "\(topic)", LogKeys.group: "\(groupID)", LogKeys.records: "\(lost)"])
    }
  }

  /// Whether the cluster has been queried; before that there is no room.
  package var isInformed: Bool { hasObserved.load(ordering: .acquiring) }

  /// Whether another record fits without displacing an unread one. Costs a few atomic loads.
  package func hasRoom() -> Bool {
    hasObserved.load(ordering: .acquiring)
      && worstBytes.load(ordering: .relaxed) + inFlightBytes.load(ordering: .relaxed) < limitBytes
      && worstRecords.load(ordering: .relaxed) + inFlightRecords.load(ordering: .relaxed) < limitRecords
  }

  /// The partition with the highest lag in bytes; nil before the first query.
  package var worstPartition: Backlog? {
    state.withLock { state in
      let average = state.averageBytes
      return state.partitions
        .map { Backlog(partition: $0.key, records: $0.value.records, bytes: $0.value.bytes(averageBytes: average)) }
        .max { ($0.bytes, $0.records) < ($1.bytes, $1.records) }
    }
  }

  /// The lag of all partitions in records.
  package var records: Int {
    state.withLock { $0.partitions.values.reduce(0) { $0 + $1.records } }
  }

  private func updateWorst(_ state: borrowing State) {
    let average = state.averageBytes
    var (bytes, records) = (0, 0)
    for partition in state.partitions.values {
      bytes = max(bytes, partition.bytes(averageBytes: average))
      records = max(records, partition.records)
    }
    worstBytes.store(bytes, ordering: .relaxed)
    worstRecords.store(records, ordering: .relaxed)
  }
}

// MARK: - Events of the producer

extension BacklogMonitor {
  /// Counts records that are about to be submitted.
  package func willProduce(_ records: [ProducerRecord]) {
    count(records, sign: 1)
  }

  /// Uncounts records that were refused.
  package func didNotProduce(_ records: [ProducerRecord]) {
    count(records, sign: -1)
  }

  /// Resets the records in flight after their handle has failed.
  /// Records submitted concurrently may be miscounted.
  package func forgetInFlight() {
    inFlightBytes.store(0, ordering: .relaxed)
    inFlightRecords.store(0, ordering: .relaxed)
  }

  /// Moves settled records of the topic from the records in flight to their partitions.
  package func didProduce(_ deliveries: [Delivery]) {
    let bytes = deliveries.reduce(0) { $0 + $1.bytes + Self.overheadPerRecord }
    state.withLock { state in
      for delivery in deliveries where delivery.isAcknowledged {
        state.partitions[delivery.partition, default: PartitionBacklog()].produced(
          offset: delivery.offset, bytes: delivery.bytes + Self.overheadPerRecord)
      }
      updateWorst(state)
    }
    // After the partition was updated: meanwhile a record counts twice instead of not at all.
    inFlightBytes.wrappingSubtract(bytes, ordering: .relaxed)
    inFlightRecords.wrappingSubtract(deliveries.count, ordering: .relaxed)
  }

  private func count(_ records: [ProducerRecord], sign: Int) {
    var (bytes, count) = (0, 0)
    for record in records where record.topic == topic {
      bytes += record.payloadBytes + Self.overheadPerRecord
      count += 1
    }
    guard count > 0 else { return }
    inFlightBytes.wrappingAdd(sign * bytes, ordering: .relaxed)
    inFlightRecords.wrappingAdd(sign * count, ordering: .relaxed)
  }
}

/// The lag of one partition in records and, estimated, in bytes.
///
/// Kafka reports offsets, not sizes. Records of this process are counted exactly; those of others are assumed to have
/// the same average size.
struct PartitionBacklog {
  /// The records and bytes of this process before `offset`.
  private struct Mark {
    var offset: Int64
    var records: Int
    var bytes: Int
  }

  /// Above this number every other mark is removed. Estimates get coarser, but never too low.
  private static let markLimit = 512

  /// The offset of the group's next record.
  private(set) var next: Int64 = 0
  /// The offset after the last record.
  private(set) var end: Int64 = 0
  /// The number of records that this process has produced, and their bytes.
  private(set) var ownRecords = 0
  private(set) var ownBytes = 0
  /// In ascending order. The first is the latest at or before `next`.
  private var marks = [Mark(offset: 0, records: 0, bytes: 0)]

  /// Counts an acknowledged record of this process.
  mutating func produced(offset: Int64, bytes: Int) {
    end = max(end, offset + 1)
    ownRecords += 1
    ownBytes += bytes
  }

  /// Updates the offsets from the cluster.
  /// `before` is this process's production before the query, which precedes `end`.
  mutating func observed(next: Int64, end: Int64, before: (records: Int, bytes: Int)) {
    if let last = marks.last, end > last.offset {
      marks.append(Mark(offset: end, records: before.records, bytes: before.bytes))
    }
    self.next = max(self.next, next)
    self.end = max(self.end, end)
    while marks.count > 1, marks[1].offset <= self.next { marks.removeFirst() }
    if marks.count > Self.markLimit {
      marks = marks.enumerated().filter { $0.offset == 0 || $0.offset % 2 == 1 }.map(\.element)
    }
  }

  /// The unread records.
  var records: Int { max(0, Int(clamping: end - next)) }

  /// The unread bytes, estimated.
  func bytes(averageBytes: Int) -> Int {
    let own = ownRecords - marks[0].records
    let ownBytes = ownBytes - marks[0].bytes
    guard own <= records else {
      // The mark is older than `next`: some of its records have been read.
      // in range: less than the bytes that this process has produced
      return Int(Double(ownBytes) * Double(records) / Double(own))
    }
    return ownBytes + (records - own) * averageBytes
  }
}
