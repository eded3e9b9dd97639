import FanfareCore
import RDKafka

/// The model of a consumer's fetches: reads the partitions of one member against credit, one after another.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedFetcher: @unchecked Sendable {
  private let process: SimulatedProcess
  private let cluster: SimulatedCluster
  private let configuration: ConsumerConfiguration
  private let member: SimulatedMember
  private let progress: Progress
  private var credit = 0
  private var isPaused = false
  private var readers: [TopicPartition: Reader] = [:]
  /// The partitions that are read, in the order of their turns.
  private(set) var partitions: [TopicPartition] = []
  private var isFetching = false
  /// Whether records may be delivered now.
  var mayRead: () -> Bool = { false }
  var onRecords: ([ConsumedRecord]) -> Void = { _ in }

  /// The place in a partition at which it is read.
  private struct Reader {
    /// The offset of the next record; nil while the coordinator or the leader is asked for it.
    var position: Int64?
    /// The leader epoch of the last record read, and that under which the position was last compared with the log.
    var epochs: (read: Int32?, validated: Int32) = (nil, -1)
  }

  init(
    _ configuration: ConsumerConfiguration, of process: SimulatedProcess, in cluster: SimulatedCluster,
    member: SimulatedMember, progress: Progress
  ) {
    (self.configuration, self.process, self.cluster) = (configuration, process, cluster)
    (self.member, self.progress) = (member, progress)
  }

  private var world: World { cluster.world }

  func add(_ new: [TopicPartition]) {
    for partition in new {
      readers[partition] = Reader()
      partitions.append(partition)
      cluster.watch(partition, by: self)
    }
    resume(new)
  }

  func remove(_ old: [TopicPartition]) {
    for partition in old {
      readers[partition] = nil
      cluster.unwatch(partition, by: self)
    }
    partitions.removeAll(where: old.contains)
  }

  func grant(records: Int) {
    credit += records
    fetchSoon()
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    fetchSoon()
  }

  /// Reads partitions from the group's positions on.
  private func resume(_ partitions: [TopicPartition]) {
    guard !partitions.isEmpty else { return }
    member.ask { group, reply in
      reply(partitions.compactMap { group.positions[$0] })
    } answer: { [weak self] (positions: [PartitionOffset]?) in
      guard let self else { return }
      let open = partitions.filter { readers[$0] != nil && readers[$0]?.position == nil }
      guard let positions else { return resume(open) }
      progress.resumed(positions)
      for partition in open {
        let position = positions.first { $0.partition == partition }?.offset
        if let position { readers[partition]?.position = position } else { reset(partition) }
      }
      fetchSoon()
    }
  }

  /// Begins where a consumer without a position does.
  private func reset(_ partition: TopicPartition) {
    readers[partition]?.position = nil
    let (cluster, start) = (cluster, configuration.start)
    cluster.request(of: process, to: { cluster.leader(of: partition) }) { reply in
      let log = cluster.log(partition)
      reply(start == .earliest ? log?.start ?? 0 : log?.end ?? 0)
    } answer: { [weak self] position in
      guard let self, readers[partition] != nil else { return }
      guard let position else { return reset(partition) }
      world.trace.note(world.now, "\(process.name) reads \(partition) from \(position) on")
      readers[partition]?.position = position
      readers[partition]?.epochs.read = nil
      fetchSoon()
    }
  }

  /// Asks for records, unless that has been asked already.
  func fetchSoon() {
    guard !isFetching, credit > 0, !partitions.isEmpty else { return }
    isFetching = true
    process.after(world.random(cluster.behaviour.latency)) { [self] in
      isFetching = false
      fetch()
    }
  }

  private func fetch() {
    guard mayRead() else { return }
    var rest = min(credit, 500)
    var (hasMore, mustRepeat) = (false, false)
    for isPausable in [false, true] where rest > 0 && !(isPausable && isPaused) {
      var batch: [ConsumedRecord] = []
      for partition in partitions where rest > 0 {
        guard configuration.pausableTopics.contains(partition.topic) == isPausable else { continue }
        guard let leader = cluster.leader(of: partition), process.reaches(.broker(leader)) else {
          mustRepeat = true
          continue
        }
        let records = read(partition, limit: rest)
        batch += records
        rest -= records.count
        if let position = readers[partition]?.position, let end = cluster.log(partition)?.end {
          hasMore = hasMore || position < end
        }
      }
      credit -= batch.count
      if !batch.isEmpty { onRecords(batch) }
    }
    if let first = partitions.first {
      partitions.removeFirst()
      partitions.append(first)
    }
    if hasMore { fetchSoon() } else if mustRepeat { process.after(.milliseconds(200)) { [self] in fetchSoon() } }
  }

  /// Reads the next records of a partition.
  private func read(_ partition: TopicPartition, limit: Int) -> [ConsumedRecord] {
    guard let reader = readers[partition], var position = reader.position, let log = cluster.log(partition) else {
      return []
    }
    if cluster.behaviour.knowsEpochs, reader.epochs.validated < log.epoch {
      readers[partition]?.epochs.validated = log.epoch
      if let epoch = reader.epochs.read { position = min(position, log.end(of: epoch)) }
    }
    guard position <= log.end, position >= log.start else {
      reset(partition)
      return []
    }
    let entries = log.read(from: position, limit: limit)
    readers[partition]?.position = entries.last.map { $0.offset + 1 } ?? log.end
    if let epoch = entries.last?.epoch { readers[partition]?.epochs.read = epoch }
    return entries.map { entry in
      ConsumedRecord(
        topic: partition.topic, partition: partition.partition, offset: entry.offset,
        timestamp: entry.record.timestamp, key: entry.record.key.map { $0[...] }, value: entry.record.value[...],
        leaderEpoch: cluster.behaviour.knowsEpochs ? entry.epoch : -1)
    }
  }
}
