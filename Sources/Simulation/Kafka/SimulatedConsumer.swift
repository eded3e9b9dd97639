import FanfareCore
import Logging
import RDKafka
import Worker

/// The model of a consumer of one process: a member of a group that reads against credit.
///
/// The decisions of the product's consumer are its own: `Rebalances` with `CompanionPartitions`, and `InterimOffsets`.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedConsumer: StoringSource, @unchecked Sendable {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let process: SimulatedProcess
  private let cluster: SimulatedCluster
  private let configuration: ConsumerConfiguration
  private let member: SimulatedMember
  private let interim: InterimOffsets?
  private let progress = Progress()
  private var rebalances: Rebalances
  private var credit = 0
  private var isPaused = false
  private var readers: [TopicPartition: Reader] = [:]
  /// The order in which partitions are read, so that each has its turn.
  private var order: [TopicPartition] = []
  private var isFetching = false
  private var isLeaving = false
  /// Whether another process has its instance's name.
  private(set) var isFenced = false
  private var isOver = false
  /// The stored positions, and whether each is committed.
  private var stored: [TopicPartition: (offset: Int64, isCommitted: Bool)] = [:]
  private var ending: [CheckedContinuation<Void, Never>] = []
  /// Told when it gives partitions away.
  private let onDisown: () -> Void

  /// The place in a partition at which it reads.
  private struct Reader {
    /// The offset of the next record; nil while the coordinator or the leader is asked for it.
    var position: Int64?
    /// The leader epoch of the last record read, and that under which the position was last compared with the log.
    var epochs: (read: Int32?, validated: Int32) = (nil, -1)
  }

  init(
    _ configuration: ConsumerConfiguration, of process: SimulatedProcess, in cluster: SimulatedCluster,
    onDisown: @escaping () -> Void = {}
  ) {
    self.onDisown = onDisown
    self.configuration = configuration
    self.process = process
    self.cluster = cluster
    member = SimulatedMember(configuration, of: process, in: cluster)
    rebalances = Rebalances(configuration)
    let name = configuration.interimGroup
    interim =
      configuration.autoCommitInterval == nil
      ? InterimOffsets(
        group: name,
        store: SimulatedInterimGroup(
          group: cluster.group(name), process: process, cluster: cluster,
          timeout: World.Time(configuration.commitTimeout / 2)),
        logger: Logger(label: name) { _ in SwiftLogNoOpLogHandler() }) : nil
    (events, continuation) = AsyncStream.makeStream()
    member.onChange = { [weak self] in self?.add($0) }
    member.onFenced = { [weak self] in self?.fail() }
    member.isBusy = { [weak self] in self.map { !$0.rebalances.isEmpty } ?? false }
  }

  private var world: World { cluster.world }

  // Rebalances.

  private func add(_ change: Rebalances.Change) {
    guard !isOver else { return }
    rebalances.add(change)
    advance()
  }

  private func advance() {
    guard !isOver else { return }
    while let action = nextAction() {
      switch action {
      case .announce(let change, let token): announce(change, token)
      case .reportLate: break
      case .commitStored: commitStored()
      case .apply(let change): apply(change)
      }
    }
    guard rebalances.isEmpty else { return }
    if isLeaving { giveBack() } else { member.advance() }
  }

  private func nextAction() -> Rebalances.Action? {
    if rebalances.isEmpty, !isLeaving { rebalances.addCompanionChange() }
    return rebalances.next(at: process.instant, isLeaving: isLeaving) { [weak self] in
      guard let self else { return }
      process.after(0) { [self] in advance() }
    }
  }

  /// Gives back what the member has before it leaves.
  private func giveBack() {
    let leading = order.filter { $0.topic == configuration.topics[0] }
    if leading.isEmpty { end() } else { add(Rebalances.Change(kind: .revoke, partitions: leading)) }
  }

  private func announce(_ change: Rebalances.Change, _ token: Rebalance) {
    process.after(World.Time(configuration.rebalanceDeadline)) { [weak self] in self?.advance() }
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

  private func apply(_ change: Rebalances.Change) {
    member.applied(change)
    switch change.kind {
    case .assign:
      progress.add(change.partitions)
      for partition in change.partitions {
        readers[partition] = Reader()
        order.append(partition)
        cluster.watch(partition, by: self)
      }
      resume(change.partitions)
    case .revoke, .lose:
      progress.remove(change.partitions)
      if change.kind == .revoke { commitStored() }
      for partition in change.partitions { stored[partition] = nil }
    }
    lookForCompanions()
    fetchSoon()
  }

  /// Looks at the numbers of partitions, if that is due.
  private func lookForCompanions() {
    guard let companion = configuration.companionTopic, rebalances.beginLook(at: process.instant) else { return }
    let topics = (configuration.topics[0], companion)
    let cluster = cluster
    cluster.request(of: process, to: { [process] in cluster.anyBroker(for: process) }) { reply in
      reply(
        CompanionPartitions.Look(
          leading: Int32(cluster.partitions(of: topics.0)), companion: Int32(cluster.partitions(of: topics.1))))
    } answer: { [weak self] look in
      guard let self else { return }
      rebalances.endLook(look, at: process.instant)
      if look == nil { process.after(.milliseconds(600)) { [weak self] in self?.lookForCompanions() } }
      advance()
    }
  }

  private func disown(_ partitions: [TopicPartition]) {
    onDisown()
    for partition in partitions {
      readers[partition] = nil
      cluster.unwatch(partition, by: self)
    }
    order.removeAll(where: partitions.contains)
  }

  // Records.

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
    guard !isFetching, credit > 0, !order.isEmpty else { return }
    isFetching = true
    process.after(world.random(cluster.behaviour.latency)) { [self] in
      isFetching = false
      fetch()
    }
  }

  private func fetch() {
    guard !isOver, !rebalances.isRevoking else { return }
    var rest = min(credit, 500)
    var (hasMore, mustRepeat) = (false, false)
    for isPausable in [false, true] where rest > 0 && !(isPausable && isPaused) {
      var batch: [ConsumedRecord] = []
      for partition in order where configuration.pausableTopics.contains(partition.topic) == isPausable && rest > 0 {
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
      if !batch.isEmpty { continuation.yield(.records(batch)) }
    }
    if let first = order.first {
      order.removeFirst()
      order.append(first)
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

  func grant(records: Int) {
    credit += records
    fetchSoon()
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    fetchSoon()
  }

  func lag() -> [TopicPartition: Int64] {
    progress.lag { [cluster] in cluster.log($0).map { ($0.start, $0.end) } }
  }

  // Positions.

  private var closed: RDKafkaError { RDKafkaError(code: .closed, message: "the consumer is closed") }

  func clusterID() async throws(RDKafkaError) -> String? { "simulated" }

  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    guard let interim else { return try await committedByGroup(partitions) }
    return try await interim.committed(partitions, by: self)
  }

  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await interim?.kept(partitions) ?? []
  }

  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    if let interim { try await interim.commit(offsets, to: self) } else { try await commitToGroup(offsets) }
    progress.stored(offsets)
  }

  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    let isFirst = stored.isEmpty
    for offset in offsets {
      guard progress.contains(offset.partition) else {
        throw RDKafkaError(code: .notAssigned, message: "\(offset.partition)")
      }
      stored[offset.partition] = (offset.offset, false)
    }
    progress.stored(offsets)
    if isFirst { commitSoon() }
  }

  private func commitSoon() {
    guard let interval = configuration.autoCommitInterval else { return }
    process.after(World.Time(interval)) { [weak self] in
      guard let self, !isOver, !stored.isEmpty else { return }
      commitStored()
      commitSoon()
    }
  }

  private func commitStored() {
    let offsets = stored.filter { !$0.value.isCommitted }.map {
      PartitionOffset(partition: $0.key, offset: $0.value.offset)
    }.sorted { $0.partition.description < $1.partition.description }
    // librdkafka's automatic commits avoid the time in which the member joins.
    guard !offsets.isEmpty, !member.isJoining else { return }
    let identity = member.identity
    member.ask { group, reply in
      reply(group.commit(offsets, of: identity))
    } answer: { [weak self] (refusal: SimulatedGroup.Refusal??) in
      guard let self, case .some(.none) = refusal else { return }
      for offset in offsets where stored[offset.partition]?.offset == offset.offset {
        stored[offset.partition]?.isCommitted = true
      }
    }
  }

  // Life.

  func run() async {
    guard !isOver else { return }
    member.start()
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
    leave()
    await withCheckedContinuation { continuation in
      if isOver { continuation.resume() } else { ending.append(continuation) }
    }
  }

  /// Another process has this one's name: the consumer ends with an error that no attempt of it mends, and says nothing
  /// about its partitions.
  private func fail() {
    guard !isOver else { return }
    world.trace.note(world.now, "\(process.name) is fenced")
    isFenced = true
    var error = SimulatedGroup.Refusal.fencedInstance.error("consumer")
    error.isFatal = true
    continuation.yield(.failed(error))
    end()
  }

  private func leave() {
    guard !isLeaving else { return }
    isLeaving = true
    process.after(World.Time(configuration.closeTimeout)) { [weak self] in self?.end() }
    advance()
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    if !process.isDead { member.leave() }
    disown(order)
    continuation.finish()
    let waiters = ending
    ending = []
    for waiter in waiters { waiter.resume() }
  }
}

