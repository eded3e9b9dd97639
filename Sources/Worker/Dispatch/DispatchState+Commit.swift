import RDKafka

extension DispatchState {
  /// Begins a commit of all that has settled since the last one, if it is time.
  mutating func commit(at now: Moment, into effects: inout Effects) {
    let isLast = drains.contains { $0.lastCommit == commits.next }
    guard ledger.hasChanges, commits.isDue(at: now.uptime, isLast: isLast) else { return }
    let offsets = ledger.takeChanged(metadataLimit: commits.metadataBytes)
    guard !offsets.isEmpty else { return }
    commits.begin(offsets.map(\.partition), at: now.uptime)
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
      reportWhatIsLeft(in: drain.partitions, into: &effects)
      for partition in drain.partitions { ledger.close(partition) }
      effects.completions.append(drain.rebalance)
    }
    drains.removeAll { drain in finished.contains { $0.rebalance === drain.rebalance } }
    giveUpWhatIsNotOwned()
  }

  /// Says what the next owner of partitions that are given back will do again, if anything.
  private func reportWhatIsLeft(in partitions: [TopicPartition], into effects: inout Effects) {
    let uncommitted = partitions.filter { commits.open.contains($0) || ledger.hasChanges(in: [$0]) }
    if !uncommitted.isEmpty {
      let reason =
        commits.isRefused
        ? "the group is between two assignments"
        : commits.isCommitting ? "no time is left" : commits.failure.map { "\($0)" } ?? ""
      effects.alarm(.positionsLeft(uncommitted, reason: reason))
    }
    let partitions = Set(partitions)
    let begun = items.filter { item in
      let hasBegun = item.phase == .settling || item.hasStarted
      return item.phase != .vacant && !item.isAbandoned && hasBegun
        && ledger.partition(of: item.origin).map(partitions.contains) == true
    }
    if !begun.isEmpty { effects.alarm(.workLeft(Array(partitions), sends: begun.count)) }
  }

  /// Leaves the group once it has the last positions: others would do again what is done. Where they are not to be had,
  /// it leaves at the deadline.
  mutating func leave(at now: Moment, into effects: inout Effects) {
    guard hasDrained, !isLeaving, !commits.isCommitting, let deadline = shutdownDeadline else { return }
    if ledger.hasChanges {
      guard let failure = commits.failure, now.uptime >= deadline || !commits.isWorthRepeating(after: failure) else {
        return
      }
    }
    isLeaving = true
    effects.isToLeave = true
  }
}
