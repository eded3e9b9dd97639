import FanfareCore
import Logging
import RDKafka
import Worker

/// The model of a consumer of one process: a member of a group that reads against credit.
///
/// The decisions of the product's consumer are its own: `Rebalances` with `CompanionPartitions`, and `InterimOffsets`.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedConsumer: RecordSource, @unchecked Sendable {
  let events: AsyncStream<ConsumerEvent>
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let process: SimulatedProcess
  private let cluster: SimulatedCluster
  private let configuration: ConsumerConfiguration
  private let member: SimulatedMember
  private let interim: InterimOffsets?
  private let progress = Progress()
  private var rebalances: Rebalances
  private let fetcher: SimulatedFetcher
  private var isLeaving = false
  /// Whether another process has its instance's name.
  private(set) var isFenced = false
  private var isOver = false
  /// The stored positions, and whether each is committed.
  private var stored: [TopicPartition: (offset: Int64, isCommitted: Bool)] = [:]
  private var hasCommitTimer = false
  private var ending: [CheckedContinuation<Void, Never>] = []
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
    member = SimulatedMember(configuration, of: process, in: cluster)
    fetcher = SimulatedFetcher(configuration, of: process, in: cluster, member: member, progress: progress)
    rebalances = Rebalances(configuration)
    let name = configuration.interimGroup
    interim =
      configuration.autoCommitInterval == nil && configuration.keepsInterimOffsets
      ? InterimOffsets(
        group: name,
        store: SimulatedInterimGroup(
          group: cluster.group(name), process: process, cluster: cluster,
          timeout: World.Time(configuration.commitTimeout / 2)),
        logger: Logger(label: name) { _ in SwiftLogNoOpLogHandler() }) : nil
    (events, continuation) = AsyncStream.makeStream()
    fetcher.mayRead = { [weak self] in self.map { !$0.isOver && !$0.rebalances.isRevoking } ?? false }
    fetcher.onRecords = { [continuation] in continuation.yield(.records($0)) }
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
    let leading = fetcher.partitions.filter { $0.topic == configuration.topics[0] }
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
      fetcher.add(change.partitions)
    case .revoke, .lose:
      progress.remove(change.partitions)
      if change.kind == .revoke { commitStored() }
      for partition in change.partitions { stored[partition] = nil }
    }
    lookForCompanions()
    fetcher.fetchSoon()
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
    fetcher.remove(partitions)
  }

  // Records.

  func grant(records: Int) { fetcher.grant(records: records) }

  func setPaused(_ isPaused: Bool) { fetcher.setPaused(isPaused) }

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
    guard !isOver else { throw closed }
    let offsets = progress.withoutGivenBack(offsets)
    guard !offsets.isEmpty else { return }
    if let interim { try await interim.commit(offsets, to: self) } else { try await commitToGroup(offsets) }
    progress.stored(offsets)
  }

  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    for offset in offsets {
      guard progress.contains(offset.partition) else {
        throw RDKafkaError(code: .notAssigned, message: "\(offset.partition)")
      }
      stored[offset.partition] = (offset.offset, false)
    }
    progress.stored(offsets)
    commitSoon()
  }

  /// Commits after each interval while positions are stored.
  private func commitSoon() {
    guard let interval = configuration.autoCommitInterval, !hasCommitTimer else { return }
    hasCommitTimer = true
    process.after(World.Time(interval)) { [weak self] in
      guard let self else { return }
      hasCommitTimer = false
      guard !isOver, !stored.isEmpty else { return }
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
    disown(fetcher.partitions)
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
