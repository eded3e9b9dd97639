import FanfareCore
import RDKafka

/// The partitions of this worker: their offsets and commits, how they are assigned and given back.
///
/// Of a partition: *recovering* (assigned; the worker asks the group which offsets its last owner has settled) → *open*
/// (records are taken) → *draining* (revoked: work in flight may settle until the deadline; then a last commit) →
/// released. A lost partition is released at once. Of the worker: *running* → *draining* (told to shut down) →
/// *drained* (nothing more can settle) → *leaving* (the last positions are committed, or cannot be).
///
/// Invariants: an offset is settled only in the epoch of its record; a drain names only partitions that were not
/// assigned again; a drain has a last commit only when it waits for no more work.
struct PartitionTracker: Sendable {
  /// Partitions that are being given back.
  struct Drain: Sendable {
    /// Excludes partitions that have been assigned again since.
    var partitions: [TopicPartition]
    let rebalance: Rebalance
    /// The uptime until which work in flight may settle.
    let deadline: Int64
    /// The number of the commit after which they are released; nil while work in them may still
    /// settle.
    var lastCommit: Int?
  }

  /// Partitions that wait for the group's answer about the offsets their last owner has settled.
  struct OffsetRecovery: Sendable {
    let number: Int
    let partitions: [TopicPartition]
    let rebalance: Rebalance
    let deadline: Int64
  }

  /// How far reading has run ahead of the first unsettled record, measured once a second.
  struct Spans: Sendable {
    /// More than half of the limit. From here on pushes that wait in memory are deferred (`DeferralPolicy`), because at
    /// the limit the worker reads no further records, of any platform.
    var isFarBehind = false
    /// The segments topic has reached its limit: no further segments are read.
    var hasReachedSegmentLimit = false
  }

  /// The end of the worker.
  struct Shutdown: Sendable {
    /// When work in flight is given up; nil while the worker is not told to end.
    var deadline: Int64?
    /// Whether everything that could settle has settled.
    var hasDrained = false
    /// Whether the worker was told to leave the group.
    var isLeaving = false
    /// The records settled so far, and when the last of them was, or when the shutdown began.
    var progress = (records: 0, at: Int64.min)
  }

  /// How often the positions in the segments topic are committed again.
  ///
  /// The group does not subscribe to that topic (see `WorkerConfiguration.consumer`), so a broker deletes a position
  /// that was not committed for `offsets.retention.minutes` (seven days by default). Then the whole topic would be read
  /// again.
  private static let renewalInterval: Duration = .seconds(60 * 60)

  private(set) var offsets = PartitionOffsets()
  private(set) var commits: CommitSchedule
  private(set) var recoveries: [OffsetRecovery] = []
  private var lastRecovery = 0
  private(set) var drains: [Drain] = []
  private(set) var spans = Spans()
  private(set) var shutdown = Shutdown()
  /// How many records have settled.
  private var settledRecords = 0
  /// Whether the group has ever assigned partitions to this worker.
  private(set) var hasBeenAssigned = false
  /// The uptime at which the positions in the segments topic are committed again; nil before the first turn.
  private var renewal: Int64?

  init(commits: CommitSchedule) {
    self.commits = commits
  }

  var isShuttingDown: Bool { shutdown.deadline != nil }
  /// Whether the worker may ask for further records.
  var mayTake: Bool { !isShuttingDown && drains.isEmpty }
  /// Whether the worker waits for work: in partitions to be given back, or before its end.
  var isSettling: Bool {
    drains.contains { $0.lastCommit == nil } || (isShuttingDown && !shutdown.hasDrained)
  }

  // Records.

  /// Counts a record as taken; nil if it is not this worker's: see `PartitionOffsets.begin`.
  mutating func begin(_ record: ConsumedRecord) -> Origin? { offsets.begin(record) }

  /// Settles a record whose work has ended and whose status record is acknowledged.
  mutating func settle(_ origin: Origin) {
    offsets.settle(origin)
    settledRecords += 1
    commits.countSettled()
  }

  func isOwned(_ origin: Origin) -> Bool { offsets.isOwned(origin) }
  func isOpen(_ origin: Origin) -> Bool { offsets.isOpen(origin) }
  /// Whether the record's partition is being given back.
  func isClosing(_ origin: Origin) -> Bool { offsets.isOwned(origin) && !offsets.isOpen(origin) }

