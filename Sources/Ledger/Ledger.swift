import CoreMetrics
import FanfareCore
import Logging
import Metrics
import RDKafka
import ServiceLifecycle
import Synchronization

/// Writes the sends and status topics to a store that answers queries about sends.
///
/// Two loops run concurrently. `consumeRecords` decodes records into batches; `processQueue` writes the batches, up to
/// `store.writesAtOnce` at a time, and then grants credit to the consumer and stores the offsets. Offsets that cannot
/// be stored are stored with the next batch. Writing is idempotent, so records that are read again after a crash
/// change nothing.
final class Ledger: Service {
  private let configuration: LedgerConfiguration
  private let store: any LedgerStore
  private let consumer: Consumer
  private let clock: any WallClock
  private let logger: Logger
  private let metrics: LedgerMetrics
  private let lag: LagMetrics
  private let queue = WorkQueue()
  private let spans: (any SpanSink)?
  private let onRecorded: (@Sendable (LedgerBatch) -> Void)?
  private let state = Mutex(State())

  private struct State {
    var credit = CreditWindow()
    /// The consumed records that are not stored yet.
    var held = (records: 0, bytes: 0)
    var hasPartitions = false
    var storeFailure: LedgerError?
    /// When to stop trying; set while shutting down.
    var deadline: ContinuousClock.Instant?
  }

  /// Creates a ledger; `run` starts it. Throws `RDKafkaError` when the consumer's configuration is invalid.
  /// `onRecorded` is called from the ledger's own task with each batch that has been written.
  init(
    configuration: LedgerConfiguration, store: any LedgerStore, clock: any WallClock = SystemWallClock(),
    logger: Logger, spans: (any SpanSink)? = nil, onRecorded: (@Sendable (LedgerBatch) -> Void)? = nil
  ) throws {
    self.configuration = configuration
    self.store = store
    self.clock = clock
    self.logger = logger
    self.spans = spans
    self.onRecorded = onRecorded
    lag = LagMetrics(group: configuration.consumer.groupID)
    consumer = try Consumer(configuration: configuration.consumer, logger: logger)
    metrics = LedgerMetrics(topics: [configuration.topics.sends, configuration.topics.status])
  }

  /// The problem that keeps the ledger from recording, for readiness; nil when there is none.
  var readinessProblem: String? {
    state.withLock { state in
      state.storeFailure?.message
        ?? (state.hasPartitions ? nil : "the ledger's consumer group has not assigned it any partitions yet")
    }
  }

  /// Throws `RDKafkaError` when the group's coordinator does not answer within the consumer's `commitTimeout`.
  /// `readinessProblem` does not show this: a consumer keeps its partitions while no broker can be reached.
  func checkKafka() async throws {
    _ = try await consumer.committed([TopicPartition(topic: configuration.topics.sends, partition: 0)])
  }

  /// Records until graceful shutdown, then writes the records already read and leaves the group. Call it once.
  ///
  /// Throws `LedgerError` with `consumer` when the consumer ends by itself or its offsets cannot be rewound, and with
  /// `unavailable` when the store was unreachable during an assignment or the rewind came after its deadline: then a
  /// new ledger has to join the group.
  func run() async throws {
    defer { lag.end() }
    try await withThrowingTaskGroup { group in
      group.addTask { await self.consumer.run() }
      group.addTask { try await self.consumeRecords() }
      group.addTask { await self.closeOnShutdown() }
      group.addTask { await self.everySecond { self.lag.update(self.consumer.lag(), at: self.clock.now()) } }
      group.addTask { await self.everySecond(self.store.removeExpired) }
      group.addTask {
        try await self.processQueue()
        throw Finished()
      }
      do {
        while try await group.next() != nil {}
      } catch is Finished {
        group.cancelAll()
      }
    }
  }

  /// Ends the task group: the tasks that wait for shutdown or for the clock do not end by themselves.
  private struct Finished: Error {}

  // MARK: - Reading

