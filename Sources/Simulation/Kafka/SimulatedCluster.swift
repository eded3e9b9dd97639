import FanfareCore
import RDKafka

/// The model of a Kafka cluster: logs of partitions, and groups.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedCluster: @unchecked Sendable {
  /// A record as the log keeps it.
  struct Stored {
    let key: [UInt8]?
    let value: [UInt8]
    /// Milliseconds since 1970, as the producer stamped it.
    let timestamp: Int64
    /// The process that has produced it.
    var writer = ""
  }

  /// The behaviour of the cluster, which faults change.
  struct Behaviour {
    /// How long a request takes, in microseconds.
    var latency: ClosedRange<World.Time> = .milliseconds(1)...(.milliseconds(5))
    /// The share of appends that end in doubt.
    var doubt = 0.0
  }

  let world: World
  var behaviour = Behaviour()
  private var topics: [String: [Log]] = [:]
  private var groups: [String: SimulatedGroup] = [:]
  /// Told about every record that is in the log.
  var onAppend: (TopicPartition, _ offset: Int64, Stored) -> Void = { _, _, _ in }
  /// Told about every position that a group has taken, and the one before.
  var onCommit: (_ group: String, PartitionOffset, _ former: PartitionOffset?) -> Void = { _, _, _ in }

  private final class Log {
    var records: [Stored] = []
    /// Until when no leader takes or gives records.
    var downUntil: World.Time = 0
    var readers: [SimulatedConsumer] = []
  }

  init(in world: World) {
    self.world = world
  }

  func create(_ topic: String, partitions: Int) {
    topics[topic] = (0..<partitions).map { _ in Log() }
  }

  func partitions(of topic: String) -> Int { topics[topic]?.count ?? 0 }

  /// The group; made when it is first asked for.
  func group(_ id: String, topic: String) -> SimulatedGroup {
    if let group = groups[id] { return group }
    let group = SimulatedGroup(id, topic: topic, in: self)
    groups[id] = group
    return group
  }

  /// A latency of one request.
  func latency() -> World.Time { world.random(behaviour.latency) }

  private func log(_ partition: TopicPartition) -> Log? {
    guard let logs = topics[partition.topic], logs.indices.contains(Int(partition.partition)) else { return nil }
    return logs[Int(partition.partition)]
  }

  /// The partition that a producer chooses for a record.
  func partition(for record: ProducerRecord) -> TopicPartition? {
    guard let count = topics[record.topic]?.count, count > 0 else { return nil }
    let number: Int
    if let partition = record.partition {
      number = Int(partition) % count
    } else if let key = record.key {
      number = Int(FNV1a.hash(key) % UInt64(count))
    } else {
      number = Int(world.random(0...Int64(count - 1)))
    }
    return TopicPartition(topic: record.topic, partition: Int32(number))
  }

  /// Whether the partition has a leader.
  func isUp(_ partition: TopicPartition) -> Bool { log(partition).map { $0.downUntil <= world.now } ?? false }

  /// Takes away a partition's leader for a while.
  func takeDown(_ partition: TopicPartition, for time: World.Time) {
    log(partition)?.downUntil = world.now + time
    world.trace.note(world.now, "\(partition) has no leader for \(time / 1000) ms")
    world.after(time) { [self] in for reader in log(partition)?.readers ?? [] { reader.fetchSoon() } }
  }

  /// Appends records. Returns the offset of the first one.
  func append(_ records: [Stored], to partition: TopicPartition) -> Int64 {
    guard let log = log(partition) else { return -1 }
    let first = Int64(log.records.count)
    log.records += records
    for (index, record) in records.enumerated() { onAppend(partition, first + Int64(index), record) }
    for reader in log.readers { reader.fetchSoon() }
    return first
  }

  /// The records from an offset on, at most so many.
  func read(_ partition: TopicPartition, from offset: Int64, limit: Int) -> ArraySlice<Stored> {
    guard let log = log(partition), log.downUntil <= world.now, offset < log.records.count else { return [] }
    let start = Int(max(0, offset))
    return log.records[start..<min(log.records.count, start + limit)]
  }

  /// The offset of the next record.
  func end(of partition: TopicPartition) -> Int64 { Int64(log(partition)?.records.count ?? 0) }

  /// The position of the workers' group.
  func position(_ partition: TopicPartition) -> Int64 {
    groups.values.lazy.compactMap { $0.positions[partition]?.offset }.first ?? 0
  }

  func watch(_ partition: TopicPartition, by reader: SimulatedConsumer) { log(partition)?.readers.append(reader) }
  func unwatch(_ partition: TopicPartition, by reader: SimulatedConsumer) {
    log(partition)?.readers.removeAll { $0 === reader }
  }
}
