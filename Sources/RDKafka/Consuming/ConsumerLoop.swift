import Logging
import Synchronization

/// The loop of a consumer's thread. It serves events at all times, and records against credit.
///
/// Everything that librdkafka requires on one thread is done here: taking batches, rebalancing, leaving.
struct ConsumerLoop {
  private let handle: ConsumerHandle
  private let configuration: ConsumerConfiguration
  private let logger: Logger
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let partitionCredits: PartitionCredits
  private let progress: Progress
  private let commits: PendingCommits
  private let reachability: Reachability
  private let usual: RecordQueue
  private let pausable: RecordQueue
  /// The queues of assigned partitions, where each has its own; see ``ConsumerConfiguration/partitionCredit``.
  private var partitionQueues: [TopicPartition: RecordQueue] = [:]
  /// Whether the pausable topics are served first.
  /// It alternates, so that no topic starves when credit is low.
  private var startsWithPausable = false

  private var rebalances: Rebalances
  private var lastReports: [Int32: ContinuousClock.Instant] = [:]
  private var leaveDeadline: ContinuousClock.Instant?
  private var hasFailed = false
  private let lookResult = LookResult()

  /// The loop of one handle. The other arguments are shared with the application's side.
  init(
    handle: ConsumerHandle, configuration: ConsumerConfiguration, logger: Logger,
    continuation: AsyncStream<ConsumerEvent>.Continuation, credit: Credit, partitionCredits: PartitionCredits,
    progress: Progress, commits: PendingCommits, reachability: Reachability
  ) {
    self.handle = handle
    self.configuration = configuration
    self.logger = logger
    self.continuation = continuation
    self.partitionCredits = partitionCredits
    self.progress = progress
    self.commits = commits
    self.reachability = reachability
    rebalances = Rebalances(configuration)
    usual = RecordQueue(handle.records, configuration, credit: credit)
    // Pausable topics have few records.
    pausable = RecordQueue(handle.pausableRecords, configuration, credit: credit, mayFillUp: false)
  }

