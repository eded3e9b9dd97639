package import Logging
import Synchronization

/// Is told about the records of one topic on their way to the cluster, on the threads that submit them and on the
/// producer's thread, which it must not block.
package protocol ProductionWatch: Sendable {
  var topic: String { get }
  /// Records, also of other topics, are about to be submitted.
  func willProduce(_ records: [ProducerRecord])
  /// Submitted records were refused.
  func didNotProduce(_ records: [ProducerRecord])
  /// Records of the topic have settled.
  func didProduce(_ deliveries: [Delivery])
  /// The records in flight were lost track of with their handle; further ones may have been submitted meanwhile.
  func forgetInFlight()
}

/// Produces records to Kafka: idempotent, acknowledged by all in-sync replicas.
///
/// Create it, keep ``run()`` running while it is used, then ``close(timeout:)``. Without `run()` no record is
/// acknowledged. Records with the same key, submitted one after another, stay in order.
///
/// After a fatal error of librdkafka (before 2.3 a temporary broker error can suffice), records in flight fail with
/// `notPersisted` or `possiblyPersisted`, and the producer continues with a new handle.
package final class Producer: Sendable {
  private let configuration: ProducerConfiguration
  private let logger: Logger
  private let watch: (any ProductionWatch)?
  private let reachability: Reachability
  private let state: Mutex<State>
  private let ended = OneShot()

  private struct State: ~Copyable {
    var phase = Phase.created
    /// Nil while a failed handle has not been replaced.
    var handle: ProducerHandle?
    /// The number of replaced handles.
    var generation = 0
    var inFlight = InFlight()
    /// The number of records given up by `close`.
    var abandoned = 0
  }

  private enum Phase {
    case created, running, closed
    case closing(ContinuousClock.Instant)
  }

  /// Creates a producer without contacting a broker.
  ///
  /// - Parameters:
  ///   - configuration: The settings.
  ///   - logger: The logger for the client's events. Keys and values are never logged.
  ///   - watch: Is told about the records of its topic.
  /// - Throws: `configuration`, naming the key.
  package init(
    configuration: ProducerConfiguration, logger: Logger, watch: (any ProductionWatch)? = nil
  ) throws(RDKafkaError) {
    var logger = logger
    logger[metadataKey: LogKeys.client] = "\(configuration.client.clientID)"
    Workarounds.check(configuration.client, logger: logger)
    self.configuration = configuration
    self.logger = logger
    self.watch = watch
    reachability = Reachability(of: configuration.client, logger: logger)
    let handle = try ProducerHandle(properties: configuration.properties)
    state = Mutex(State(handle: handle))
  }

  /// Serves delivery reports until ``close(timeout:)``. Cancellation closes with
  /// ``ProducerConfiguration/closeTimeout``.
  package func run() async {
    let isFirst = state.withLock { state in
      guard case .created = state.phase else { return false }
      state.phase = .running
      return true
    }
    if isFirst {
      do {
        try DedicatedThread.start(name: "rdk-producer") { [self] in
          serve()
          ended.fire()
        }
      } catch {
        logger.error("Producer thread cannot be started", metadata: [LogKeys.error: "\(error)"])
        finish()
        ended.fire()
      }
    }
    await withTaskCancellationHandler {
      await ended.wait()
    } onCancel: {
      beginClosing(timeout: configuration.closeTimeout)
    }
  }

  /// Sends a record and returns when all in-sync replicas have it.
  ///
  /// Bounded by ``ProducerConfiguration/deliveryTimeout``. Cancellation neither withdraws the record nor ends the wait.
  package func send(_ record: ProducerRecord) async throws(RDKafkaError) -> RecordPosition {
    let results = await send([record])
    return try results[0].get()
  }

  /// Sends records and returns when each is acknowledged or has failed.
  /// Results are in the order of the records.
  package func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
    await withCheckedContinuation { continuation in
      submit(records) { continuation.resume(returning: $0) }
    }
  }

  /// Submits records and returns at once.
  /// The cheapest way: no task, no continuation, one lock for all records. A full queue refuses all records from the
  /// first one on that has no room.
  ///
  /// - Parameters:
  ///   - records: Any number of records for any topics.
  ///   - completion: Called once with the results in the order of the records, on the producer's thread, which it must
  ///     not block (on the caller's thread if there are no records or the producer is closed).
  package func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    submit(records, completing: .whole) { _, results in completion(results) }
  }

  /// Submits records that are not waited for together, and returns at once.
  ///
  /// - Parameters:
  ///   - records: Any number of records for any topics.
  ///   - completion: Called once for each record with its index and result, on the same threads as by
  ///     ``submit(_:completion:)``.
  package func submit(
    _ records: [ProducerRecord],
    each completion: @escaping @Sendable (Int, Result<RecordPosition, RDKafkaError>) -> Void
  ) {
    submit(records, completing: .each) { first, results in
      for (offset, result) in results.enumerated() { completion(first + offset, result) }
    }
  }

  private func submit(
    _ records: [ProducerRecord], completing manner: InFlight.Manner, completion: @escaping InFlight.Completion
  ) {
    guard !records.isEmpty else { return completion(0, []) }
    let admission: Result<(handle: ProducerHandle, slot: Int), RDKafkaError> = state.withLock { state in
      switch state.phase {
      case .closing, .closed: return .failure(RDKafkaError(code: .closed, message: "the producer is closed"))
      case .created, .running: break
      }
      if refusesRecords {
        return .failure(RDKafkaError(code: .unreachable, message: "no broker is reachable"))
      }
      guard let handle = state.handle else {
        return .failure(RDKafkaError(code: .notPersisted, message: "the producer has failed and is being replaced"))
      }
      return .success(
        (
          handle,
          state.inFlight.open(
            records, generation: state.generation, completing: manner, completion: completion)
        ))
    }
    switch admission {
    case .failure(let error): completion(0, records.map { _ in .failure(error) })
    case .success(let (handle, slot)):
      watch?.willProduce(records)
      let refused = handle.produce(records, slot: slot)
      if !refused.isEmpty { watch?.didNotProduce(refused.map { records[$0.index] }) }
      let (isToBeTaken, left) = state.withLock { state -> (Bool, [InFlight.Finished]) in
        let isToBeTaken = state.inFlight.handedOver(slot, refused: refused)
        // A producer that was closed meanwhile does not complete this submission any more.
        guard case .closed = state.phase else { return (isToBeTaken, []) }
        return (false, state.inFlight.takeFinished())
      }
      // Lets the producer's thread complete submissions that no further delivery report will complete: the broker can
      // be faster than this thread.
      if isToBeTaken { handle.interrupt() }
      for submission in left { submission.complete() }
    }
  }

  /// Refuses further records, waits at most `timeout` for those in flight, gives up the rest, and
  /// ends ``run()``.
  ///
  /// - Returns: The number of records given up, which fail with `notPersisted` or `possiblyPersisted`.
  @discardableResult
  package func close(timeout: Duration) async -> Int {
    beginClosing(timeout: timeout)
    await ended.wait()
    return state.withLock { $0.abandoned }
  }

  /// Reads the partitions of `topics`, so that the first records do not wait for them.
  /// Also checks that the cluster is reachable.
  ///
  /// - Returns: The number of partitions of each topic.
  /// - Throws: `unknownTopic`, `unreachable`, `timedOut`, `unauthorized`, `closed`.
  @discardableResult
  package func prepare(topics: [String], timeout: Duration) async throws(RDKafkaError) -> [String: Int32] {
    guard let handle = state.withLock({ $0.handle }) else {
      throw RDKafkaError(code: .closed, message: "the producer is closed")
    }
    let deadline = ContinuousClock.now + timeout
    return try await BlockingCalls.run { [reachability] () throws(RDKafkaError) in
      var counts: [String: Int32] = [:]
      for topic in topics {
        let left = max(.milliseconds(1), deadline - .now)
        let milliseconds = left.timeoutMilliseconds
        // Only the first time on the producer's own connections, where answers wait for acknowledgements.
        counts[topic] =
          handle.hasTopic(topic)
          ? try reachability.partitionCount(of: topic, timeoutMilliseconds: milliseconds)
          : try handle.topic(topic).partitionCount(timeoutMilliseconds: milliseconds)
      }
      return counts
    }
  }

  /// The records submitted and not yet settled.
  package var recordsInFlight: Int {
    state.withLock { $0.inFlight.count }
  }

  /// Whether records are refused because no broker is reachable.
  package var refusesRecords: Bool {
    configuration.refusesWhileUnreachable && reachability.isUnreachable
  }

  /// How often a handle was replaced after a fatal error.
  package var handleReplacements: Int {
    state.withLock { $0.generation }
  }

  #if DEBUG
  /// Makes the handle fail with a fatal error. For tests: release builds do not have it.
  package func provokeFatalError() {
    state.withLock { $0.handle }?.handle.provokeFatalError()
  }
  #endif

  private func beginClosing(timeout: Duration) {
    enum Step {
      case nothing, interrupt(ProducerHandle?), finish
    }
    let step = state.withLock { state -> Step in
      switch state.phase {
      case .created:
        state.phase = .closing(.now)
        return .finish
      case .running:
        state.phase = .closing(.now + timeout)
        return .interrupt(state.handle)
      case .closing(let deadline):
        state.phase = .closing(min(deadline, .now + timeout))
        return .interrupt(state.handle)
      case .closed: return .nothing
      }
    }
    switch step {
    case .nothing: break
    case .interrupt(let handle): handle?.interrupt()
    case .finish:
      finish()
      ended.fire()
    }
  }
}

