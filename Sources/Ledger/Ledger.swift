import CoreMetrics
import FanfareCore
import Logging
import Metrics
import RDKafka
import ServiceLifecycle
import Synchronization

/// Turns the sends and status topics into a store that can be asked what became of a send.
///
/// Two halves work at once: one takes records from the consumer and decodes them, the other puts what has gathered
/// meanwhile into the store, as many batches at a time as that can take, and only then gives the consumer credit for
/// more and stores the offsets, those with the next batch where that fails. A record that is read again changes
/// nothing, so a crash at any moment costs nothing but time.
final class Ledger: Service {
  private let configuration: LedgerConfiguration
  private let store: any LedgerStorage
  private let consumer: Consumer
  private let clock: any WallClock
  private let logger: Logger
  private let metrics: LedgerMetrics
  private let lag = LagMetrics()
  private let queue = WorkQueue()
  private let onRecorded: (@Sendable (LedgerBatch) -> Void)?
  private let state = Mutex(State())

  private struct State {
    var window: CreditWindow?
    var hasPartitions = false
    var storeFailure: LedgerError?
    /// When to stop trying; set while shutting down.
    var deadline: ContinuousClock.Instant?
  }

  /// Makes a ledger that has not begun. Throws `RDKafkaError` when the consumer's configuration is wrong. `onRecorded`
  /// is told of each batch that is in the store, from the ledger's own task.
  init(
    configuration: LedgerConfiguration, store: any LedgerStorage, clock: any WallClock = SystemWallClock(),
    logger: Logger,
    onRecorded: (@Sendable (LedgerBatch) -> Void)? = nil
  ) throws {
    self.configuration = configuration
    self.store = store
    self.clock = clock
    self.logger = logger
    self.onRecorded = onRecorded
    consumer = try Consumer(configuration: configuration.consumer, logger: logger)
    metrics = LedgerMetrics(topics: [configuration.topics.sends, configuration.topics.status])
    let window = CreditWindow(maximumRecords: configuration.windowRecords, maximumBytes: configuration.windowBytes)
    state.withLock { $0.window = window }
  }

  /// What keeps the ledger from recording now, for readiness; nil when nothing does.
  var complaint: String? {
    state.withLock { state in
      state.storeFailure?.message ?? (state.hasPartitions ? nil : "the ledger's group has not given it partitions yet")
    }
  }

  /// Throws `RDKafkaError` when the group's coordinator does not answer within the consumer's `commitTimeout`.
  /// `complaint` says nothing of that: a consumer keeps its partitions while no broker can be reached.
  func checkKafka() async throws {
    _ = try await consumer.committed([TopicPartition(topic: configuration.topics.sends, partition: 0)])
  }

  /// Records until graceful shutdown, then takes in what has been read already and leaves the group. To be called once.
  ///
  /// Throws `LedgerError` when the consumer ends by itself, or a rewind is impossible: `unavailable` where that is for
  /// the store's sake, or it came too late and only another ledger begins there.
  func run() async throws {
    defer { lag.end() }
    try await withThrowingTaskGroup { group in
      group.addTask { await self.consumer.run() }
      group.addTask { try await self.takeIn() }
      group.addTask { await self.closeOnShutdown() }
      group.addTask { await self.reportLag() }
      group.addTask { await self.retire() }
      group.addTask {
        try await self.record()
        throw Finished()
      }
      do {
        while try await group.next() != nil {}
      } catch is Finished {
        group.cancelAll()
      }
    }
  }

  /// Ends the group of tasks when the work is done, because the ones that wait for shutdown or the time do not end by
  /// themselves.
  private struct Finished: Error {}

  // MARK: - Reading

