import RDKafka

extension DispatchState {
  /// Begins a commit of all that has settled since the last one, if it is time.
  mutating func commit(at now: Moment, into effects: inout Effects) {
    guard ledger.hasChanges, commits.isDue(at: now.uptime) else { return }
    let offsets = ledger.takeChanged(metadataLimit: commits.metadataBytes)
    guard !offsets.isEmpty else { return }
    commits.begin(at: now.uptime)
    effects.commit = offsets
  }

  /// A commit has ended. What was refused is committed again later, as it is by then.
  mutating func committed(_ offsets: [PartitionOffset], _ error: RDKafkaError?, at now: Moment) {
    commits.end(error, at: now.uptime)
    if error != nil { ledger.restore(offsets) }
  }

  /// Gives back the partitions whose last commit is over, or was not to be had in time.
  mutating func finishDrains(at now: Moment, into effects: inout Effects) {
    guard !drains.isEmpty else { return }
    let grace = configuration.lastCommitDeadline.milliseconds
    let finished = drains.filter { drain in
      guard let lastCommit = drain.lastCommit else { return false }
      let isCommitted = !commits.isCommitting && !ledger.hasChanges(in: drain.partitions)
      return isCommitted || commits.isOver(lastCommit) || now.uptime >= drain.deadline + grace
    }
    guard !finished.isEmpty else { return }
    for drain in finished {
      for partition in drain.partitions { ledger.close(partition) }
      effects.completions.append(drain.rebalance)
    }
    drains.removeAll { drain in finished.contains { $0.rebalance === drain.rebalance } }
    giveUpWhatIsNotOwned()
  }

  /// Leaves the group once it has the last positions: others would do again what is done. Where they are not to be had, it leaves at the deadline.
  mutating func leave(at now: Moment, into effects: inout Effects) {
    guard hasDrained, !isLeaving, !commits.isCommitting, let deadline = shutdownDeadline else { return }
    if ledger.hasChanges {
      guard let failure = commits.failure, now.uptime >= deadline || !commits.isWorthRepeating(after: failure) else { return }
    }
    isLeaving = true
    effects.isToLeave = true
  }
}
