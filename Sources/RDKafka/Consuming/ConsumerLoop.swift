import Logging
import Synchronization

/// The loop of a consumer's thread: serves events at all times and records against credit. Everything that librdkafka
/// wants done by one thread (taking batches, rebalancing, leaving) is done here.
struct ConsumerLoop {
  private let handle: ConsumerHandle
  private let configuration: ConsumerConfiguration
  private let logger: Logger
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let credit: Credit
  private let progress: Progress
  private let commits: PendingCommits
  private let membership: Membership
  private let reader: RecordReader
  private let pausableReader: RecordReader
  /// Whose turn it is to take records first, so that neither topic's starve when there is little room.
  private var startsWithPausable = false

  /// Rebalances announced by librdkafka, the first of which has been announced to the application.
  private var rebalances: [Pending] = []
  private var lastReports: [Int32: ContinuousClock.Instant] = [:]
  private var leaveDeadline: ContinuousClock.Instant?
  private var stillness: Stillness
  private var reminder: FetchReminder
  private var hasFailed = false

  private struct Pending {
    var change: ConsumerHandle.Change
    var state: Rebalance.State?
    var deadline = ContinuousClock.now
    /// Until when a revocation that the application has completed is held back; see `holdBack`.
    var heldUntil: ContinuousClock.Instant?
  }

  /// Makes the loop of one handle; what it shares with the application comes from outside.
  init(
    handle: ConsumerHandle,
    configuration: ConsumerConfiguration,
    logger: Logger,
    continuation: AsyncStream<ConsumerEvent>.Continuation,
    credit: Credit,
    progress: Progress,
    commits: PendingCommits,
    membership: Membership
  ) {
    self.handle = handle
    self.configuration = configuration
    self.logger = logger
    self.continuation = continuation
    self.credit = credit
    self.progress = progress
    self.commits = commits
    self.membership = membership
    stillness = Stillness(isNeeded: !configuration.client.profile.acceptsCommitsDuringRebalance)
    reminder = FetchReminder(
      isNeeded: handle.sleepsWhenFull, records: configuration.prefetchRecords, bytes: configuration.prefetchBytes)
    reader = RecordReader(queue: handle.records, readsHeaders: configuration.readsHeaders)
    pausableReader = RecordReader(queue: handle.pausableRecords, readsHeaders: configuration.readsHeaders)
  }

  /// Joins the group and serves it until it has been left.
  ///
  /// - Parameters:
  ///   - isClosing: Whether the consumer shall leave.
  ///   - isPaused: Whether the records of some topics shall wait.
  mutating func run(isClosing: () -> Bool, isPaused: () -> Bool) {
    do {
      try handle.subscribe(to: configuration.topics)
    } catch {
      report(error)
      hasFailed = true
    }
    var hasMore = false
    while true {
      // The tick bounds everything that has a deadline. It also keeps polling librdkafka, which takes an application
      // that does not poll for dead.
      handle.wakeUp.wait(milliseconds: hasMore ? 0 : 100)
      serveEvents()
      advanceRebalance()
      hasMore = deliver(isPaused: isPaused())
      commits.expire(now: .now)
      if leaveDeadline == nil, hasFailed || (isClosing() && !stillness.lasts(at: .now)) { beginLeaving() }
      if let leaveDeadline {
        if handle.hasLeft, rebalances.isEmpty { break }
        if leaveDeadline <= .now {
          logger.warning("The consumer did not leave its group in time")
          break
        }
      }
    }
  }

  private mutating func beginLeaving() {
    leaveDeadline = .now + configuration.closeTimeout
    do {
      try handle.beginLeaving()
    } catch {
      logger.notice("The consumer cannot leave its group", metadata: [LogKeys.error: "\(error)"])
      leaveDeadline = .now
    }
  }

  private mutating func serveEvents() {
    while let event = handle.nextEvent() {
      switch event {
      case .rebalance(let change): rebalances.append(Pending(change: change))
      case .committed(let ticket, let error):
        if ticket != 0 {
          commits.end(ticket, error.map { .failure($0) } ?? .success(()))
        } else if let error {
          // An automatic commit: the next one will cover the same offsets.
          logger.notice("Stored offsets were not committed", metadata: [LogKeys.error: "\(error)"])
        }
      case .notice(let notice):
        if case .log(let level, let facility, let text) = notice, level >= 7, configuration.readsJoinStates {
          membership.read(facility: facility, text: text)
          // Such lines are wanted for this alone, unless somebody debugs.
          guard configuration.client.properties["debug"] != nil else { continue }
        }
        notice.log(to: logger)
        if case .error(let error) = notice, error.code != .unreachable || error.isFatal { report(error) }
      }
    }
  }

