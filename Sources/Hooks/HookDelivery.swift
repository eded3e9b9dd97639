import Crypto
package import FanfareCore
package import Logging
import Metrics
package import RDKafka
import ServiceLifecycle
import Synchronization

/// Delivers the outcomes of some hubs to one hook, from a consumer group of the hook's own.
///
/// - The events of a partition arrive in order: one request of a partition is under way at a time, and a failed one is
///   repeated until the receiver answers 2xx. Partitions proceed independently, each with its own backoff and credit:
///   an event that the receiver cannot process holds up only those behind it.
/// - At least once: an offset is committed only when its event and all before it were delivered or skipped. After a
///   crash the last requests are repeated, perhaps divided otherwise; the ids of the events stay the same.
/// - A refused request (400, 413, 422) is halved until only the event at fault is left. That one is given up at once
///   after 413, otherwise after `maximumRefusals` attempts; it is counted and logged.
/// - An event that is older than `maximumAge` and still cannot be delivered is skipped, counted and logged.
/// - 410 ends the delivery until the process restarts.
/// - Memory is bounded: at most `windowRecords` events of a partition wait, each with at most
///   `HookEvent.maximumDevices` devices.
package final class HookDelivery: Service {
  /// The state of the receiver, for readiness, metrics and the log.
  private struct State {
    /// The problems of the partitions whose events wait: while one fails, others may deliver.
    var failing: [TopicPartition: String] = [:]
    /// Whether the receiver has answered 410.
    var hasEnded = false
    /// Whether a failure was logged since all partitions worked.
    var isReported = false
  }

  /// The receiver has answered 410.
  private struct Gone: Error {}

  private let hook: HookConfiguration
  private let client: HookClient
  private let consumer: Consumer
  private let topic: String
  /// Whether a new group begins with the next event.
  private let startsAtEnd: Bool
  private let clock: any WallClock
  private let logger: Logger
  private let metrics: HookMetrics
  private let state = Mutex(State())
  private let backlogs = Mutex<[TopicPartition: PartitionBacklog]>([:])

  /// Throws `RDKafkaError` if the consumer's configuration is invalid, and `UnusableTrustRoots`.
  package init(
    _ hook: HookConfiguration, secrets: WebhookSecrets, consumer: ConsumerConfiguration, topics: Topics,
    clock: any WallClock = SystemWallClock(), logger: Logger
  ) throws {
    var logger = logger
    logger[metadataKey: LogKeys.hook] = "\(hook.name)"
    self.hook = hook
    self.clock = clock
    self.logger = logger
    topic = topics.status
    startsAtEnd = consumer.start == .latest
    client = try HookClient(hook, secrets: secrets)
    self.consumer = try Consumer(configuration: consumer, logger: logger)
    metrics = HookMetrics(hook: hook.name)
  }

  /// The problem that keeps events from the receiver, for readiness; nil if there is none.
  package var problem: String? {
    state.withLock { state -> String? in
      guard !state.hasEnded else {
        return "the hook \(hook.name) has answered 410 and gets no more events until the restart"
      }
      return state.failing.values.min().map { "events wait for the hook \(hook.name): \($0)" }
    }
  }

  /// Signs later requests with these secrets. Returns false if they are in use already.
  package func use(_ secrets: WebhookSecrets) -> Bool { client.use(secrets) }

  /// Throws `RDKafkaError` when the group's coordinator does not answer in time.
  package func checkKafka() async throws {
    _ = try await consumer.committed([TopicPartition(topic: topic, partition: 0)])
  }

  /// Delivers until graceful shutdown, then finishes the requests that are under way and leaves the group. Call it
  /// once. Throws the consumer's error if it ends by itself.
  package func run() async throws {
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { [consumer] in await consumer.run() }
        group.addTask { [consumer] in
          // Throws only when cancelled because the delivery has ended; then nothing is left to close.
          guard (try? await gracefulShutdown()) != nil else { return }
          await consumer.close()
        }
        group.addTask { await self.observe() }
        try await consume()
        group.cancelAll()
      }
    } catch is Gone {
      // The group has other members only if other processes have partitions; they learn it from the receiver too.
      logger.error("Hook answered 410 and gets no more events until the restart")
      state.withLock { $0.hasEnded = true }
      showState()
      try? await gracefulShutdown()  // Throws only when cancelled, which ends the wait as well.
    }
    await client.close()
  }

  // MARK: - Reading

  /// The delivery of one partition, until it is cancelled.
  private struct Delivery {
    let backlog: PartitionBacklog
    let task: Task<Void, any Error>
  }

  private func consume() async throws {
    var deliveries: [TopicPartition: Delivery] = [:]
    let (failures, failure) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    defer { for delivery in deliveries.values { delivery.task.cancel() } }
    // A 410 ends the consumer, and so the loop below.
    let watch = Task { [consumer] in
      for await _ in failures { await consumer.close() }
    }
    defer { watch.cancel() }
    for await event in consumer.events {
      switch event {
      case .records(let records): append(records, to: deliveries)
      case .assigned(let partitions, let rebalance):
        if startsAtEnd { await settle(partitions) }
        for partition in partitions where deliveries[partition] == nil {
          deliveries[partition] = begin(partition) { failure.yield() }
        }
        rebalance.complete()
        logger.info("Hook partitions assigned", metadata: [LogKeys.partitions: "\(partitions)"])
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        for partition in partitions { deliveries[partition]?.task.cancel() }
        for partition in partitions {
          // The request that is under way is answered first.
          _ = await deliveries.removeValue(forKey: partition)?.task.result
          backlogs.withLock { $0[partition] = nil }
          state.withLock { $0.failing[partition] = nil }
        }
        rebalance.complete()
        logger.info("Hook partitions revoked", metadata: [LogKeys.partitions: "\(partitions)"])
      case .failed(let error) where error.isFatal: throw error
      case .failed(let error):
        logger.warning("The hook's consumer reports an error", metadata: [LogKeys.error: "\(error)"])
      }
    }
    if state.withLock(\.hasEnded) { throw Gone() }
  }

  /// Commits the present ends of partitions that this group has never read. Without it an event that comes before the
  /// first delivery would be lost if the process restarted in between.
  private func settle(_ partitions: [TopicPartition]) async {
    do {
      let known = Set(try await consumer.committed(partitions).map(\.partition))
      let new = partitions.filter { !known.contains($0) }
      if !new.isEmpty { try await consumer.commit(try await consumer.lastOffsets(of: new)) }
    } catch {
      logger.warning("The start of the hook's group was not committed", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private func append(_ records: [ConsumedRecord], to deliveries: [TopicPartition: Delivery]) {
    var items: [TopicPartition: [PartitionBacklog.Item]] = [:]
    for record in records {
      let item = PartitionBacklog.Item(offset: record.offset, event: event(record))
      items[record.topicPartition, default: []].append(item)
    }
    for (partition, items) in items { deliveries[partition]?.backlog.append(items) }
  }

  private func event(_ record: ConsumedRecord) -> HookEvent? {
    do throws(RecordError) {
      let status = try StatusRecord.decode(record.value)
      return hook.wants(status) ? HookEvent(status) : nil
    } catch {
      metrics.undecodable.increment()
      logger.debug("Hook skipped an undecodable record", metadata: [LogKeys.error: "\(error)"])
      return nil
    }
  }

  // MARK: - Delivering

  private func begin(_ partition: TopicPartition, onGone: @escaping @Sendable () -> Void) -> Delivery {
    let backlog = PartitionBacklog()
    backlogs.withLock { $0[partition] = backlog }
    let task = Task { [self] in
      var limit = hook.batchEvents
      for await _ in backlog.signals {
        while let batch = backlog.first(events: limit, bytes: hook.batchBytes) {
          do {
            guard try await deliver(batch, of: partition) else {
              limit = max(1, batch.events.count / 2)
              continue
            }
          } catch {
            if error is Gone {
              state.withLock { $0.hasEnded = true }
              onGone()
            }
            throw error
          }
          limit = min(limit * 2, hook.batchEvents)
          backlog.removeFirst(batch.items.count)
          reached(batch, of: partition)
        }
      }
    }
    return Delivery(backlog: backlog, task: task)
  }

  /// Returns when the receiver has all events of the batch, or the rest is given up; false if the receiver refuses them
  /// together. Throws `Gone`, and `CancellationError` between two attempts.
  private func deliver(_ batch: PartitionBacklog.Batch, of partition: TopicPartition) async throws -> Bool {
    guard var events = batch.events.nonEmpty, let first = batch.items.first, let last = batch.items.last else {
      return true
    }
    // The same for all attempts, and after a restart if the batch is the same.
    let name = "\(hook.name) \(partition) \(first.offset) \(last.offset)"
    let id = "msg_" + Hexadecimal.text(SHA256.hash(data: Array(name.utf8)).prefix(16))
    var (attempt, refusals) = (0, 0)
    while true {
      try Task.checkCancellation()
      let body = HookEvent.batch(events)
      let start = ContinuousClock.now
      // In a task of its own: a revocation waits for the answer, so that an orderly stop repeats no event.
      let answer = await Task { [client, clock] in await client.post(body, id: id, at: clock.now()) }.value
      metrics.seconds.record(duration: ContinuousClock.now - start)
      switch answer {
      case .delivered:
        metrics.successes.increment()
        metrics.delivered.increment(by: events.count)
        succeeded(partition)
        return true
      case .gone: throw Gone()
      case .refused(let problem, let isForGood):
        metrics.failures.increment()
        guard events.count == 1 else { return false }
        refusals += 1
        guard !isForGood, refusals < hook.maximumRefusals else {
          giveUp(events[0], problem)
          return true
        }
        failed(problem, of: partition)
        try await Task.sleep(for: hook.backoff.delay(attempt))
      case .failed(let problem, let retryAfter):
        metrics.failures.increment()
        failed(problem, of: partition)
        try await Task.sleep(for: max(hook.backoff.delay(attempt), retryAfter ?? .zero))
      }
      attempt += 1
      let now = clock.now()
      let young = events.filter { now - $0.settledAt <= hook.maximumAge }
      if young.count < events.count { skip(events.count - young.count) }
      guard let rest = young.nonEmpty else { return true }
      events = rest
    }
  }

  /// Commits the offset and admits as many further records.
  private func reached(_ batch: PartitionBacklog.Batch, of partition: TopicPartition) {
    guard let last = batch.items.last else { return }
    // Given up, too: nothing waits any more. The next success is reported.
    state.withLock { $0.failing[partition] = nil }
    do { try consumer.store([PartitionOffset(partition: partition, offset: last.offset + 1)]) } catch {
      // The partition belongs to another member now, which delivers these events again.
      logger.debug("Offset could not be stored", metadata: [LogKeys.error: "\(error)"])
    }
    consumer.grant(records: batch.items.count, of: partition)
  }

  // MARK: - Reporting

  private func succeeded(_ partition: TopicPartition) {
    let wasReported = state.withLock { state in
      state.failing[partition] = nil
      guard state.failing.isEmpty else { return false }
      defer { state.isReported = false }
      return state.isReported
    }
    if wasReported { logger.notice("Hook receives events again") }
  }

  private func failed(_ problem: String, of partition: TopicPartition) {
    let isReported = state.withLock { state in
      guard !state.hasEnded else { return true }
      state.failing[partition] = problem
      // A hook that fails for hours is reported once.
      defer { state.isReported = true }
      return state.isReported
    }
    guard !isReported else { return }
    logger.warning("Hook failed; its events wait and are sent again", metadata: [LogKeys.error: "\(problem)"])
  }

  private func giveUp(_ event: HookEvent, _ problem: String) {
    metrics.refused.increment()
    logger.error(
      "Hook refuses an event; it is given up",
      metadata: [LogKeys.send: "\(event.send)", LogKeys.error: "\(problem)"])
  }

  private func skip(_ count: Int) {
    metrics.skipped.increment(by: count)
    logger.error("Hook failed for too long; its oldest events are skipped", metadata: [LogKeys.count: "\(count)"])
  }

  /// Sets the gauges once a second until it is cancelled.
  private func observe() async {
    while true {
      metrics.lagRecords.record(consumer.lag().values.clampedSum())
      let oldest = backlogs.withLock { $0.values.compactMap(\.oldest).min() }
      metrics.lagSeconds.record(oldest.map { max(0, (clock.now() - $0) / .seconds(1)) } ?? 0)
      showState()
      do { try await Task.sleep(for: .seconds(1)) } catch { return }
    }
  }

  private func showState() {
    metrics.state.record(state.withLock { $0.hasEnded ? 2 : $0.failing.isEmpty ? 0 : 1 })
  }
}

extension Array {
  /// The array, or nil if it is empty.
  fileprivate var nonEmpty: [Element]? { isEmpty ? nil : self }
}