  private func consumeRecords() async throws {
    grant()
    var lastError: RDKafkaError?
    for await event in consumer.events {
      switch event {
      case .records(let records):
        let batch = LedgerBatch(records, topics: configuration.topics, maximumDevices: store.maximumDevices)
        lag.consumed(batch)
        state.withLock { state in
          state.credit.receive(records: batch.records, bytes: batch.bytes)
          state.held = (state.held.records + batch.records, state.held.bytes + batch.bytes)
        }
        // Large records reduce the credit that was granted for smaller ones.
        grant()
        queue.append(.record(batch))
      case .assigned(let partitions, let rebalance):
        queue.append(.assigned(partitions, rebalance))
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        queue.append(.revoked(partitions, rebalance))
      case .failed(let error) where error.isFatal:
        throw LedgerError(.consumer, "the ledger's consumer has failed: \(error.message)")
      case .failed(let error):
        logger.warning("Kafka consumer reports an error", metadata: [LogKeys.error: "\(error)"])
        lastError = error
      }
    }
    guard Task.isCancelled || state.withLock({ $0.deadline != nil }) else {
      throw LedgerError(.consumer, "the ledger's consumer has ended: \(lastError?.message ?? "no error was reported")")
    }
    // Not after an error: the end of the queue means an orderly end of the ledger.
    queue.finish()
  }

  private func closeOnShutdown() async {
    // Throws only when cancelled because the ledger has ended; then nothing is left to close.
    guard (try? await gracefulShutdown()) != nil else { return }
    state.withLock { $0.deadline = .now + configuration.drainTimeout }
    await consumer.close()
  }

  private func grant() {
    let records = state.withLock { state in
      state.credit.grant(
        records: configuration.windowRecords - state.held.records, bytes: configuration.windowBytes - state.held.bytes)
    }
    if records != 0 { consumer.grant(records: records) }
  }

  // MARK: - Writing