  /// Announces the first rebalance, lets it take effect when the application is ready or its time is over, goes on to
  /// the next.
  private mutating func advanceRebalance() {
    while let first = rebalances.first {
      guard let state = first.state else {
        announce()
        continue
      }
      let isLate = first.deadline <= .now
      guard state.isComplete || isLate else { return }
      if !state.isComplete, first.heldUntil == nil {
        logger.warning(
          "A rebalance takes effect although the application has not completed it",
          metadata: [LogKeys.partitions: "\(first.change.list.partitions)"])
      }
      guard !holdBack() else { return }
      apply(first.change)
      rebalances.removeFirst()
    }
  }

  /// Whether the first rebalance has to wait for the sake of the other members; see `Stillness`. What is stored is
  /// committed meanwhile; an application that commits by itself has done so before it completed the rebalance.
  private mutating func holdBack() -> Bool {
    guard !configuration.client.profile.acceptsCommitsDuringRebalance, case .revoke = rebalances[0].change.kind else {
      return false
    }
    guard let heldUntil = rebalances[0].heldUntil else {
      rebalances[0].heldUntil = .now + .milliseconds(500)
      if configuration.autoCommitInterval != nil { handle.commitStored() }
      return true
    }
    return heldUntil > .now || (leaveDeadline == nil && stillness.lasts(at: .now))
  }

  private mutating func announce() {
    let partitions = rebalances[0].change.list.partitions
    let wakeUp = handle.wakeUp
    let state = Rebalance.State { wakeUp.signal() }
    rebalances[0].state = state
    rebalances[0].deadline = .now + configuration.rebalanceDeadline
    stillness.begin(rebalances[0].change.kind, isEmpty: partitions.isEmpty, at: .now)
    let token = Rebalance(state: state, deadline: rebalances[0].deadline)
    switch rebalances[0].change.kind {
    case .assign:
      continuation.yield(.assigned(partitions, token))
    case .revoke:
      for reader in [reader, pausableReader] { reader.disown(partitions) }
      continuation.yield(.revoked(partitions, token))
    case .lose:
      for reader in [reader, pausableReader] { reader.disown(partitions) }
      continuation.yield(.lost(partitions, token))
    }
  }

  private mutating func apply(_ change: ConsumerHandle.Change) {
    let partitions = change.list.partitions
    switch change.kind {
    case .assign:
      for reader in [reader, pausableReader] { reader.own(partitions) }
      progress.add(partitions)
    case .revoke, .lose: progress.remove(partitions)
    }
    do {
      try handle.apply(change)
    } catch {
      report(error)
    }
    if case .assign = change.kind { lookUpProgress(of: partitions) }
  }

  /// Learns where the group was before, for the lag, without making anybody wait.
  private func lookUpProgress(of partitions: [TopicPartition]) {
    let (client, progress, logger) = (handle.handle, progress, logger)
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    BlockingCalls.detach {
      do {
        progress.resumed(try client.committed(partitions, timeoutMilliseconds: timeout))
      } catch {
        logger.debug("The lag is unknown for now", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  /// Hands over records while there are some and the application has room.
  ///
  /// - Returns: Whether there may be more at once.
  private mutating func deliver(isPaused: Bool) -> Bool {
    guard !isPaused else { return deliver(from: reader) }
    startsWithPausable.toggle()
    let first = deliver(from: startsWithPausable ? pausableReader : reader)
    let second = deliver(from: startsWithPausable ? reader : pausableReader)
    return first || second
  }

  private mutating func deliver(from reader: RecordReader) -> Bool {
    let room = credit.available()
    guard room > 0 else { return false }
    let taken = reader.take(limit: room)
    if taken.count > 0 {
      credit.spend(taken.count)
      // What can be held back is little.
      if reader === self.reader,
        reminder.isDue(taken: taken.count, bytes: taken.bytes, left: handle.records.count, at: .now)
      {
        remind()
      }
      for batch in taken.batches { continuation.yield(.records(batch)) }
    }
    for error in taken.errors { report(error) }
    return taken.popped > 0
  }

  /// Sends every broker a request, for which its thread wakes up; see `FetchReminder`. One at a time: a broker that is
  /// away keeps it waiting.
  private func remind() {
    guard !handle.isReminding.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let (handle, partitions, logger) = (handle, Array(progress.positions.keys), logger)
    BlockingCalls.detach {
      defer { handle.isReminding.store(false, ordering: .releasing) }
      do {
        _ = try handle.handle.ends(.next, of: partitions, timeoutMilliseconds: 1_000)
      } catch {
        logger.debug("Fetching goes on when librdkafka looks by itself", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  /// Tells the application, at most every ten seconds about the same error: librdkafka repeats itself while a broker is
  /// away.
  private mutating func report(_ error: RDKafkaError) {
    let now = ContinuousClock.now
    if !error.isFatal, let last = lastReports[error.number], now - last < .seconds(10) { return }
    lastReports[error.number] = now
    continuation.yield(.failed(error))
    if error.isFatal { hasFailed = true }
  }
}