  private func takeIn() async throws {
    grant()
    var lastError: RDKafkaError?
    for await event in consumer.events {
      switch event {
      case .records(let records):
        let batch = LedgerBatch(records, topics: configuration.topics, maximumDevices: store.maximumDevices)
        lag.takenIn(batch)
        state.withLock { $0.window?.takenIn(records: batch.records, bytes: batch.bytes) }
        // Large ones take back what smaller ones would have been given.
        grant()
        queue.append(.record(batch))
      case .assigned(let partitions, let rebalance):
        queue.append(.assigned(partitions, rebalance))
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        queue.append(.revoked(partitions, rebalance))
      case .failed(let error) where error.isFatal:
        throw LedgerError(.consumer, "the ledger's consumer has failed: \(error.message)")
      case .failed(let error):
        logger.warning("The ledger's consumer reports an error", metadata: [LogKeys.error: "\(error)"])
        lastError = error
      }
    }
    guard Task.isCancelled || state.withLock({ $0.deadline != nil }) else {
      throw LedgerError(.consumer, "the ledger's consumer has ended: \(lastError?.message ?? "nobody knows why")")
    }
    // Not after an error: the end of the records would be taken for that of the ledger.
    queue.finish()
  }

  private func closeOnShutdown() async {
    // Cancelled when the ledger ends first; then there is nothing left to close.
    guard (try? await gracefulShutdown()) != nil else { return }
    state.withLock { $0.deadline = .now + configuration.drainTimeout }
    await consumer.close()
  }

  private func grant() {
    let records = state.withLock { $0.window?.grant() ?? 0 }
    if records != 0 { consumer.grant(records: records) }
  }

  // MARK: - Writing