extension SimulatedConsumer: GroupRequests {
  func commitToGroup(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    guard !process.isDead, !isOver else { throw closed }
    guard !member.isJoining else {
      guard !member.hasLostAssignment else { throw .lostAssignment }
      throw RDKafkaError(code: .rebalancing, message: "commit: the member is joining its group again")
    }
    let identity = member.identity
    let refusal = try await ask(timeout: configuration.commitTimeout) { group, reply in
      reply(group.commit(offsets, of: identity))
    }
    if let refusal { throw refusal.error("commit") }
  }

  func committedByGroup(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ask(timeout: configuration.commitTimeout) { group, reply in
      reply(partitions.compactMap { group.positions[$0] })
    }
  }

  private func ask<Answer: Sendable>(
    timeout: Duration, _ carryOut: @escaping (SimulatedGroup, @escaping (Answer) -> Void) -> Void
  ) async throws(RDKafkaError) -> Answer {
    let answer = try await process.answer(within: World.Time(timeout)) { [member] in
      member.ask(carryOut, answer: $0)
    }
    guard !isOver else { throw closed }
    return answer
  }
}

/// The client of the group of `InterimOffsets`.
///
/// `@unchecked Sendable`: see `World`.
private struct SimulatedInterimGroup: PositionStore, @unchecked Sendable {
  let group: SimulatedGroup
  let process: SimulatedProcess
  let cluster: SimulatedCluster
  let timeout: World.Time

  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let refusal = try await ask { group.store(offsets) }
    if let refusal { throw refusal.error("commit") }
  }

  func beginCommit(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    request({ group.store(offsets) }) { _ in }
  }

  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ask { partitions.compactMap { group.positions[$0] } }
  }

  private func ask<Answer: Sendable>(_ carryOut: @escaping () -> Answer) async throws(RDKafkaError) -> Answer {
    try await process.answer(within: timeout) { request(carryOut, answer: $0) }
  }

  private func request<Answer>(_ carryOut: @escaping () -> Answer, answer: @escaping (Answer?) -> Void) {
    let (group, cluster) = (group, cluster)
    cluster.request(of: process, to: { cluster.coordinator(of: group) }, { $0(carryOut()) }, answer: answer)
  }
}

extension SimulatedProcess {
  /// Suspends the caller until a request of the process is answered, which is repeated when its connection breaks. Throws
  /// `timedOut` without an answer, and `closed` when the caller is cancelled.
  fileprivate func answer<Answer: Sendable>(
    within timeout: World.Time, _ ask: @escaping (_ answer: @escaping (Answer?) -> Void) -> Void
  ) async throws(RDKafkaError) -> Answer {
    let deadline = world.now + timeout
    let result: Answer?
    do {
      result = try await answer { (deliver: @escaping (Answer?) -> Void) in
        func attempt() {
          ask { [self] answer in
            if let answer { return deliver(answer) }
            guard world.now < deadline else { return }
            after(.milliseconds(100)) { attempt() }
          }
        }
        attempt()
        after(timeout) { deliver(nil) }
      }
    } catch {
      throw RDKafkaError(code: .closed, message: "the consumer is closed")
    }
    guard let result else { throw RDKafkaError(code: .timedOut, message: "the coordinator does not answer") }
    return result
  }
}
