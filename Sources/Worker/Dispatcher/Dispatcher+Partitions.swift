import FanfareCore
import RDKafka

/// Applies the consumer group's decisions to the items in work.
extension Dispatcher {
  /// The group assigns partitions to this worker.
  mutating func assign(_ partitions: [TopicPartition], _ rebalance: Rebalance) {
    self.partitions.assign(
      partitions, rebalance, segments: topics.segments, resumeDeadline: configuration.times.resumeDeadline, at: now,
      into: &turn.effects.group)
  }

  /// The group has answered which offsets its members have settled.
  mutating func recover(_ answer: OffsetAnswer) { partitions.recover(answer, into: &turn.effects.group) }

  /// Opens partitions whose offset recovery was not answered in time.
  mutating func expireRecoveries() {
    for recovery in partitions.expireRecoveries(at: now) {
      effects.alarm(.recoveryTimedOut(recovery.partitions))
      effects.group.completions.append(recovery.rebalance)
    }
  }

  /// Begins to drain revoked partitions. Items that have not begun are left to the next owner;
  /// those in flight may settle until the deadline.
  mutating func revoke(_ partitions: [TopicPartition], _ rebalance: Rebalance) {
    self.partitions.revoke(partitions, rebalance, deadline: configuration.times.revokeDeadline, at: now)
    giveUpUnstarted()
  }

  /// Gives up partitions that already have another owner.
  mutating func lose(_ partitions: [TopicPartition], _ rebalance: Rebalance) {
    self.partitions.lose(partitions, rebalance, into: &turn.effects.group)
    giveUpUnowned()
  }

  /// Begins to shut down: takes no more records, and settles pushes in flight until the deadline.
  mutating func shutDown() {
    if partitions.shutDown(within: configuration.times.drainDeadline, at: now) { giveUpUnstarted() }
  }

  /// Handles the end of a commit.
  mutating func committed(_ positions: [PartitionOffset], _ error: RDKafkaError?) {
    partitions.endCommit(positions, error, at: now)
  }

  /// Ends the wait for work in draining partitions, or before the end of the worker, when no item
  /// can progress or time is up.
  mutating func finishSettling() {
    guard partitions.isSettling else { return }
    deferStuck()
    let isProgressing = items.indices.contains { canProgress($0) }
    partitions.endDrains(isProgressing: isProgressing, at: now)
    guard let deadline = partitions.shutdown.deadline, !partitions.shutdown.hasDrained else { return }
    // All pushes are answered, and Kafka acknowledges no status record: it is away.
    let patience = configuration.times.lastCommitPatience
    let isStalled =
      partitions.hasStalled(for: patience, at: now)
      && items.indices.allSatisfy { !canProgress($0) || items[$0].phase == .settling }
    guard !isProgressing || isStalled || now.uptime >= deadline else { return }
    effects.unregistrations += lanes.takeSuspects()
    guard !lanes.isUnregistering || now.uptime >= deadline else { return }
    partitions.finishDraining(patience: isStalled && isProgressing ? .zero : patience, at: now)
  }

  /// Whether the item can still end by waiting.
  /// It cannot while a device waits for a repetition or a stopped platform. Further quota may come at any moment; where
  /// it will not, the device is deferred first.
  private func canProgress(_ slot: Int) -> Bool {
    guard items[slot].isLive, partitions.isClosing(items[slot].origin) else { return false }
    switch items[slot].phase {
    case .settling: return true
    case .vacant, .queued, .resolving, .walking: return false
    case .dispatching:
      if items[slot].isPage, broadcasts.isPaused(slot) { return false }
      return items[slot].hasStarted
        && items[slot].devices.allSatisfy { device in
          switch device.phase {
          case .done, .deferred, .withdrawn, .inFlight, .checking: true
          case .resting: false
          case .queued: !lanes[device.sender].isStopped
          }
        }
    }
  }

  /// Gives back the partitions whose last commit has ended or timed out.
  mutating func finishDrains() {
    let finished = partitions.takeFinishedDrains(grace: configuration.times.lastCommitDeadline, at: now)
    guard !finished.isEmpty else { return }
    for drain in finished {
      reportLeftWork(in: drain.partitions)
      partitions.close(drain)
      effects.group.completions.append(drain.rebalance)
    }
    giveUpUnowned()
  }

  /// Reports the work that the next owner of these partitions will repeat.
  private mutating func reportLeftWork(in partitions: [TopicPartition]) {
    if let (uncommitted, reason) = self.partitions.uncommitted(in: partitions) {
      effects.alarm(.positionsLeft(uncommitted, reason: reason))
    }
    let concerned = Set(partitions)
    let begun = items.indices.count { slot in
      items[slot].isLive && (items[slot].phase == .settling || items[slot].hasStarted)
        && self.partitions.offsets.partition(of: items[slot].origin).map(concerned.contains) == true
    }
    if begun > 0 { effects.alarm(.workLeft(Array(concerned), sends: begun)) }
  }

  // Giving up.

  private mutating func giveUpUnstarted() {
    let offsets = partitions.offsets
    giveUp(onlyUnstarted: true) { !offsets.isOpen($0) }
  }

  private mutating func giveUpUnowned() {
    let offsets = partitions.offsets
    giveUp(onlyUnstarted: false) { !offsets.isOwned($0) }
  }

  /// Gives up the items whose records are all unwanted.
  /// They do not settle: the next owner works on them.
  private mutating func giveUp(onlyUnstarted: Bool, where isUnwanted: (Origin) -> Bool) {
    var unwanted: [Int] = []
    for slot in items.indices where items[slot].isLive {
      if onlyUnstarted && (items[slot].hasStarted || items[slot].phase == .settling) { continue }
      guard isUnwanted(items[slot].origin) else { continue }
      // The same send may also lie in a partition that stays.
      if !items[slot].moveToFollower(where: { !isUnwanted($0) }) { unwanted.append(slot) }
    }
    for slot in unwanted { giveUp(slot) }
    unknownHubs.forgetGivenUp(items: items)
  }

  private mutating func giveUp(_ slot: Int) {
    for index in items[slot].devices.indices where items[slot].devices[index].phase == .checking {
      let sender = items[slot].devices[index].sender
      lanes.endCheck(items.ticket(slot), of: sender)
      items[slot][device: index].giveUp()
      endProbe(items.ticket(slot, device: index), of: sender)
    }
    reopenSegment(ofPage: slot)
    guard items.abandon(slot) else { return }
    advanceLane(slot)
    vacate(slot)
  }
}
