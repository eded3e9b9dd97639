package import Logging
import Synchronization

/// Knows how much of a topic a group has not read yet, so that a front end on the embedded cluster can refuse work
/// before the cluster drops records that nobody has read.
///
/// Broker and group may be other processes: the monitor asks the cluster for the ends of the partitions and the group's
/// committed offsets a few times a second, over a connection of its own. In between it counts what this process
/// produces, if the ``Producer`` was given the monitor, including what is in flight.
package final class BacklogMonitor: Sendable {
  /// The topic.
  package let topic: String

  /// Bytes a record takes in a log beyond its key and value, generously.
  private static let overheadPerRecord = 100
  /// The size of a record before any was produced here.
  private static let assumedRecordBytes = 1024

  private let groupID: String
  private let limitBytes: Int
  private let limitRecords: Int
  private let handle: Handle
  private let logger: Logger
  private let state = Mutex(State())
  /// The worst partition's, for ``hasRoom()``.
  private let worstBytes = Atomic(0)
  private let worstRecords = Atomic(0)
  /// Submitted and not yet settled; which partitions they are for is not known yet.
  private let inFlightBytes = Atomic(0)
  private let inFlightRecords = Atomic(0)
  private let hasObserved = Atomic(false)

  private struct State {
    var partitions: [Int32: PartitionBacklog] = [:]
    /// Losses before these offsets have been reported.
    var lostUpTo: [Int32: Int64] = [:]

    /// The average size of what was produced here.
    var averageBytes: Int {
      let records = partitions.values.reduce(0) { $0 + $1.ownRecords }
      guard records > 0 else { return BacklogMonitor.assumedRecordBytes }
      return partitions.values.reduce(0) { $0 + $1.ownBytes } / records
    }
  }

  /// The backlog of one partition.
  package struct Backlog: Sendable, Hashable {
    /// The partition.
    package var partition: Int32
    /// Records the group has not committed yet.
    package var records: Int
    /// Their size, estimated.
    package var bytes: Int
  }

  /// Makes a monitor; contacts no broker yet. The defaults keep a margin below what the embedded cluster holds.
  ///
  /// - Parameters:
  ///   - client: The cluster.
  ///   - topic: The topic that is watched.
  ///   - groupID: The group that reads it.
  ///   - limitBytesPerPartition: At this many bytes in one partition there is no room.
  ///   - limitRecordsPerPartition: At this many records in one partition there is no room.
  ///   - logger: Where lost records are reported.
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
    // A consumer that never subscribes: it may ask for the group's offsets without becoming a member.
    handle = try Handle(
      kind: .consumer,
      properties: PropertySet(
        required: client.commonProperties + [Property("group.id", groupID), Property("enable.auto.commit", "false")],
        ifSupported: [Property("enable.metrics.push", "false")],
        further: client.properties,
        reserved: ConsumerConfiguration.reservedProperties),
      events: 0, logsToQueue: false)
  }

  /// Observes until cancelled.
  package func run(every interval: Duration = .milliseconds(250)) async {
    while !Task.isCancelled {
      do throws(RDKafkaError) {
        try await observe()
      } catch {
        // What this process produces is still counted, so room runs out by itself if the cluster stays away.
        logger.debug(
          "The backlog cannot be observed", metadata: [LogKeys.topic: "\(topic)", LogKeys.error: "\(error)"])
      }
      do {
        try await Task.sleep(for: interval)
      } catch {
        return
      }
    }
  }

  /// Asks the cluster once. To be called before the first ``hasRoom()``, which is false until something is known.
  package func observe(timeout: Duration = .seconds(5)) async throws(RDKafkaError) {
    let milliseconds = timeout.timeoutMilliseconds
    try await BlockingCalls.run { [self] () throws(RDKafkaError) in
      try observe(timeoutMilliseconds: milliseconds)
    }
  }

  /// Whether the cluster has been asked at least once; before that there is no room.
  package var isInformed: Bool { hasObserved.load(ordering: .acquiring) }

  /// Whether another record can be produced without endangering one that has not been read. Costs a few loads.
  package func hasRoom() -> Bool {
    hasObserved.load(ordering: .acquiring)
      && worstBytes.load(ordering: .relaxed) + inFlightBytes.load(ordering: .relaxed) < limitBytes
      && worstRecords.load(ordering: .relaxed) + inFlightRecords.load(ordering: .relaxed) < limitRecords
  }

  /// The partition with the most bytes to read, or nil before anything is known.
  package var worstPartition: Backlog? {
    state.withLock { state in
      let average = state.averageBytes
      return state.partitions
        .map { Backlog(partition: $0.key, records: $0.value.records, bytes: $0.value.bytes(averageBytes: average)) }
        .max { ($0.bytes, $0.records) < ($1.bytes, $1.records) }
    }
  }

  /// Records of all partitions that the group has not committed yet.
  package var records: Int {
    state.withLock { $0.partitions.values.reduce(0) { $0 + $1.records } }
  }

  private func observe(timeoutMilliseconds: Int32) throws(RDKafkaError) {
    let partitions = try knownPartitions(timeoutMilliseconds: timeoutMilliseconds)
    let before = state.withLock { $0.partitions.mapValues { (records: $0.ownRecords, bytes: $0.ownBytes) } }
    var next: [Int32: Int64] = [:]
    for offset in try handle.committed(partitions, timeoutMilliseconds: timeoutMilliseconds) {
      next[offset.partition.partition] = offset.offset
    }
    let first = try handle.ends(.first, of: partitions, timeoutMilliseconds: timeoutMilliseconds)
    let ends = try handle.ends(.next, of: partitions, timeoutMilliseconds: timeoutMilliseconds)
    var lost: Int64 = 0
    state.withLock { state in
      for (first, end) in zip(first, ends) {
        let partition = end.partition.partition
        if let committed = next[partition], committed < first.offset {
          lost += first.offset - max(committed, state.lostUpTo[partition] ?? 0)
          state.lostUpTo[partition] = first.offset
        }
        state.partitions[partition, default: PartitionBacklog()].observed(
          next: max(next[partition] ?? 0, first.offset), end: max(0, end.offset), before: before[partition] ?? (0, 0))
      }
      updateWorst(state)
    }
    hasObserved.store(true, ordering: .releasing)
    if lost > 0 {
      logger.error(
        "The cluster has dropped records that were never read",
        metadata: [LogKeys.topic: "\(topic)", LogKeys.group: "\(groupID)", LogKeys.records: "\(lost)"])
    }
  }

  private func knownPartitions(timeoutMilliseconds: Int32) throws(RDKafkaError) -> [TopicPartition] {
    let count: Int32
    if hasObserved.load(ordering: .acquiring) {
      count = Int32(clamping: state.withLock { $0.partitions.count })
    } else {
      count = try TopicHandle(name: topic, on: handle).partitionCount(timeoutMilliseconds: timeoutMilliseconds)
    }
    return (0..<count).map { TopicPartition(topic: topic, partition: $0) }
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

// MARK: - What the producer tells

extension BacklogMonitor {
  /// Records are about to be handed over.
  func willProduce(_ records: [ProducerRecord]) {
    count(records, sign: 1)
  }

  /// Of these, nothing more will be heard.
  func didNotProduce(_ records: [ProducerRecord]) {
    count(records, sign: -1)
  }

  /// Of what is in flight nothing more will be heard. What is handed over in this very moment may be counted by its
  /// size too little or too much.
  func forgetInFlight() {
    inFlightBytes.store(0, ordering: .relaxed)
    inFlightRecords.store(0, ordering: .relaxed)
  }

  /// These records of the topic are settled, one way or the other.
  func didProduce(_ deliveries: [Delivery]) {
    let bytes = deliveries.reduce(0) { $0 + $1.bytes + Self.overheadPerRecord }
    state.withLock { state in
      for delivery in deliveries where delivery.isAcknowledged {
        state.partitions[delivery.partition, default: PartitionBacklog()].produced(
          offset: delivery.offset, bytes: delivery.bytes + Self.overheadPerRecord)
      }
      updateWorst(state)
    }
    // After the partition's count has gone up: in between a record counts twice rather than not at all.
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
