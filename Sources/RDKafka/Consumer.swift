package import Logging
import Synchronization

/// Reads topics as a member of a cooperative-sticky group.
/// Rebalances are announced before they take effect.
///
/// Create it, keep ``run()`` running, read ``events``, and ``grant(records:)`` credit. No record comes without credit,
/// so unread records stay at the broker. Rebalances and errors come regardless. Offsets are stored by the application.
package final class Consumer: Sendable {
  /// The events in order, for one reader.
  /// Ends with the consumer. It buffers at most the records of the granted credit.
  package let events: AsyncStream<ConsumerEvent>

  private let configuration: ConsumerConfiguration
  private let logger: Logger
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let wakeUp: WakeUp
  private let credit = Credit()
  private let partitionCredits = PartitionCredits()
  private let isPaused = Atomic(false)
  private let progress = Progress()
  private let commits = PendingCommits()
  /// nil for an application that does not commit by itself.
  private let joinState: JoinState?
  /// nil likewise, and where none are kept.
  private let interimOffsets: InterimOffsets?
  private let state: Mutex<State>
  private let ended = OneShot()

  private struct State {
    var phase = Phase.created
    /// Nil once the consumer has ended.
    var handle: ConsumerHandle?
  }

  private enum Phase {
    case created, running, closing, closed
  }

  /// Creates a consumer without contacting a broker.
  ///
  /// - Throws: `configuration`, naming the key.
  package init(configuration: ConsumerConfiguration, logger: Logger) throws(RDKafkaError) {
    var logger = logger
    logger[metadataKey: LogKeys.client] = "\(configuration.client.clientID)"
    logger[metadataKey: LogKeys.group] = "\(configuration.groupID)"
    Workarounds.check(configuration.client, logger: logger)
    self.configuration = configuration
    self.logger = logger
    let commitsItself = configuration.autoCommitInterval == nil
    joinState = commitsItself ? JoinState() : nil
    interimOffsets =
      commitsItself && configuration.keepsInterimOffsets ? try InterimOffsets(of: configuration, logger: logger) : nil
    let handle = try ConsumerHandle(
      properties: configuration.properties, pausableTopics: configuration.pausableTopics, joinState: joinState)
    wakeUp = handle.wakeUp
    // Bounded by the credit and by the rate limit of errors.
    (events, continuation) = AsyncStream.makeStream(of: ConsumerEvent.self)
    state = Mutex(State(handle: handle))
  }

  /// Adds credit, or reduces it with a negative number; records in flight still come.
  /// Cheap; callable from any thread.
  package func grant(records: Int) {
    if credit.grant(records) { wakeUp.signal() }
  }

  /// Adds credit of an assigned partition where each has its own; see ``ConsumerConfiguration/partitionCredit``.
  /// Has no effect for other partitions. Cheap; callable from any thread.
  package func grant(records: Int, of partition: TopicPartition) {
    if partitionCredits[partition]?.grant(records) == true { wakeUp.signal() }
  }

  /// Pauses or resumes the topics in ``ConsumerConfiguration/pausableTopics``.
  /// Records in flight may still come. Cheap; callable from any thread.
  package func setPaused(_ isPaused: Bool) {
    self.isPaused.store(isPaused, ordering: .sequentiallyConsistent)
    wakeUp.signal()
  }

  /// Reads until ``close()`` or cancellation.
  /// Returns after the member has left the group or the time for that is over.
  package func run() async {
    let handle = state.withLock { state -> ConsumerHandle? in
      guard state.phase == .created else { return nil }
      state.phase = .running
      return state.handle
    }
    if let handle {
      do {
        try DedicatedThread.start(name: "rdk-consumer") { [self] in
          var loop = ConsumerLoop(
            handle: handle, configuration: configuration, logger: logger, continuation: continuation, credit: credit,
            partitionCredits: partitionCredits, progress: progress, commits: commits,
            reachability: Reachability(of: configuration.client, logger: logger))
          loop.run(
            isClosing: { self.state.withLock { $0.phase == .closing } },
            isPaused: { self.isPaused.load(ordering: .sequentiallyConsistent) })
          end()
        }
      } catch {
        continuation.yield(.failed(error))
        end()
      }
    }
    await withTaskCancellationHandler {
      await ended.wait()
    } onCancel: {
      beginClosing()
    }
  }

  /// Leaves the group: the application completes the last revocation, stored offsets are committed,
  /// and the stream ends.
  ///
  /// Bounded by ``ConsumerConfiguration/closeTimeout``, after a possible ``ClusterProfile/rebalanceDelay``.
  package func close() async {
    beginClosing()
    await ended.wait()
  }

  /// Stores offsets.
  /// They are committed within ``ConsumerConfiguration/autoCommitInterval`` and at a revocation.
  ///
  /// Callable from any thread. ``PartitionOffset/metadata`` is ignored.
  ///
  /// - Throws: `notAssigned` if a partition is not assigned any more (the others are stored), `closed`.
  package func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    guard !offsets.isEmpty else { return }
    try openHandle().store(offsets)
    progress.stored(offsets)
  }

  /// Commits offsets with their metadata and returns when the broker has them.
  ///
  /// Offsets of partitions that have been given back are left out, without an error. A coordinator takes positions
  /// of any partition from any member: an application that has stood still for longer than the time for a rebalance
  /// would put its old position over that of the next owner.
  ///
  /// Bounded by ``ConsumerConfiguration/commitTimeout``. With ``ConsumerConfiguration/keepsInterimOffsets``, before this
  /// throws `rebalancing`, `timedOut` or `unreachable`, it keeps the offsets for ``kept(_:)``. That can take half as long
  /// again, and twice as long if ``committed(_:)`` has not answered for a partition; so go on committing while the group
  /// is rebalancing.
  ///
  /// - Throws: `rebalancing`, `timedOut`, `unreachable`, `messageTooLarge` for too much metadata, `closed`.
  package func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let offsets = progress.withoutGivenBack(offsets)
    guard !offsets.isEmpty else {
      _ = try openHandle()
      return
    }
    if let interimOffsets {
      try await interimOffsets.commit(offsets, to: self)
    } else {
      try await commitToGroup(offsets)
    }
    progress.stored(offsets)
  }

  /// The id of the cluster; nil if it has none or does not answer within ``ConsumerConfiguration/commitTimeout``.
  package func clusterID() async throws(RDKafkaError) -> String? {
    let handle = try openHandle().handle
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    return try await BlockingCalls.run { () throws(RDKafkaError) in handle.clusterID(timeoutMilliseconds: timeout) }
  }

  /// The group's committed offsets with metadata; partitions without one are omitted.
  package func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    guard let interimOffsets else { return try await committedByGroup(partitions) }
    return try await interimOffsets.committed(partitions, by: self)
  }

  /// The offsets that an earlier owner could not commit to the group, with metadata; they continue the offsets that
  /// ``committed(_:)`` has returned, so call that before.
  package func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await interimOffsets?.kept(partitions) ?? []
  }

  /// The first offset of each partition.
  ///
  /// - Throws: `timedOut` after ``ConsumerConfiguration/commitTimeout``, and the brokers' error for an unknown
  ///   partition.
  package func firstOffsets(of partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ends(.first, of: partitions)
  }

  /// The offset of the next record of each partition. Throws as `firstOffsets` does.
  package func lastOffsets(of partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ends(.next, of: partitions)
  }

  private func ends(_ end: Handle.End, of partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]
  {
    let handle = try openHandle().handle
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    return try await BlockingCalls.run { () throws(RDKafkaError) in
      try handle.ends(end, of: partitions, timeoutMilliseconds: timeout).map { end in
        PartitionOffset(partition: end.partition, offset: max(0, end.offset))
      }
    }
  }

  /// The lag of each assigned partition as of the last fetch.
  /// Sends no request. Partitions that have not been fetched are omitted.
  package func lag() -> [TopicPartition: Int64] {
    guard let handle = state.withLock({ $0.handle })?.handle else { return [:] }
    return progress.lag(watermarks: handle.cachedWatermarks)
  }

  private var closedError: RDKafkaError {
    RDKafkaError(code: .closed, message: "the consumer is closed")
  }

  private func openHandle() throws(RDKafkaError) -> ConsumerHandle {
    guard let handle = state.withLock({ $0.handle }) else { throw closedError }
    return handle
  }

  private func beginClosing() {
    let wasCreated = state.withLock { state in
      switch state.phase {
      case .created:
        state.phase = .closing
        return true
      case .running:
        state.phase = .closing
        return false
      case .closing, .closed: return false
      }
    }
    if wasCreated { end() } else { wakeUp.signal() }
  }

  /// Releases everything. The handle is destroyed on a thread of its own.
  private func end() {
    state.withLock { state in
      state.phase = .closed
      state.handle = nil
    }
    commits.endAll(closedError)
    continuation.finish()
    ended.fire()
  }
}

extension Consumer: GroupRequests {
  package func commitToGroup(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let handle = try openHandle()
    guard joinState?.isJoining != true else {
      guard !handle.hasLostAssignment else { throw .lostAssignment }
      throw RDKafkaError(code: .rebalancing, message: "commit: the member is joining its group again")
    }
    let deadline = ContinuousClock.now + configuration.commitTimeout
    let result: Result<Void, RDKafkaError> = await withCheckedContinuation { continuation in
      let number = commits.add(continuation, deadline: deadline)
      do throws(RDKafkaError) {
        guard let number else { throw closedError }
        try handle.commit(offsets, number: number)
      } catch {
        if let number { commits.end(number, .failure(error)) } else { continuation.resume(returning: .failure(error)) }
      }
    }
    try result.get()
  }

  package func committedByGroup(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    let handle = try openHandle().handle
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    return try await BlockingCalls.run { () throws(RDKafkaError) in
      try handle.committed(partitions, timeoutMilliseconds: timeout)
    }
  }
}
