import FanfareCore
import RDKafka

extension DispatchState {
  /// The group gives partitions to this worker. What their last owner has settled is asked for before they are read.
  mutating func assign(
    _ partitions: [TopicPartition], _ rebalance: Rebalance, at now: Moment, into effects: inout Effects
  ) {
    hasBeenAssigned = true
    commits.groupHasSettled()
    // Where the revocation took effect before its drain was over, that must not close what begins now.
    for index in drains.indices { drains[index].partitions.removeAll(where: partitions.contains) }
    // At once, not with the answer: whatever comes of them is worked on from the moment they are owned.
    for partition in partitions { ledger.assign(partition, isApart: partition.topic == topics.segments) }
    guard shutdownDeadline == nil, !partitions.isEmpty else {
      for partition in partitions { ledger.beginClosing(partition) }
      effects.completions.append(rebalance)
      return
    }
    lastResumption += 1
    let deadline = now.uptime + configuration.resumeDeadline.milliseconds
    resumptions.append(
      Resumption(number: lastResumption, partitions: partitions, rebalance: rebalance, deadline: deadline))
    effects.resumptions.append(Effects.Question(number: lastResumption, partitions: partitions))
  }

  /// The group has said what it has committed and what it has refused, or could not be asked. What comes after the
  /// deadline is not used: work has begun by then.
  mutating func resume(
    _ number: Int, from committed: [PartitionOffset]?, kept: [PartitionOffset] = [], into effects: inout Effects
  ) {
    guard let index = resumptions.firstIndex(where: { $0.number == number }) else { return }
    for offset in committed ?? [] { ledger.resume(offset) }
    for offset in kept { ledger.learn(offset) }
    effects.completions.append(resumptions.remove(at: index).rebalance)
  }

  /// Lets partitions be read whose last owner nobody could be asked about in time.
  mutating func finishResumptions(at now: Moment, into effects: inout Effects) {
    guard !resumptions.isEmpty else { return }
    for resumption in resumptions where resumption.deadline <= now.uptime {
      effects.alarm(.resumptionTimedOut(resumption.partitions))
      effects.completions.append(resumption.rebalance)
    }
    resumptions.removeAll { $0.deadline <= now.uptime }
  }

  /// The group wants partitions back. What was not begun is left to the next owner; what is in flight may settle until
  /// the deadline. What has settled is committed at once: later the group may refuse it.
  mutating func revoke(_ partitions: [TopicPartition], _ rebalance: Rebalance, at now: Moment) {
    commits.groupHasSettled()
    commits.hurry()
    for partition in partitions { ledger.beginClosing(partition) }
    giveUpWhatHasNotStarted()
    let deadline = hasDrained ? now.uptime : now.uptime + configuration.revokeDeadline.milliseconds
    drains.append(Drain(partitions: partitions, rebalance: rebalance, deadline: deadline))
  }

  /// Partitions belong to somebody else already: nothing of them can be committed, and nothing more is done for them.
  mutating func lose(_ partitions: [TopicPartition], _ rebalance: Rebalance, into effects: inout Effects) {
    for partition in partitions { ledger.close(partition) }
    giveUpWhatIsNotOwned()
    effects.completions.append(rebalance)
  }

  /// The worker is to end: takes nothing more, and settles what is in flight until the deadline.
  mutating func shutDown(at now: Moment) {
    guard shutdownDeadline == nil else { return }
    shutdownDeadline = now.uptime + configuration.drainDeadline.milliseconds
    for partition in ledger.partitions { ledger.beginClosing(partition) }
    giveUpWhatHasNotStarted()
  }

  /// Ends the waiting for work in partitions that are to be given back, and for all work before the end: there is none
  /// left, or no more time.
  mutating func finishSettling(at now: Moment, into effects: inout Effects) {
    guard drains.contains(where: { $0.lastCommit == nil }) || (shutdownDeadline != nil && !hasDrained) else { return }
    putOffWhatCannotProgress(at: now, into: &effects)
    let isProgressing = items.contains { canProgress($0) }
    for index in drains.indices where drains[index].lastCommit == nil {
      guard !isProgressing || now.uptime >= drains[index].deadline else { continue }
      drains[index].lastCommit = commits.next
      commits.hurry()
    }
    guard let deadline = shutdownDeadline, !hasDrained, !isProgressing || now.uptime >= deadline else { return }
    requestDrops(into: &effects)
    guard !isDropping || now.uptime >= deadline else { return }
    hasDrained = true
    commits.hurry()
  }

  /// Whether waiting for the item can bring it to its end: not where a device waits for a repetition, or for a sender
  /// that is stopped. More of a quota may come any moment; where it will not, and there are retry topics, the device is
  /// put off before.
  private func canProgress(_ item: WorkItem) -> Bool {
    guard item.phase != .vacant, !item.isAbandoned, ledger.isOwned(item.origin), !ledger.isOpen(item.origin) else {
      return false
    }
    return switch item.phase {
    case .settling: true
    case .vacant, .queued, .resolving, .walking: false
    case .dispatching where item.page?.isParked == true: false
    case .dispatching:
      item.hasStarted
        && item.devices.allSatisfy { device in
          switch device.phase {
          case .done, .putOff, .withdrawn, .inFlight, .checking: true
          case .resting, .waiting: false
          case .queued: senders[device.sender].gate.state == .closed
          }
        }
    }
  }

  /// Whether what is queued for the sender must wait for a moment that nobody knows: until it works again, or has
  /// something of its quota.
  func isHeldUp(_ sender: Int, at now: Moment) -> Bool {
    senders[sender].gate.state != .closed || senders[sender].quota.isDry(at: now.wall)
  }

  private mutating func giveUpWhatHasNotStarted() {
    let ledger = ledger
    giveUp(onlyUnstarted: true) { !ledger.isOpen($0) }
  }

  /// Gives up the items of partitions that are not owned any more: their owner does them.
  mutating func giveUpWhatIsNotOwned() {
    let ledger = ledger
    giveUp(onlyUnstarted: false) { !ledger.isOwned($0) }
  }

  /// Gives up the items all of whose records lie where `isUnwanted` says so. They are not settled: the next owner does
  /// them.
  private mutating func giveUp(onlyUnstarted: Bool, where isUnwanted: (Origin) -> Bool) {
    var unwanted: [Int] = []
    for slot in items.indices where items[slot].phase != .vacant && !items[slot].isAbandoned {
      if onlyUnstarted && (items[slot].hasStarted || items[slot].phase == .settling) { continue }
      guard isUnwanted(items[slot].origin) else { continue }
      if let follower = items[slot].followers.firstIndex(where: { !isUnwanted($0) }) {
        // The same send was also put into a partition that stays.
        items[slot].origin = items[slot].followers.remove(at: follower)
      } else {
        unwanted.append(slot)
      }
    }
    for slot in unwanted { giveUp(slot) }
  }

  private mutating func giveUp(_ slot: Int) {
    for (index, device) in items[slot].devices.enumerated() where device.phase == .checking {
      releasePlace(of: device.sender, for: ticket(slot))
      senders[device.sender].checking -= 1
      items[slot].devices[index].phase = .done
      endProbe(ticket(slot, device: index), of: device.sender)
    }
    if let key = items[slot].key { recent.forget(key) }
    reopenSegment(ofPage: slot)
    guard items[slot].phase != .queued else {
      items[slot].isAbandoned = true
      return
    }
    advanceLane(slot)
    vacate(slot)
  }
}