  private func processQueue() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      var writes = PendingWrites()
      while let work = await queue.next(limit: configuration.batchRecords, hasRoom: writes.count < store.writesAtOnce) {
        switch work {
        case .assigned(let partitions, let rebalance):
          guard try await finish(&writes) else { return }
          guard try await rewind(partitions, before: rebalance.deadline) else { return }
          state.withLock { $0.hasPartitions = true }
          rebalance.complete()
          logger.info("Ledger partitions assigned", metadata: [LogKeys.partitions: "\(partitions)"])
        case .revoked(let partitions, let rebalance):
          guard try await finish(&writes) else { return }
          // From here on the next owner records their positions.
          for partition in partitions { writes.reached[partition] = nil }
          rebalance.complete()
          logger.info("Ledger partitions revoked", metadata: [LogKeys.partitions: "\(partitions)"])
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

  /// Waits for the pending writes. Returns false when the shutdown deadline does not leave enough time.
  private func finish(_ writes: inout PendingWrites) async throws -> Bool {
    while writes.count > 0 {
      guard case .written(let written)? = await queue.next(limit: 0, hasRoom: false), try await settle(written, &writes)
      else {
        return false
      }
    }
    return true
  }

  /// Ends a write, and settles the batches before which no write is pending. Returns false when the shutdown deadline
  /// has prevented one of them.
  private func settle(_ written: WorkQueue.Written, _ writes: inout PendingWrites) async throws -> Bool {
    writes.end(written.number, duplicates: try written.duplicates.get())
    var (settled, isComplete) = ([(batch: LedgerBatch, duplicates: Int)](), true)
    while isComplete, let (batch, duplicates) = writes.takeFirst() {
      if let duplicates { settled.append((batch, duplicates)) } else { isComplete = false }
    }
    await storePositions(&writes.reached)
    for (batch, duplicates) in settled { settle(batch, duplicates: duplicates) }
    return isComplete
  }

  /// Stores the positions in the store and then in the group. After a failure they are stored with the next batch:
  /// positions that are too low only cause records to be read again.
  private func storePositions(_ reached: inout [TopicPartition: Int64]) async {
    guard !reached.isEmpty else { return }
    do { try await store.reach(reached) } catch {
      logger.warning("Ledger positions could not be stored", metadata: [LogKeys.error: "\(error)"])
      return
    }
    do {
      try consumer.store(reached.map { PartitionOffset(partition: $0.key, offset: $0.value) })
    } catch {
      // A partition belongs to another member now, which reads these records again.
      logger.debug("Offsets could not be stored", metadata: [LogKeys.error: "\(error)"])
    }
    reached = [:]
  }

  /// Writes a batch, retrying with backoff until it succeeds. Returns nil when the shutdown deadline leaves no time for
  /// another attempt.
  private func write(_ batch: LedgerBatch) async throws -> Int? {
    var attempt = 1
    while true {
      do {
        let (start, began) = (ContinuousClock.now, clock.now())
        let duplicates = try await store.write(batch)
        metrics.batchSeconds.record(duration: ContinuousClock.now - start)
        state.withLock { $0.storeFailure = nil }
        if let spans, !batch.traces.isEmpty {
          let now = clock.now()
          spans.record(batch.traces.map { $0.span(topic: configuration.topics.status, from: began, to: now) })
        }
        return duplicates
      } catch let error as LedgerError {
        try Task.checkCancellation()
        metrics.storeFailures.increment()
        let deadline = state.withLock { state in
          state.storeFailure = error
          return state.deadline
        }
        // One failure can be a lost connection or a conflict; several are an outage.
        logger.log(
          level: attempt < 3 ? .warning : .error, "Ledger transaction failed",
          metadata: [LogKeys.error: "\(error)", LogKeys.attempt: "\(attempt)", LogKeys.records: "\(batch.records)"])
        let delay = configuration.backoff.wait(attempt - 1)
        if let deadline, .now + delay > deadline { return nil }
        // Jitter of up to a quarter, so that processes that wait for the same lock do not retry together.
        try await Task.sleep(for: delay * Double.random(in: 1...1.25))
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
        "Ledger skipped undecodable records",
        metadata: [LogKeys.topic: "\(topic)", LogKeys.records: "\(problem.count)", LogKeys.error: "\(problem.reason)"])
    }
    state.withLock { $0.held = ($0.held.records - batch.records, $0.held.bytes - batch.bytes) }
    grant()
    onRecorded?(batch)
  }

  /// Rewinds the group's offsets where the store holds less than the group has committed; see `OffsetRewind`.
  ///
  /// Retries until shortly before the rebalance's deadline, because a broker that starts at the same time may not
  /// answer at once; then it throws, as `run` describes. Returns false during a shutdown: records read then must not be
  /// written.
  private func rewind(_ partitions: [TopicPartition], before effect: ContinuousClock.Instant) async throws -> Bool {
    let lastTry = effect - configuration.consumer.rebalanceDeadline * 0.2
    while true {
      do {
        // Earlier batches have waited too long for the store: the consumer already reads from the group's offsets.
        guard ContinuousClock.now < lastTry else {
          throw LedgerError(.unavailable, "the store was unavailable for the whole time that a rebalance allows")
        }
        // The store first: when it is unavailable, that is the cause to report.
        let recorded = try await store.positions()
        let rewinds = try await OffsetRewind.offsets(
          of: partitions, committed: consumer.committed(partitions), recorded: recorded,
          lowest: { [consumer] partitions in try await consumer.firstOffsets(of: partitions) })
        guard !rewinds.isEmpty else { return true }
        try await consumer.commit(rewinds)
        guard ContinuousClock.now < effect else {
          throw LedgerError(
            .unavailable, "the offsets were rewound to the store's positions after the consumer had begun to read")
        }
        logger.notice(
          "Ledger rewinds to the positions of its store",
          metadata: [LogKeys.partitions: "\(rewinds.map(\.partition))"])
        return true
      } catch {
        try Task.checkCancellation()
        if state.withLock({ $0.deadline != nil }) { return false }
        // Going on would leave a gap in the ledger that nothing reports.
        guard ContinuousClock.now < lastTry else {
          if let error = error as? LedgerError, error.code == .unavailable { throw error }
          throw LedgerError(.consumer, "the group's offsets cannot be rewound to the store's positions: \(error)")
        }
        try await Task.sleep(for: configuration.backoff.first)
      }
    }
  }

  private func everySecond(_ body: () async -> Void) async {
    while !Task.isCancelled {
      await body()
      // Cancelled: the loop's condition ends it.
      try? await Task.sleep(for: .seconds(1))
    }
  }
}
