import FanfareCore
import RDKafka

extension DispatchState {
  /// The group gives partitions to this worker.
  mutating func assign(_ partitions: [TopicPartition], _ rebalance: Rebalance, into effects: inout Effects) {
    hasBeenAssigned = true
    for partition in partitions {
      ledger.assign(partition)
      if shutdownDeadline != nil { ledger.beginClosing(partition) }
    }
    effects.releases.append(Effects.Release(rebalance: rebalance, offsets: []))
  }

  /// The group wants partitions back. What was not begun is left to the next owner; what is in flight may settle until the deadline.
  mutating func revoke(_ partitions: [TopicPartition], _ rebalance: Rebalance, at now: Moment) {
    for partition in partitions { ledger.beginClosing(partition) }
    giveUpWhatHasNotStarted()
    let deadline = hasDrained ? now.uptime : now.uptime + configuration.revokeDeadline.milliseconds
    drains.append(Drain(partitions: partitions, rebalance: rebalance, deadline: deadline))
  }

  /// Partitions belong to somebody else already: nothing of them can be committed, and nothing more is done for them.
  mutating func lose(_ partitions: [TopicPartition], _ rebalance: Rebalance, into effects: inout Effects) {
    for partition in partitions { ledger.close(partition) }
    giveUpWhatIsNotOwned()
    effects.releases.append(Effects.Release(rebalance: rebalance, offsets: []))
  }

  /// The worker is to end: takes nothing more, and settles what is in flight until the deadline.
  mutating func shutDown(at now: Moment) {
    guard shutdownDeadline == nil else { return }
    shutdownDeadline = now.uptime + configuration.drainDeadline.milliseconds
    for partition in ledger.partitions { ledger.beginClosing(partition) }
    giveUpWhatHasNotStarted()
  }

  /// Ends the drains that have nothing left to wait for, or no more time.
  mutating func finishDrains(at now: Moment, into effects: inout Effects) {
    guard !drains.isEmpty || (shutdownDeadline != nil && !hasDrained) else { return }
    putOffWhatCannotProgress(at: now, into: &effects)
    let isProgressing = items.contains { canProgress($0) }
    var remaining: [Drain] = []
    for drain in drains {
      guard !isProgressing || now.uptime >= drain.deadline else {
        remaining.append(drain)
        continue
      }
      let offsets = drain.partitions.compactMap { ledger.close($0) }
      effects.releases.append(Effects.Release(rebalance: drain.rebalance, offsets: offsets))
    }
    if remaining.count < drains.count {
      drains = remaining
      giveUpWhatIsNotOwned()
    }
    guard let deadline = shutdownDeadline, !hasDrained, !isProgressing || now.uptime >= deadline else { return }
    requestDrops(into: &effects)
    guard !isDropping || now.uptime >= deadline else { return }
    hasDrained = true
    effects.hasDrained = true
  }

  /// Whether waiting for the item can bring it to its end: not where a device waits for a repetition or for a sender that is stopped.
  private func canProgress(_ item: WorkItem) -> Bool {
    guard item.phase != .vacant, !item.isAbandoned, ledger.isOwned(item.origin), !ledger.isOpen(item.origin) else { return false }
    return switch item.phase {
    case .settling: true
    case .vacant, .queued, .resolving: false
    case .dispatching:
      item.hasStarted
        && item.devices.allSatisfy { device in
          switch device.phase {
          case .done, .putOff, .inFlight, .checking: true
          case .resting: false
          case .queued: senders[device.sender].gate.state == .closed
          }
        }
    }
  }

  private mutating func giveUpWhatHasNotStarted() {
    let ledger = ledger
    giveUp(onlyUnstarted: true) { !ledger.isOpen($0) }
  }

  private mutating func giveUpWhatIsNotOwned() {
    let ledger = ledger
    giveUp(onlyUnstarted: false) { !ledger.isOwned($0) }
  }

  /// Gives up the items all of whose records lie where `isUnwanted` says so. They are not settled: the next owner does them.
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
      releasePlace(of: device.sender)
      items[slot].devices[index].phase = .done
      endProbe(ticket(slot, device: index), of: device.sender)
    }
    if let key = items[slot].key { recent.forget(key) }
    guard items[slot].phase != .queued else {
      items[slot].isAbandoned = true
      return
    }
    advanceLane(slot)
    vacate(slot)
  }
}