// MARK: - The producer's thread

extension Producer {
  /// The loop of the producer's thread.
  private func serve() {
    var deliveries: [Delivery] = []
    var nextReplacement = ContinuousClock.now
    while true {
      let handle = state.withLock { $0.handle }
      let notices = handle?.poll(milliseconds: 100, deliveries: &deliveries) ?? []
      settle(deliveries)
      let isBusy = !deliveries.isEmpty
      deliveries.removeAll(keepingCapacity: true)
      for notice in notices { notice.log(to: logger) }
      if let handle, handle.isDead(notices) {
        retire(handle)
      } else if notices.contains(where: \.isOutage)
        || (configuration.refusesWhileUnreachable && notices.contains(where: \.isLostConnection))
      {
        reachability.check { [weak self] in
          // A closed producer needs no answer.
          self?.state.withLock { if case .running = $0.phase { true } else { false } } ?? false
        }
      }
      if state.withLock({ $0.handle == nil }) {
        // A handle that fails at once must not be replaced in a tight loop.
        nextReplacement = max(nextReplacement, .now)
        replaceHandle(notBefore: nextReplacement)
        nextReplacement = .now + .seconds(1)
      }
      if isDone { break }
      // Under load thousands of reports per second come with a few records each. Waking this thread and the waiting
      // tasks for each report would cost several times as much as processing it.
      if isBusy { Pause.toGather() }
    }
    finish()
  }