  mutating func takeSkipped() -> Int { offsets.takeSkipped() }
  mutating func catchUp(_ partition: TopicPartition, at moment: Int64) { offsets.catchUp(partition, at: moment) }

  /// Measures how far reading has run ahead. Looks at every partition.
  mutating func measureSpans(limit: Int) {
    spans = Spans(
      isFarBehind: offsets.largestSpan > limit / 2, hasReachedSegmentLimit: offsets.largestSpanApart >= limit)
  }

  // Assignment.

  /// Takes in assigned partitions; those of the topic `segments` are apart.
  /// Before reading, it asks which offsets their last owner has settled.
  mutating func assign(
    _ partitions: [TopicPartition], _ rebalance: Rebalance, segments: String? = nil, resumeDeadline: Duration,
    at now: Moment, into actions: inout GroupActions
  ) {
    hasBeenAssigned = true
    // The group may have refused commits until now.
    commits.hurry()
    // A drain may still run for partitions whose revocation has taken effect: the consumer does not wait for it longer
    // than its `rebalanceDeadline`. It must not close the new assignment.
    for index in drains.indices { drains[index].partitions.removeAll(where: partitions.contains) }
    // At once, not with the answer: records are worked on from the moment their partition is owned.
    for partition in partitions { offsets.assign(partition, isApart: partition.topic == segments) }
    guard !isShuttingDown, !partitions.isEmpty else {
      for partition in partitions { offsets.beginClosing(partition) }
      actions.completions.append(rebalance)
      return
    }
    lastRecovery += 1
    recoveries.append(
      OffsetRecovery(
        number: lastRecovery, partitions: partitions, rebalance: rebalance,
        deadline: now.uptime + resumeDeadline.milliseconds))
    actions.recoveries.append(OffsetQuestion(number: lastRecovery, partitions: partitions))
  }

  /// The group has answered. An answer after the deadline is ignored: work has begun by then.
  mutating func recover(_ answer: OffsetAnswer, into actions: inout GroupActions) {
    if let cluster = answer.cluster { offsets.cluster = cluster }
    guard let index = recoveries.firstIndex(where: { $0.number == answer.number }) else { return }
    for offset in answer.committed ?? [] { offsets.resume(offset) }
    for offset in answer.kept { offsets.learn(offset) }
    actions.completions.append(recoveries.remove(at: index).rebalance)
  }

  /// Returns the recoveries that were not answered in time: their partitions are read without an
  /// answer.
  mutating func expireRecoveries(at now: Moment) -> [OffsetRecovery] {
    guard !recoveries.isEmpty else { return [] }
    let expired = recoveries.filter { $0.deadline <= now.uptime }
    recoveries.removeAll { $0.deadline <= now.uptime }
    return expired
  }

  /// Drains revoked partitions: begins no further record of them, and commits settled offsets at
  /// once, because the group may refuse them later.
  mutating func revoke(_ partitions: [TopicPartition], _ rebalance: Rebalance, deadline: Duration, at now: Moment) {
    commits.hurry()
    for partition in partitions { offsets.beginClosing(partition) }
    let deadline = shutdown.hasDrained ? now.uptime : now.uptime + deadline.milliseconds
    drains.append(Drain(partitions: partitions, rebalance: rebalance, deadline: deadline))
  }

  /// Gives up partitions that already have another owner: none of their offsets can be committed.
  mutating func lose(_ partitions: [TopicPartition], _ rebalance: Rebalance, into actions: inout GroupActions) {
    for partition in partitions { offsets.close(partition) }
    actions.completions.append(rebalance)
  }

  /// Begins the shutdown: takes no more records. Returns whether it was not told before.
  mutating func shutDown(within deadline: Duration, at now: Moment) -> Bool {
    guard !isShuttingDown else { return false }
    shutdown.deadline = now.uptime + deadline.milliseconds
    shutdown.progress = (settledRecords, now.uptime)
    for partition in offsets.partitions { offsets.beginClosing(partition) }
    return true
  }

  /// Ends the wait for work in the drains that cannot progress or whose time is up.
  mutating func endDrains(isProgressing: Bool, at now: Moment) {
    for index in drains.indices where drains[index].lastCommit == nil {
      guard !isProgressing || now.uptime >= drains[index].deadline else { continue }
      drains[index].lastCommit = commits.next
      commits.hurry()
    }
  }

