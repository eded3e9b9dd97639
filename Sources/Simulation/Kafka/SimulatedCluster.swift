import FanfareCore
import RDKafka

/// The model of a Kafka cluster: brokers, the logs of partitions, and groups.
///
/// Each partition has a leader and each group a coordinator among the brokers. When a broker dies, others take over
/// after a while, and an unclean election loses the end of a log.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedCluster: @unchecked Sendable {
  typealias Stored = SimulatedLog.Record

  /// The behaviour of the cluster and its clients, which faults change.
  struct Behaviour {
    /// How long a request takes to a broker or back, in microseconds.
    var latency: ClosedRange<World.Time> = .milliseconds(1)...(.milliseconds(5))
    /// The share of requests that are not answered; half of them are carried out.
    var doubt = 0.0
    /// The share of appended batches behind which offsets are missing.
    var gaps = 0.0
    /// Whether clients compare leader epochs and so notice a truncated log, as librdkafka does since 2.1.
    var knowsEpochs = true
  }

  /// The number of brokers.
  static let brokers = 3
  /// How long it takes until another broker leads the partitions and groups of a dead one.
  static let takeOver: ClosedRange<World.Time> = .milliseconds(200)...(.seconds(4))

  let world: World
  var behaviour = Behaviour()
  private var topics: [String: [Partition]] = [:]
  private var groups: [String: SimulatedGroup] = [:]
  /// Until when each broker is down.
  private var downUntil = Array(repeating: World.Time(0), count: brokers)
  private var lastBatch: UInt64 = 0
  /// Told about every record that is in the log.
  var onAppend: (TopicPartition, _ offset: Int64, Stored) -> Void = { _, _, _ in }
  /// Told about every record of which its producer does not know whether it is in the log.
  var onDoubt: (TopicPartition, Stored) -> Void = { _, _ in }
  /// Told about records that a log has lost: its end, or, if `isEnd` is false, its oldest records.
  var onLoss: (TopicPartition, [SimulatedLog.Entry], _ isEnd: Bool) -> Void = { _, _, _ in }
  /// Told about every position that a group has taken, and the one before.
  var onCommit: (_ group: String, PartitionOffset, _ former: PartitionOffset?) -> Void = { _, _, _ in }
  /// Checks how groups share partitions.
  let sharing: Sharing

  private final class Partition {
    var log = SimulatedLog()
    var leader: Int
    /// Until when no broker leads it.
    var downUntil: World.Time = 0
    var readers: [SimulatedFetcher] = []

    init(leader: Int) {
      self.leader = leader
    }
  }

  init(in world: World, sharing: Sharing = Sharing()) {
    self.world = world
    self.sharing = sharing
  }

  /// Forgets all logs and groups, whose members and readers hold the cluster: nothing of it is kept then.
  func stop() {
    (topics, groups) = ([:], [:])
  }

  func create(_ topic: String, partitions: Int) {
    topics[topic] = (0..<partitions).map { Partition(leader: $0 % Self.brokers) }
  }

  func partitions(of topic: String) -> Int { topics[topic]?.count ?? 0 }

  /// The group; made when it is first asked for.
  func group(_ id: String) -> SimulatedGroup {
    if let group = groups[id] { return group }
    let group = SimulatedGroup(id, on: Int(FNV1a.hash(id.utf8) % UInt64(Self.brokers)), in: self)
    groups[id] = group
    return group
  }

  private func find(_ partition: TopicPartition) -> Partition? {
    guard let all = topics[partition.topic], all.indices.contains(Int(partition.partition)) else { return nil }
    return all[Int(partition.partition)]
  }

  // Requests.

  /// Sends a request of a process to the broker that has a role. The answer is nil if none arrives: the request may
  /// have been carried out nevertheless.
  func request<Answer>(
    of process: SimulatedProcess, to role: @escaping () -> Int?,
    _ carryOut: @escaping (_ reply: @escaping (Answer) -> Void) -> Void, answer: @escaping (Answer?) -> Void
  ) {
    guard !process.isDead else { return }
    // A broken connection is noticed by and by.
    let fail = { process.after(self.world.random(.milliseconds(100)...(.seconds(1)))) { answer(nil) } }
    guard let broker = role(), process.reaches(.broker(broker)) else { return fail() }
    world.after(process.trip(to: .broker(broker), behaviour.latency)) { [self] in
      // What a process sent before it died may still arrive.
      if process.isDead, world.happens(0.5) { return }
      guard isUp(broker), role() == broker, process.reaches(.broker(broker)) else { return fail() }
      let isInDoubt = world.happens(behaviour.doubt)
      if isInDoubt, world.happens(0.5) { return fail() }
      carryOut { [self] result in
        guard !isInDoubt else { return fail() }
        process.after(process.trip(to: .broker(broker), behaviour.latency)) {
          if process.reaches(.broker(broker)) { answer(result) } else { fail() }
        }
      }
    }
  }

  private func isUp(_ broker: Int) -> Bool { downUntil[broker] <= world.now }

  /// The broker that leads the partition; nil: none does.
  func leader(of partition: TopicPartition) -> Int? {
    guard let partition = find(partition), partition.downUntil <= world.now, isUp(partition.leader) else { return nil }
    return partition.leader
  }

  /// The broker that coordinates the group; nil: none does.
  func coordinator(of group: SimulatedGroup) -> Int? {
    group.downUntil <= world.now && isUp(group.coordinator) ? group.coordinator : nil
  }

  /// Any broker that the process reaches.
  func anyBroker(for process: SimulatedProcess) -> Int? {
    (0..<Self.brokers).first { isUp($0) && process.reaches(.broker($0)) }
  }

  // Logs.

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

  /// A number for a batch, by which its repetition is recognised.
  func nextBatch() -> UInt64 {
    lastBatch += 1
    return lastBatch
  }

  /// Appends a batch, unless it is in the log already. Returns the offset of its first record.
  func append(_ records: [Stored], batch: UInt64, to name: TopicPartition) -> Int64 {
    guard let partition = find(name) else { return -1 }
    if let first = partition.log.first(of: batch) { return first }
    let first = partition.log.append(records, batch: batch)
    for (index, record) in records.enumerated() { onAppend(name, first + Int64(index), record) }
    if world.happens(behaviour.gaps) { partition.log.leaveGap(world.random(1...3)) }
    for reader in partition.readers { reader.fetchSoon() }
    return first
  }

  func log(_ partition: TopicPartition) -> SimulatedLog? { find(partition)?.log }

  /// The position of a group.
  func position(_ partition: TopicPartition, of group: String) -> Int64 {
    groups[group]?.positions[partition]?.offset ?? 0
  }

  func watch(_ partition: TopicPartition, by reader: SimulatedFetcher) { find(partition)?.readers.append(reader) }
  func unwatch(_ partition: TopicPartition, by reader: SimulatedFetcher) {
    find(partition)?.readers.removeAll { $0 === reader }
  }

  // Faults.

  /// Takes away a partition's leader for a while; then another broker leads it. An unclean election loses the last
  /// batches.
  func elect(_ name: TopicPartition, after time: World.Time, losing batches: Int = 0) {
    guard let partition = find(name) else { return }
    partition.downUntil = max(partition.downUntil, world.now + time)
    world.note("\(name)", "leader", "is missing", for: time, then: "is there")
    world.after(time) { [self] in
      partition.leader = nextBroker(after: partition.leader)
      partition.log.elect()
      let lost = partition.log.truncate(batches: batches)
      if !lost.isEmpty {
        world.trace.note(world.now, "\(name) loses \(lost.count) records from \(partition.log.end) on")
        onLoss(name, lost, true)
      }
      for reader in partition.readers { reader.fetchSoon() }
    }
  }

  /// Lets a broker die for a while: others take over its partitions and groups. Not while another one is down: then
  /// nothing could be written, as Kafka is usually configured.
  func takeDown(_ broker: Int, for time: World.Time) {
    guard (0..<Self.brokers).allSatisfy(isUp) else { return }
    downUntil[broker] = max(downUntil[broker], world.now + time)
    world.note("broker \(broker)", "broker", "is down", for: time, then: "is up")
    for (topic, partitions) in topics.sorted(by: { $0.key < $1.key }) {
      for (number, partition) in partitions.enumerated() where partition.leader == broker {
        elect(TopicPartition(topic: topic, partition: Int32(number)), after: takeOverTime())
      }
    }
    for (_, group) in groups.sorted(by: { $0.key < $1.key }) where group.coordinator == broker {
      moveCoordinator(of: group, after: takeOverTime())
    }
  }

  /// Moves a group to another broker, which first reads its positions.
  func moveCoordinator(of group: SimulatedGroup, after time: World.Time) {
    world.note(group.id, "coordinator", "is missing", for: time, then: "is there")
    group.move(to: nextBroker(after: group.coordinator), until: world.now + time)
  }

  /// Deletes the oldest records of a partition, as its retention does.
  func delete(_ count: Int, of name: TopicPartition) {
    guard let partition = find(name) else { return }
    let deleted = partition.log.delete(count)
    guard !deleted.isEmpty else { return }
    world.trace.note(world.now, "\(name) begins at \(partition.log.start)")
    onLoss(name, deleted, false)
  }

  private func takeOverTime() -> World.Time { world.random(Self.takeOver) }

  private func nextBroker(after broker: Int) -> Int {
    // The last one is the same broker again: a partition or a group goes to none that is down while one is up.
    let candidates = (1...Self.brokers).map { (broker + $0) % Self.brokers }
    return candidates.first(where: isUp) ?? candidates[0]
  }
}
