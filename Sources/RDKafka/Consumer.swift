package import Logging
import Synchronization

/// Reads topics as a member of a group: cooperative-sticky, offsets stored by hand, every rebalance announced before it
/// takes effect.
///
/// Make it, keep ``run()`` running, read ``events``, and ``grant(records:)`` as many records as there is room for: none
/// come without credit, so a backlog stays at the broker. Rebalances and errors come regardless.
package final class Consumer: Sendable {
  /// What happens, in order, for one reader. Holds at most the records for which credit was granted. Ends when the
  /// consumer does.
  package let events: AsyncStream<ConsumerEvent>

  private let configuration: ConsumerConfiguration
  private let logger: Logger
  private let continuation: AsyncStream<ConsumerEvent>.Continuation
  private let wakeUp: WakeUp
  private let credit = Credit()
  private let isPaused = Atomic(false)
  private let progress = Progress()
  private let commits = PendingCommits()
  private let membership = Membership()
  /// Where the positions go that the group refuses; nil where a cluster needs none, and for an application that does
  /// not commit by itself.
  private let refuge: Refuge?
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

  /// Makes a consumer; contacts no broker yet.
  ///
  /// - Throws: `configuration`, naming the key.
  package init(configuration: ConsumerConfiguration, logger: Logger) throws(RDKafkaError) {
    var logger = logger
    logger[metadataKey: LogKeys.client] = "\(configuration.client.clientID)"
    logger[metadataKey: LogKeys.group] = "\(configuration.groupID)"
    Librdkafka.check(configuration.client, logger: logger)
    self.configuration = configuration
    self.logger = logger
    let handle = try ConsumerHandle(properties: configuration.properties, pausableTopics: configuration.pausableTopics)
    refuge =
      !configuration.client.profile.acceptsCommitsDuringRebalance && configuration.autoCommitInterval == nil
      ? try Refuge(of: configuration) : nil
    wakeUp = handle.wakeUp
    // Bounded by the credit for records, and for errors by how often each is reported.
    (events, continuation) = AsyncStream.makeStream(of: ConsumerEvent.self)
    state = Mutex(State(handle: handle))
  }

  /// Adds room for this many records, or takes it back where the number is negative; what is on its way then still
  /// comes. From any thread; cheap.
  package func grant(records: Int) {
    if credit.grant(records) { wakeUp.signal() }
  }

  /// Keeps back, from now on or no more, the records of ``ConsumerConfiguration/pausableTopics``; those of the other
  /// topics come as before. Some that were on their way may still come. From any thread; cheap.
  package func setPaused(_ isPaused: Bool) {
    self.isPaused.store(isPaused, ordering: .sequentiallyConsistent)
    wakeUp.signal()
  }

  /// Reads until ``close()``; when cancelled, closes. Returns when the group has been left or the time for it is over.
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
            progress: progress, commits: commits, membership: membership)
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

  /// Leaves the group in order: the application sees the last revocation and completes it, what is stored is committed,
  /// the stream ends. Bounded by ``ConsumerConfiguration/closeTimeout``; on the embedded cluster it first lets a
  /// rebalance of the others come to rest.
  package func close() async {
    beginClosing()
    await ended.wait()
  }

  /// Marks how far the application has come; committed within ``ConsumerConfiguration/autoCommitInterval``, and when
  /// the partition is given back. From any thread. ``PartitionOffset/metadata`` is not kept.
  ///
  /// - Throws: `notAssigned` if a partition does not belong to this consumer any more (the others are stored),
  ///   `closed`.
  package func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    guard !offsets.isEmpty else { return }
    try openHandle().store(offsets)
    progress.stored(offsets)
  }

  /// Commits offsets with their metadata now and returns when the broker has them. Bounded by
  /// ``ConsumerConfiguration/commitTimeout``. What a group on the embedded cluster refuses is kept for ``kept(_:)``
  /// before this throws; then it can take twice as long. Whether the partitions are this consumer's is not looked at.
  ///
  /// - Throws: `rebalancing`, `timedOut`, `unreachable`, `messageTooLarge` if the broker does not take that much
  ///   metadata, `closed`.
  package func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    guard !offsets.isEmpty else { return }
    do {
      try await commitToGroup(offsets)
    } catch {
      if let refuge {
        do {
          try await refuge.keep(offsets)
        } catch {
          logger.warning("Refused positions were not kept", metadata: [LogKeys.error: "\(error)"])
        }
      }
      throw error
    }
    progress.stored(offsets)
  }

  private func commitToGroup(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let handle = try openHandle()
    guard !membership.isJoining else {
      throw RDKafkaError(code: .rebalancing, message: "commit: the member is joining its group again")
    }
    let deadline = ContinuousClock.now + configuration.commitTimeout
    let result: Result<Void, RDKafkaError> = await withCheckedContinuation { continuation in
      let ticket = commits.add(continuation, deadline: deadline)
      do throws(RDKafkaError) {
        guard let ticket else { throw closedError }
        try handle.commit(offsets, ticket: ticket)
      } catch {
        if let ticket { commits.end(ticket, .failure(error)) } else { continuation.resume(returning: .failure(error)) }
      }
    }
    try result.get()
  }

  /// The group's committed offsets, with metadata; partitions without one are left out.
  package func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    let handle = try openHandle().handle
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    return try await BlockingCalls.run { () throws(RDKafkaError) in
      try handle.committed(partitions, timeoutMilliseconds: timeout)
    }
  }

  /// What the group has refused of these partitions most recently, with metadata, where that was kept: on the embedded
  /// cluster, for an application that commits by itself. It may be older than what is committed.
  package func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await refuge?.kept(partitions) ?? []
  }

  /// The first offset of each of these partitions, as the brokers have them now. Throws `timedOut` after the
  /// `commitTimeout`, and what the brokers say where they do not know one of them.
  package func firstOffsets(of partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    let handle = try openHandle().handle
    let timeout = configuration.commitTimeout.timeoutMilliseconds
    return try await BlockingCalls.run { () throws(RDKafkaError) in
      try handle.ends(.first, of: partitions, timeoutMilliseconds: timeout).map { end in
        PartitionOffset(partition: end.partition, offset: max(0, end.offset))
      }
    }
  }

  /// Records between what is stored and the end of each assigned partition, as of the last fetch; asks nobody.
  /// Partitions that have not been fetched from yet are left out.
  package func lag() -> [TopicPartition: Int64] {
    guard let handle = state.withLock({ $0.handle })?.handle else { return [:] }
    var lag: [TopicPartition: Int64] = [:]
    for (partition, position) in progress.positions {
      guard let (low, high) = handle.cachedWatermarks(partition) else { continue }
      lag[partition] = max(0, high - max(position ?? low, low))
    }
    return lag
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

  /// Lets go of everything; the handle is destroyed on a thread of its own.
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