  /// Whether no record has settled for `patience` since the shutdown began.
  mutating func hasStalled(for patience: Duration, at now: Moment) -> Bool {
    if shutdown.progress.records != settledRecords { shutdown.progress = (settledRecords, now.uptime) }
    return now.uptime - shutdown.progress.at >= patience.milliseconds
  }

  /// Notes that everything that could settle before the end of the worker has settled. From now on it waits at most
  /// `patience` for its last commit.
  mutating func finishDraining(patience: Duration, at now: Moment) {
    shutdown.hasDrained = true
    shutdown.deadline = shutdown.deadline.map { min($0, now.uptime + patience.milliseconds) }
    commits.hurry()
  }

  // Commits.

  /// Begins a commit of all offsets settled since the last one, if it is due.
  /// Returns the positions.
  mutating func beginCommit(at now: Moment) -> [PartitionOffset] {
    let isLast = drains.contains { $0.lastCommit == commits.next }
    // The first time a minute after the start: workers may be replaced more often than that interval.
    let renewal = self.renewal ?? now.uptime + 60_000
    self.renewal = renewal
    if now.uptime >= renewal {
      self.renewal = now.uptime + Self.renewalInterval.milliseconds
      offsets.renewApart()
    }
    guard offsets.hasChanges, commits.isDue(at: now.uptime, isLast: isLast) else { return [] }
    let positions = offsets.takeChanged(
      metadataLimit: commits.metadataBytes, isWitnessed: commits.failure != nil)
    guard !positions.isEmpty else { return [] }
    commits.begin(positions.map(\.partition), at: now.uptime)
    return positions
  }

  /// Ends a commit. For refused positions, the current ones are committed again later.
  mutating func endCommit(_ positions: [PartitionOffset], _ error: RDKafkaError?, at now: Moment) {
    commits.end(error, at: now.uptime)
    if error != nil { offsets.restore(positions) }
  }

  /// Takes out the drains whose last commit has ended or timed out.
  /// Call `close` for their partitions.
  mutating func takeFinishedDrains(grace: Duration, at now: Moment) -> [Drain] {
    guard !drains.isEmpty else { return [] }
    let finished = drains.filter { drain in
      guard let lastCommit = drain.lastCommit else { return false }
      let isCommitted = !commits.isCommitting && !offsets.hasChanges(in: drain.partitions)
      return isCommitted || commits.isOver(lastCommit) || now.uptime >= drain.deadline + grace.milliseconds
    }
    if !finished.isEmpty {
      drains.removeAll { drain in finished.contains { $0.rebalance === drain.rebalance } }
    }
    return finished
  }

  /// Releases the partitions of a finished drain.
  mutating func close(_ drain: Drain) {
    for partition in drain.partitions { offsets.close(partition) }
  }

  /// The partitions among these whose last positions are not committed, and why; nil: there are
  /// none.
  func uncommitted(in partitions: [TopicPartition]) -> (partitions: [TopicPartition], reason: String)? {
    let uncommitted = partitions.filter { commits.open.contains($0) || offsets.hasChanges(in: [$0]) }
    guard !uncommitted.isEmpty else { return nil }
    let reason =
      commits.isRefused
      ? "the group is between two assignments"
      : commits.isCommitting ? "no time is left" : commits.failure.map { "\($0)" } ?? ""
    return (uncommitted, reason)
  }

  /// Whether to leave the group now: the last positions are committed, or cannot be committed in
  /// time. Leaving earlier would make others repeat finished work.
  mutating func leave(at now: Moment) -> Bool {
    guard shutdown.hasDrained, !shutdown.isLeaving, let deadline = shutdown.deadline else { return false }
    if commits.isCommitting || offsets.hasChanges, now.uptime < deadline {
      guard !commits.isCommitting, let failure = commits.failure, !commits.isWorthRepeating(after: failure) else {
        return false
      }
    }
    shutdown.isLeaving = true
    return true
  }

  func checkInvariants() -> [String] {
    var violations = offsets.checkInvariants()
    if shutdown.hasDrained || shutdown.isLeaving, !isShuttingDown { violations.append("drained without a shutdown") }
    for drain in drains {
      for partition in drain.partitions where offsets.isOpen(partition) {
        violations.append("\(partition) is open and being given back")
      }
    }
    return violations
  }
}
