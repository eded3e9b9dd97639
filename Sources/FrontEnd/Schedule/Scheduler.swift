package import FanfareCore
package import Logging
import Metrics
import RDKafka
import ServiceLifecycle
import Synchronization

/// Puts scheduled sends onto the sends topic when their time has come. Every front end has one, and all that share a
/// store share the work.
///
/// A send is taken under a lease, produced under its own id and then marked as gone; while that cannot be done no more
/// are taken. So it goes once, unless whoever has taken it crashes between the last two, is out of reach of the store
/// for as long as the lease lasts, or is not told by Kafka whether it has it: then it is produced again, and the worker
/// and the ledger know it by its id. What is late is produced all the same, the oldest first: the worker settles what
/// has expired, and so it is accounted for.
///
/// What Kafka does not answer soon is not waited for: a partition out of reach does not hold up the sends of the
/// others.
package final class Scheduler: Service {
  /// The longest time between two looks at the store. A send is at most this late, as far as it depends on the
  /// scheduler: another front end may have scheduled it meanwhile.
  static let interval: Duration = .milliseconds(500)
  /// How long what was taken is nobody else's: longer than Kafka may take to answer.
  static let leaseDuration: Duration = .seconds(30)
  /// How long what Kafka has refused rests.
  static let rest: Duration = .seconds(1)
  /// The most sends taken at once.
  static let batch = 200
  /// The most sends that wait for Kafka's answer at the same time.
  static let maximumUnanswered = 2000

  /// What has become of what was taken, as far as the store has not been told, by the lease under which it was.
  private struct Results {
    var fired: [LeaseID: [ScheduledSend]] = [:]
    var refused: [LeaseID: [ScheduledSend]] = [:]
    /// How many Kafka has not answered.
    var unanswered = 0
    /// How many it has not accepted, as far as nobody has been told, and for what reason the last of them.
    var failures: (count: Int, reason: ProblemCode)?

    var areAllTold: Bool { fired.isEmpty && refused.isEmpty && unanswered == 0 }
  }

  private let store: any ScheduledSendStore
  private let intake: SendIntake
  private let clock: any WallClock
  private let patience: Duration
  private let logger: Logger
  private let metrics = SchedulerMetrics()
  private let results = Mutex(Results())

  /// Makes a scheduler over a store; nothing happens before `run()`. The sink and the store must outlive it. More is
  /// taken as soon as Kafka has answered for a batch, or has not done so for as long as `patience`.
  package init(
    store: any ScheduledSendStore, sink: any SendSink, topics: Topics,
    hasRoom: @escaping @Sendable () -> Bool = { true },
    clock: any WallClock = SystemWallClock(), patience: Duration = .milliseconds(100), logger: Logger
  ) {
    self.store = store
    intake = SendIntake(sink: sink, topic: topics.sends, hasRoom: hasRoom, schedule: store, clock: clock)
    self.clock = clock
    self.patience = patience
    self.logger = logger
  }

  /// Works until shutdown, and then until the store knows what has become of what was taken, or for as long as a lease
  /// lasts. To be called once.
  package func run() async throws {
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      let pause = await fireDue()
      do {
        // Only the pause is interrupted: what has been taken is marked.
        try await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
      } catch {
        break
      }
    }
    let deadline = ContinuousClock.now + Self.leaseDuration
    while ContinuousClock.now < deadline {
      do {
        try await tellResults()
      } catch {
        logger.warning("Waiting to say what has become of scheduled sends", metadata: [LogKeys.cause: "\(error)"])
      }
      guard results.withLock({ !$0.areAllTold }) else { return }
      do { try await Task.sleep(for: Self.interval) } catch { return }
    }
  }

  /// Fires what is due, a batch at most. Returns for how long nothing more is to be done. To be called by one task at a
  /// time.
  func fireDue() async -> Duration {
    do {
      try await tellResults()
      guard let next = try await store.nextDue() else { return Self.interval }
      let now = clock.now()
      guard next <= now else { return min(Self.interval, next - now) }
      let places = Self.maximumUnanswered - results.withLock(\.unanswered)
      guard intake.hasRoom(), places > 0 else { return Self.interval }
      let most = min(Self.batch, places)
      // One of its own: what is taken again after its lease is not mistaken for what was taken first.
      let lease = LeaseID.random()
      let due = try await store.takeDue(most, for: lease, until: now + Self.leaseDuration, at: now) {
        [logger] hub, send in
        logger.error(
          "A scheduled send cannot be read and is set aside",
          metadata: [LogKeys.send: "\(send)", LogKeys.hub: "\(hub)"])
      }
      // Others may be taking what is due.
      guard !due.isEmpty else { return Self.interval }
      await fire(due, of: lease)
      try await tellResults()
      return .zero
    } catch {
      logger.error("Scheduled sends cannot be looked after now", metadata: [LogKeys.cause: "\(error)"])
      return Self.interval
    }
  }

  /// Returns when it is known what has become of all of them, or when that takes too long.
  private func fire(_ due: [ScheduledSend], of lease: LeaseID) async {
    results.withLock { $0.unanswered += due.count }
    let (answers, continuation) = AsyncStream.makeStream(of: Void.self)
    // The oldest first, and each for itself: the answers for some may not come for long.
    for held in due {
      intake.produce(held.send) { [self] outcome in
        take(outcome, of: held, under: lease)
        continuation.yield()
      }
    }
    await withDiscardingTaskGroup { group in
      group.addTask { [patience] in
        // Cut short when there are all answers.
        try? await Task.sleep(for: patience)
        continuation.finish()
      }
      var unanswered = due.count
      for await _ in answers {
        unanswered -= 1
        if unanswered == 0 { break }
      }
      group.cancelAll()
    }
  }

  private func take(_ outcome: Result<Void, Refusal>, of held: ScheduledSend, under lease: LeaseID) {
    if case .success = outcome { metrics.fired(held.send.hub, after: clock.now() - held.due) }
    results.withLock { results in
      results.unanswered -= 1
      switch outcome {
      case .success: results.fired[lease, default: []].append(held)
      case .failure(let refusal):
        results.failures = ((results.failures?.count ?? 0) + 1, refusal.code)
        // Where Kafka may have it all the same, nobody may cancel it: it stays taken until the lease ends.
        if refusal.code != .outcomeUnknown { results.refused[lease, default: []].append(held) }
      }
    }
  }

  /// Tells the store what has become of what was taken, also when the lease has ended meanwhile: what nobody else has
  /// taken need not go again.
  private func tellResults() async throws {
    let (fired, refused, failures) = results.withLock { results in
      defer { results.failures = nil }
      return (results.fired, results.refused, results.failures)
    }
    if let failures {
      logger.warning(
        "Scheduled sends were not accepted by Kafka and are tried again",
        metadata: [LogKeys.count: "\(failures.count)", LogKeys.code: "\(failures.reason.rawValue)"])
    }
    let now = clock.now()
    for (lease, sends) in fired {
      try await store.finish(sends, of: lease, at: now)
      results.withLock { Self.forget(sends.count, of: lease, in: &$0.fired) }
    }
    for (lease, sends) in refused {
      try await store.release(sends, of: lease, until: now + Self.rest)
      results.withLock { Self.forget(sends.count, of: lease, in: &$0.refused) }
    }
  }

  /// The first so many have been told. Behind them more may have come meanwhile.
  private static func forget(_ count: Int, of lease: LeaseID, in sends: inout [LeaseID: [ScheduledSend]]) {
    sends[lease]?.removeFirst(count)
    if sends[lease]?.isEmpty == true { sends[lease] = nil }
  }
}