  /// Whether the producer is closing and has no records in flight, or no time left.
  private var isDone: Bool {
    state.withLock { state in
      guard case .closing(let deadline) = state.phase else { return false }
      return state.inFlight.count == 0 || deadline <= .now
    }
  }

  /// Settles deliveries and completes the submissions that have no other records in flight.
  private func settle(_ deliveries: [Delivery]) {
    let topic = watch?.topic
    let (finished, watched) = state.withLock { state in
      var watched: [Delivery] = []
      for delivery in deliveries {
        let settled = state.inFlight.settle(delivery)
        if let topic, settled == topic { watched.append(delivery) }
      }
      return (state.inFlight.takeFinished(), watched)
    }
    if !watched.isEmpty { watch?.didProduce(watched) }
    for submission in finished { submission.complete() }
  }

  /// Retires a handle: gives up and settles all its records within two seconds.
  private func retire(_ handle: ProducerHandle) {
    let generation = state.withLock { state in
      state.handle = nil
      return state.generation
    }
    var deliveries: [Delivery] = []
    let deadline = ContinuousClock.now + .seconds(2)
    while state.withLock({ $0.inFlight.hasRecords(upTo: generation) }), .now < deadline {
      // Repeated, because a thread that took the handle before may still be submitting records.
      handle.purge()
      for notice in handle.poll(milliseconds: 20, deliveries: &deliveries) { notice.log(to: logger) }
      settle(deliveries)
    }
    // librdkafka reports purged records at once. A record without a report by now never gets one.
    let error = RDKafkaError(code: .possiblyPersisted, message: "the producer's handle failed")
    let silent = state.withLock { $0.inFlight.abandon(upTo: generation, error: error) }
    if silent > 0 {
      logger.error("Records were given up without a delivery report", metadata: [LogKeys.records: "\(silent)"])
      watch?.forgetInFlight()
    }
    settle([])
  }

  /// Creates the successor of a failed handle.
  private func replaceHandle(notBefore instant: ContinuousClock.Instant) {
    while ContinuousClock.now < instant, !isDone { Pause.briefly() }
    do {
      let handle = try ProducerHandle(properties: configuration.properties)
      state.withLock { state in
        state.handle = handle
        state.generation += 1
      }
      logger.notice("Producer handle was replaced after a fatal error")
    } catch {
      logger.error("Producer handle cannot be replaced", metadata: [LogKeys.error: "\(error)"])
    }
  }

  /// Gives up the remaining records and releases the handle.
  private func finish() {
    let (handle, failedBefore) = state.withLock { state in
      state.phase = .closed
      return (state.handle, state.inFlight.failed)
    }
    if let handle { retire(handle) } else { settle([]) }
    let abandoned = state.withLock { state in
      state.abandoned = state.inFlight.failed - failedBefore
      return state.abandoned
    }
    if abandoned > 0 {
      logger.warning("Producer was closed with records in flight", metadata: [LogKeys.records: "\(abandoned)"])
    }
  }
}

extension ProducerHandle {
  /// Whether a notice reports a fatal error that the handle confirms.
  fileprivate func isDead(_ notices: [ClientNotice]) -> Bool {
    notices.contains { notice in
      guard case .error(let error) = notice else { return false }
      return error.isFatal
    } && handle.fatalError != nil
  }
}