  /// Joins the group and serves it until the member has left.
  ///
  /// - Parameters:
  ///   - isClosing: Whether the consumer is to leave.
  ///   - isPaused: Whether the pausable topics are paused.
  mutating func run(isClosing: () -> Bool, isPaused: () -> Bool) {
    do {
      try handle.subscribe(to: configuration.topics)
    } catch {
      report(error)
      hasFailed = true
    }
    var hasMore = false
    while true {
      // The tick bounds everything with a deadline. It also keeps polling librdkafka, which removes a member that does
      // not poll.
      handle.wakeUp.wait(milliseconds: hasMore ? 0 : 100)
      serveEvents()
      advanceRebalances()
      serveCompanions()
      hasMore = deliver(isPaused: isPaused())
      commits.expire(now: .now)
      if leaveDeadline == nil, hasFailed || (isClosing() && !rebalances.isDelayed(at: .now)) { beginLeaving() }
      if let leaveDeadline {
        if handle.hasLeft, rebalances.isEmpty { break }
        if leaveDeadline <= .now {
          logger.warning("Consumer did not leave its group in time")
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
      logger.warning("Consumer cannot leave its group", metadata: [LogKeys.error: "\(error)"])
      leaveDeadline = .now
    }
  }

  private mutating func serveEvents() {
    while let event = handle.nextEvent() {
      switch event {
      case .rebalance(let change):
        rebalances.add(change)
      case .committed(let number, let error):
        if number != 0 {
          commits.end(number, error.map { .failure($0) } ?? .success(()))
        } else if let error {
          // An automatic commit. The next one covers the same offsets.
          logger.info("Stored offsets were not committed", metadata: [LogKeys.error: "\(error)"])
        }
      case .notice(let notice):
        notice.log(to: logger)
        if notice.isOutage {
          // The handle lives until the consumer has ended.
          reachability.check { [weak handle] in handle != nil }
        }
        if case .error(let error) = notice, error.code != .unreachable || error.isFatal { report(error) }
      }
    }
  }

  private mutating func advanceRebalances() {
    let wakeUp = handle.wakeUp
    while let action = rebalances.next(at: .now, isLeaving: leaveDeadline != nil, wakeUp: { wakeUp.signal() }) {
      switch action {
      case .announce(let change, let token): announce(change, token)
      case .reportLate(let change):
        logger.warning(
          "Rebalance takes effect before the application has completed it",
          metadata: [LogKeys.partitions: "\(change.partitions)"])
      case .commitStored: handle.commitStored()
      case .apply(let change): apply(change)
      }
    }
  }

  private mutating func announce(_ change: Rebalances.Change, _ token: Rebalance) {
    switch change.kind {
    case .assign:
      continuation.yield(.assigned(change.partitions, token))
    case .revoke:
      disown(change.partitions)
      continuation.yield(.revoked(change.partitions, token))
    case .lose:
      disown(change.partitions)
      continuation.yield(.lost(change.partitions, token))
    }
  }

  private mutating func apply(_ change: Rebalances.Change) {
    switch change.kind {
    case .assign:
      own(change.partitions)
      progress.add(change.partitions)
    case .revoke, .lose: progress.remove(change.partitions)
    }
    do {
      try handle.apply(change)
    } catch {
      report(error)
    }
    if case .assign = change.kind { lookUpProgress(of: change.partitions) }
  }

  /// Looks at the cluster when it is time, and begins the change of companion partitions that is due.
  private mutating func serveCompanions() {
    guard leaveDeadline == nil else { return }
    if let look = lookResult.take() { rebalances.endLook(look, at: .now) }
    if rebalances.beginLook(at: .now) { look() }
    rebalances.addCompanionChange()
    advanceRebalances()
  }

  /// Reads the numbers of partitions in the background.
  private func look() {
    guard let companionTopic = configuration.companionTopic else { return }
    let (client, wakeUp, result, logger) = (handle.handle, handle.wakeUp, lookResult, logger)
    let leadingTopic = configuration.topics[0]
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    BlockingCalls.detach {
      do {
        let leading = try TopicHandle(name: leadingTopic, on: client).partitionCount(timeoutMilliseconds: timeout)
        let companion = try TopicHandle(name: companionTopic, on: client).partitionCount(timeoutMilliseconds: timeout)
        result.put(CompanionPartitions.Look(leading: leading, companion: companion))
      } catch {
        logger.debug("Companion topic is unknown", metadata: [LogKeys.error: "\(error)"])
        result.put(nil)
      }
      wakeUp.signal()
    }
  }

  private mutating func own(_ partitions: [TopicPartition]) {
    for queue in [usual, pausable] { queue.reader.own(partitions) }
    for partition in partitions {
      guard let records = configuration.partitionCredit else {
        handle.redirect(partition)
        continue
      }
      do {
        let credit = Credit()
        _ = credit.grant(records)
        let queue = RecordQueue(try handle.queue(of: partition), configuration, credit: credit)
        queue.reader.own([partition])
        partitionQueues[partition] = queue
        partitionCredits[partition] = credit
      } catch {
        report(error)
      }
    }
  }

  private mutating func disown(_ partitions: [TopicPartition]) {
    for queue in [usual, pausable] { queue.reader.disown(partitions) }
    for partition in partitions {
      partitionQueues[partition] = nil
      partitionCredits[partition] = nil
    }
  }

  /// Reads the committed offsets for the lag in the background.
  private func lookUpProgress(of partitions: [TopicPartition]) {
    let (client, progress, logger) = (handle.handle, progress, logger)
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    BlockingCalls.detach {
      do {
        progress.resumed(try client.committed(partitions, timeoutMilliseconds: timeout))
      } catch {
        logger.debug("Lag is unknown", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  /// Delivers records up to the credit.
  ///
  /// - Returns: Whether there may be more records at once.
  private mutating func deliver(isPaused: Bool) -> Bool {
    var hasMore = false
    for queue in partitionQueues.values where deliver(from: queue) { hasMore = true }
    guard !isPaused else { return deliver(from: usual) || hasMore }
    startsWithPausable.toggle()
    let first = deliver(from: startsWithPausable ? pausable : usual)
    let second = deliver(from: startsWithPausable ? usual : pausable)
    return first || second || hasMore
  }

  private mutating func deliver(from queue: RecordQueue) -> Bool {
    guard let (taken, wakesFetchThreads) = queue.take() else { return false }
    if wakesFetchThreads { wakeFetchThreads() }
    for batch in taken.batches { continuation.yield(.records(batch)) }
    for error in taken.errors { report(error) }
    return taken.popped > 0
  }

  /// Sends every broker a request, which wakes its thread; see `FetchWakeUp`.
  /// Only one at a time: an unreachable broker delays it.
  private func wakeFetchThreads() {
    guard !handle.isWakingFetchThreads.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let (handle, partitions, logger) = (handle, Array(progress.positions.keys), logger)
    BlockingCalls.detach {
      defer { handle.isWakingFetchThreads.store(false, ordering: .releasing) }
      do {
        _ = try handle.handle.ends(.next, of: partitions, timeoutMilliseconds: 1_000)
      } catch {
        logger.debug("Broker threads were not woken to fetch", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  /// Reports an error to the application, the same one at most every ten seconds: librdkafka
  /// repeats errors while a broker is unreachable.
  private mutating func report(_ error: RDKafkaError) {
    let now = ContinuousClock.now
    if !error.isFatal, let last = lastReports[error.number], now - last < .seconds(10) { return }
    lastReports[error.number] = now
    continuation.yield(.failed(error))
    if error.isFatal { hasFailed = true }
  }
}

extension RecordQueue {
  fileprivate convenience init(
    _ queue: Queue, _ configuration: ConsumerConfiguration, credit: Credit, mayFillUp: Bool = true
  ) {
    self.init(
      reader: RecordReader(queue: queue, readsHeaders: configuration.readsHeaders), credit: credit,
      fetchWakeUp: mayFillUp
        ? FetchWakeUp(
          isNeeded: Workarounds.fetchThreadsSleepWhenFull, records: configuration.prefetchRecords,
          bytes: configuration.prefetchBytes) : nil)
  }
}