  private func record() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      var writes = WritesUnderWay()
      while let work = await queue.next(limit: configuration.batchRecords, hasRoom: writes.count < store.writesAtOnce) {
        switch work {
        case .assigned(let partitions, let rebalance):
          guard try await finish(&writes) else { return }
          guard try await rewind(partitions, before: rebalance.deadline) else { return }
          state.withLock { $0.hasPartitions = true }
          rebalance.complete()
          logger.info("The ledger reads partitions", metadata: [LogKeys.partitions: "\(partitions)"])
        case .revoked(let partitions, let rebalance):
          // What had been read of them came before.
          guard try await finish(&writes) else { return }
          // Whoever has them next says how far they are.
          for partition in partitions { writes.reached[partition] = nil }
          rebalance.complete()
          logger.info("The ledger has given up partitions", metadata: [LogKeys.partitions: "\(partitions)"])
        case .record(let batch):
          let number = writes.begin(batch)
          group.addTask {
            do {
              self.queue.append(WorkQueue.Written(number: number, duplicates: .success(try await self.write(batch))))
            } catch {
              self.queue.append(WorkQueue.Written(number: number, duplicates: .failure(error)))
            }
          }
        case .written(let written):
          guard try await settle(written, &writes) else { return }
        }
      }
      _ = try await finish(&writes)
    }
  }

  /// Waits for what is being written. Returns false when shutdown does not allow for it.
  private func finish(_ writes: inout WritesUnderWay) async throws -> Bool {
    while writes.count > 0 {
      guard case .written(let written)? = await queue.next(limit: 0, hasRoom: false), try await settle(written, &writes)
      else {
        return false
      }
    }
    return true
  }

  /// A batch has been written: settles those before which nothing is open. Returns false when shutdown has not allowed
  /// for one of them.
  private func settle(_ written: WorkQueue.Written, _ writes: inout WritesUnderWay) async throws -> Bool {
    writes.end(written.number, duplicates: try written.duplicates.get())
    var (settled, isComplete) = ([(batch: LedgerBatch, duplicates: Int)](), true)
    while isComplete, let (batch, duplicates) = writes.takeFirst() {
      if let duplicates { settled.append((batch, duplicates)) } else { isComplete = false }
    }
    await note(&writes.reached)
    for (batch, duplicates) in settled { settle(batch, duplicates: duplicates) }
    return isComplete
  }

  /// Says to the store and then to the group how far the log has been read. What the store does not take now is said
  /// with the next batch: until then both know less than there is, which does no harm.
  private func note(_ reached: inout [TopicPartition: Int64]) async {
    guard !reached.isEmpty else { return }
    do { try await store.reach(reached) } catch {
      logger.warning("Positions were not noted", metadata: [LogKeys.error: "\(error)"])
      return
    }
    do {
      try consumer.store(reached.map { PartitionOffset(partition: $0.key, offset: $0.value) })
    } catch {
      // A partition has gone to another member, which will read these records again.
      logger.debug("Offsets were not stored", metadata: [LogKeys.error: "\(error)"])
    }
    reached = [:]
  }

  /// Puts a batch into the file, trying again until it is there. Nil when shutdown does not allow for another try.
  private func write(_ batch: LedgerBatch) async throws -> Int? {
    var delay = configuration.firstRetryDelay
    var attempt = 1
    while true {
      do {
        let start = ContinuousClock.now
        let duplicates = try await store.write(batch)
        metrics.batchSeconds.record(duration: ContinuousClock.now - start)
        state.withLock { $0.storeFailure = nil }
        return duplicates
      } catch let error as LedgerError {
        try Task.checkCancellation()
        metrics.storeFailures.increment()
        let deadline = state.withLock { state in
          state.storeFailure = error
          return state.deadline
        }
        logger.error(
          "A transaction of the ledger failed",
          metadata: [LogKeys.error: "\(error)", LogKeys.attempt: "\(attempt)", LogKeys.records: "\(batch.records)"])
        if let deadline, .now + delay > deadline { return nil }
        // Up to a quarter longer, so that processes which wait for one lock do not come again together.
        try await Task.sleep(for: delay * Double.random(in: 1...1.25))
        delay = min(delay * 2, configuration.longestRetryDelay)
        attempt += 1
      }
    }
  }

  private func settle(_ batch: LedgerBatch, duplicates: Int) {
    lag.recorded(batch)
    for (topic, count) in batch.recordsByTopic { metrics.records[topic]?.increment(by: count) }
    if duplicates > 0 { metrics.duplicates.increment(by: duplicates) }
    for (topic, problem) in batch.undecodable {
      metrics.undecodable[topic]?.increment(by: problem.count)
      logger.warning(
        "The ledger passed over records that it cannot read",
        metadata: [LogKeys.topic: "\(topic)", LogKeys.records: "\(problem.count)", LogKeys.error: "\(problem.reason)"])
    }
    state.withLock { $0.window?.done(records: batch.records) }
    grant()
    onRecorded?(batch)
  }

  /// Sends the consumer back where the file knows less than the group has committed; see `Rewind`. Tries for as long as
  /// the assignment waits, for a broker that starts at the same time may not answer at once. Throws where that was too
  /// long, `unavailable` as `run` says. Returns false when shutdown does not allow for it: what is read then must not
  /// be written.
  private func rewind(_ partitions: [TopicPartition], before effect: ContinuousClock.Instant) async throws -> Bool {
    let lastTry = effect - configuration.consumer.rebalanceDeadline * 0.2
    while true {
      do {
        // Where the batches before have waited for the store for so long, the consumer reads already from where the
        // group was.
        guard ContinuousClock.now < lastTry else {
          throw LedgerError(.unavailable, "the store was not there while the group waited for the ledger")
        }
        // The store first: where it is away, that is the reason, whatever else is slow.
        let recorded = try await store.positions()
        let rewinds = try await Rewind.offsets(
          of: partitions, committed: consumer.committed(partitions), recorded: recorded,
          lowest: { [consumer] partitions in try await consumer.firstOffsets(of: partitions) })
        guard !rewinds.isEmpty else { return true }
        try await consumer.commit(rewinds)
        guard ContinuousClock.now < effect else {
          throw LedgerError(
            .unavailable, "the ledger went back to where its file ends when its consumer had begun to read")
        }
        logger.notice(
          "The ledger reads again what its file does not hold",
          metadata: [LogKeys.partitions: "\(rewinds.map(\.partition))"])
        return true
      } catch {
        try Task.checkCancellation()
        if state.withLock({ $0.deadline != nil }) { return false }
        // Going on would leave a gap that nobody notices.
        guard ContinuousClock.now < lastTry else {
          if let error = error as? LedgerError, error.code == .unavailable { throw error }
          throw LedgerError(.consumer, "the ledger cannot go back to where its file ends: \(error)")
        }
        try await Task.sleep(for: configuration.firstRetryDelay)
      }
    }
  }

  private func retire() async {
    while !Task.isCancelled {
      await store.retire()
      // Cancelled: the loop's condition ends it.
      try? await Task.sleep(for: .seconds(1))
    }
  }

  private func reportLag() async {
    while !Task.isCancelled {
      lag.update(consumer.lag(), at: clock.now())
      // Cancelled: the loop's condition ends it.
      try? await Task.sleep(for: .seconds(1))
    }
  }
}
