import FanfareCore
import RDKafka
import Worker

/// The model of a consumer of one process: a member of a group that reads against credit.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedConsumer: StoringSource, @unchecked Sendable {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let process: SimulatedProcess
  private let cluster: SimulatedCluster
  private let group: SimulatedGroup
  private let configuration: ConsumerConfiguration
  private var credit = 0
  private var isPaused = false
  /// The offset of the next record to read, of each partition that is read.
  private var positions: [TopicPartition: Int64] = [:]
  /// The order in which partitions are read, so that each has its turn.
  private var order: [TopicPartition] = []
  private var isFetching = false
  /// Changes that the application has not completed, the first of which it has been told.
  private var changes: [Change] = []
  private var isLeaving = false
  private var isExpelled = false
  /// How often it has joined its group.
  private var membership = 0
  private var isOver = false
  private var stored: [TopicPartition: Int64] = [:]
  private var bases: [TopicPartition: Int64] = [:]
  private var ending: [CheckedContinuation<Void, Never>] = []

  private struct Change {
    enum Kind { case assign, revoke, lose }
    let kind: Kind
    let partitions: [TopicPartition]
  }

  /// Told when it gives partitions away.
  private let onDisown: () -> Void

  init(
    _ configuration: ConsumerConfiguration, of process: SimulatedProcess, in cluster: SimulatedCluster,
    onDisown: @escaping () -> Void = {}
  ) {
    self.onDisown = onDisown
    self.configuration = configuration
    self.process = process
    self.cluster = cluster
    group = cluster.group(configuration.groupID, topic: configuration.topics[0])
    (events, continuation) = AsyncStream.makeStream()
  }

  var name: String { process.name }
  var sessionTimeout: World.Time { World.Time(configuration.sessionTimeout) }
  private var world: World { cluster.world }
  /// Whether its heartbeats reach the coordinator.
  var isReachable: Bool { !process.isDead && !process.isFrozen && !isOver && !process.cut.contains(.kafka) }
  /// Whether partitions that it has to give back are not given back yet.
  var isRevoking: Bool { changes.contains { $0.kind == .revoke } }

  // Group.

  /// The coordinator's answer: what the member is to read from now on, and what no more.
  func change(assigned: [Int32], revoked: [Int32]) {
    process.after(cluster.latency()) { [self] in
      guard !isExpelled, !isOver else { return }
      if !revoked.isEmpty { begin(Change(kind: .revoke, partitions: both(revoked))) }
      if !assigned.isEmpty {
        begin(Change(kind: .assign, partitions: assigned.map { partition(configuration.topics[0], $0) }))
        if let companion = configuration.companionTopic {
          begin(Change(kind: .assign, partitions: assigned.map { partition(companion, $0) }))
        }
      }
    }
  }

  /// The coordinator has removed the member. A member without answers finds that out by itself, when its session is over.
  func expel() {
    isExpelled = true
    process.after(cluster.latency()) { [self] in
      guard !isOver else { return }
      changes.removeAll()
      begin(Change(kind: .lose, partitions: Array(order)))
    }
  }

  private func partition(_ topic: String, _ number: Int32) -> TopicPartition {
    TopicPartition(topic: topic, partition: number)
  }

  /// The partitions of the group's topic and of its companion.
  private func both(_ numbers: [Int32]) -> [TopicPartition] {
    numbers.map { partition(configuration.topics[0], $0) }
      + (configuration.companionTopic.map { topic in numbers.map { partition(topic, $0) } } ?? [])
  }

  private func begin(_ change: Change) {
    changes.append(change)
    if changes.count == 1 { announce() }
  }

  private func announce() {
    guard let change = changes.first else { return }
    let completion = Once()
    let complete: @Sendable () -> Void = { [self] in
      guard completion.pass() else { return }
      process.after(0) { [self] in apply(change) }
    }
    let token = Rebalance(onComplete: complete)
    process.after(World.Time(configuration.rebalanceDeadline)) { complete() }
    switch change.kind {
    case .assign: continuation.yield(.assigned(change.partitions, token))
    case .revoke:
      disown(change.partitions)
      continuation.yield(.revoked(change.partitions, token))
    case .lose:
      disown(change.partitions)
      continuation.yield(.lost(change.partitions, token))
    }
  }

  private func apply(_ change: Change) {
    guard !changes.isEmpty else { return }
    changes.removeFirst()
    switch change.kind {
    case .assign:
      for partition in change.partitions {
        positions[partition] = group.positions[partition]?.offset ?? 0
        order.append(partition)
        cluster.watch(partition, by: self)
      }
      fetchSoon()
    case .revoke:
      if isLeaving { return end() }
      group.rebalance()
    case .lose:
      if isLeaving { return end() }
      joinAgain()
    }
    announce()
    fetchSoon()
  }

  /// Joins the group as a new member, as soon as the coordinator can be reached.
  private func joinAgain() {
    guard !isOver else { return }
    guard !process.cut.contains(.kafka) else { return process.after(.milliseconds(500)) { [self] in joinAgain() } }
    isExpelled = false
    membership += 1
    group.join(self)
  }

  private func disown(_ partitions: [TopicPartition]) {
    onDisown()
    for partition in partitions {
      positions[partition] = nil
      cluster.unwatch(partition, by: self)
    }
    order.removeAll(where: partitions.contains)
  }

  // Records.

  /// Asks for records, unless that has been asked already.
  func fetchSoon() {
    guard !isFetching, credit > 0, !order.isEmpty else { return }
    isFetching = true
    process.after(cluster.latency()) { [self] in
      isFetching = false
      fetch()
    }
  }

  private func fetch() {
    guard !isOver, !isRevoking else { return }
    guard !process.cut.contains(.kafka) else {
      return process.after(.milliseconds(200)) { [self] in fetchSoon() }
    }
    var rest = min(credit, 500)
    var hasMore = false
    for isPausable in [false, true] where rest > 0 && !(isPausable && isPaused) {
      var batch: [ConsumedRecord] = []
      for partition in order where configuration.pausableTopics.contains(partition.topic) == isPausable && rest > 0 {
        guard let position = positions[partition] else { continue }
        let records = cluster.read(partition, from: position, limit: rest)
        for (index, record) in records.enumerated() {
          batch.append(
            ConsumedRecord(
              topic: partition.topic, partition: partition.partition, offset: position + Int64(index),
              timestamp: record.timestamp, key: record.key.map { $0[...] }, value: record.value[...]))
        }
        positions[partition] = position + Int64(records.count)
        rest -= records.count
        hasMore = hasMore || position + Int64(records.count) < cluster.end(of: partition)
      }
      credit -= batch.count
      if !batch.isEmpty { continuation.yield(.records(batch)) }
    }
    if let first = order.first {
      order.removeFirst()
      order.append(first)
    }
    if hasMore { fetchSoon() }
  }

  func grant(records: Int) {
    credit += records
    fetchSoon()
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    fetchSoon()
  }

  func lag() -> [TopicPartition: Int64] {
    positions.reduce(into: [:]) { $0[$1.key] = cluster.end(of: $1.key) - $1.value }
  }

  // Positions.

  /// A request to the coordinator and back.
  private func ask<Value>(_ request: () throws(RDKafkaError) -> Value) async throws(RDKafkaError) -> Value {
    do { try await process.pause(cluster.latency()) } catch { throw closed }
    if process.cut.contains(.kafka) {
      do { try await process.pause(World.Time(configuration.commitTimeout)) } catch { throw closed }
      guard !process.cut.contains(.kafka) else {
        throw RDKafkaError(code: .timedOut, message: "the coordinator does not answer")
      }
    }
    guard !process.isDead, !isOver else { throw closed }
    return try request()
  }

  private var closed: RDKafkaError { RDKafkaError(code: .closed, message: "the consumer is closed") }

  func clusterID() async throws(RDKafkaError) -> String? { "simulated" }

  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ask { [self] () throws(RDKafkaError) in
      for partition in partitions { bases[partition] = group.positions[partition]?.offset }
      return partitions.compactMap { group.positions[$0] }
    }
  }

  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ask { [self] () throws(RDKafkaError) in
      partitions.compactMap { partition in
        group.interim[partition].flatMap { $0.base == bases[partition] ? $0.offset : nil }
      }
    }
  }

  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    // A request carries the member's identity at the moment it is made.
    let membership = membership
    try await ask { [self] () throws(RDKafkaError) in
      guard group.isMember(self), !isExpelled, membership == self.membership else {
        throw RDKafkaError(code: .rebalancing, message: "commit: unknown member", number: 25)
      }
      guard !group.isJoining(self) else {
        for offset in offsets { group.keep(offset, base: bases[offset.partition]) }
        throw RDKafkaError(code: .rebalancing, message: "commit: the member is joining its group again")
      }
      group.commit(offsets)
      for offset in offsets { bases[offset.partition] = offset.offset }
    }
  }

  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    for offset in offsets {
      guard positions[offset.partition] != nil || isRevoking else {
        throw RDKafkaError(code: .notAssigned, message: "\(offset.partition)")
      }
    }
    if stored.isEmpty { process.after(.seconds(1)) { [self] in commitStored() } }
    for offset in offsets { stored[offset.partition] = offset.offset }
  }

  private func commitStored() {
    let offsets = stored.map { PartitionOffset(partition: $0.key, offset: $0.value) }.sorted {
      $0.partition.description < $1.partition.description
    }
    stored = [:]
    guard group.isMember(self), !isExpelled, !group.isJoining(self), !process.cut.contains(.kafka) else { return }
    group.commit(offsets)
  }

  // Life.

  func run() async {
    guard !isOver else { return }
    group.join(self)
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if isOver { continuation.resume() } else { ending.append(continuation) }
      }
    } onCancel: {
      end()
    }
  }

  func close() async {
    guard !isOver else { return }
    if !isLeaving {
      isLeaving = true
      begin(Change(kind: .revoke, partitions: order))
    }
    await withCheckedContinuation { continuation in
      if isOver { continuation.resume() } else { ending.append(continuation) }
    }
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    if !process.isDead {
      commitStored()
      group.leave(self)
    }
    disown(order)
    continuation.finish()
    let waiters = ending
    ending = []
    for waiter in waiters { waiter.resume() }
  }
}
