import CoreMetrics
package import FanfareCore
package import Logging
import Metrics
import RDKafka
import ServiceLifecycle
import Synchronization

/// Produces scheduled sends when they are due.
/// Every front end runs one; all that share a store share the work.
///
/// A send is taken under a lease, produced under its own id, and then marked as fired in the store. While sends cannot
/// be marked, no more are taken. So a send is produced once, unless the scheduler crashes before it is marked, cannot
/// reach the store during the lease, or gets no answer from Kafka. Then it is produced again, and the worker and the
/// ledger recognise its id. Late sends are produced too, the oldest first: the worker settles those that have expired.
///
/// The scheduler does not wait for slow answers of Kafka: an unreachable partition does not delay the others.
package final class Scheduler: Service {
  /// The longest pause between two queries of the store.
  /// Another front end may schedule a send during the pause; the scheduler fires it at most this late.
  static let interval: Duration = .milliseconds(500)
  /// The duration of a lease; longer than Kafka may take to answer.
  static let leaseDuration: Duration = .seconds(30)
  /// The backoff of sends that Kafka refused.
  static let backoff: Duration = .seconds(1)
  /// The most sends taken at once.
  private static let batch = 200
  /// The most sends in flight to Kafka.
  private static let maximumInFlight = 2000

  /// Results that are not stored yet, by lease.
  private struct Results {
    var fired: [LeaseID: [ScheduledSend]] = [:]
    var refused: [LeaseID: [ScheduledSend]] = [:]
    /// The number of sends that Kafka has not answered.
    var inFlight = 0
    /// The number of failures that are not logged yet, and the reason of the last one.
    var failures: (count: Int, reason: ProblemCode)?

    var isEmpty: Bool { fired.isEmpty && refused.isEmpty && inFlight == 0 }
  }

  private let store: any ScheduledSendStore
  private let intake: SendIntake
  private let clock: any WallClock
  private let delays: any DelayClock
  private let makeLease: @Sendable () -> LeaseID
  private let patience: Duration
  private let logger: Logger
  private let metrics = SchedulerMetrics()
  private let results = Mutex(Results())

  /// Creates a scheduler. The sink and the store must outlive it.
  ///
  /// The next batch is taken when Kafka has answered for the previous one, or after `patience`.
  package init(
    store: any ScheduledSendStore, sink: any SendSink, topics: Topics,
    hasRoom: @escaping @Sendable () -> Bool = { true },
    clock: any WallClock = SystemWallClock(), delays: any DelayClock = SystemDelayClock(),
    lease: @escaping @Sendable () -> LeaseID = { .random() }, patience: Duration = .milliseconds(100), logger: Logger
  ) {
    self.store = store
    intake = SendIntake(sink: sink, topics: topics, hasRoom: hasRoom, schedule: store, clock: clock)
    (self.clock, self.delays, makeLease) = (clock, delays, lease)
    self.patience = patience
    self.logger = logger
  }

  /// Runs until shutdown, and then until all results are stored, at most for the duration of a lease.
  /// Call it once.
  package func run() async throws {
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      // Only the pause is interrupted, so that taken sends are marked.
      await pause(for: await fireDue())
    }
    let deadline = delays.uptime() + Self.leaseDuration.milliseconds
    while delays.uptime() < deadline {
      do {
        try await storeResults()
      } catch {
        logger.warning(
          "Results of scheduled sends could not be stored; trying again", metadata: [LogKeys.cause: "\(error)"])
      }
      guard results.withLock({ !$0.isEmpty }) else { return }
      do { try await delays.sleep(for: Self.interval) } catch { return }
    }
  }

  /// Returns after that time, or when the scheduler is to end.
  private func pause(for time: Duration) async {
    let (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self)
    // Not `cancelWhenGracefulShutdown`: it starts tasks that run on no executor of the caller's.
    await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        group.addTask { [delays] in
          // Cancelled when the scheduler is to end.
          try? await delays.sleep(for: time)
          wakeUp.finish()
        }
        for await _ in wakeUps {}
        group.cancelAll()
      }
    } onGracefulShutdown: {
      wakeUp.finish()
    }
  }

  /// Produces due sends, at most one batch.
  /// Returns the time until the next call. Call it from one task at a time.
  func fireDue() async -> Duration {
    do {
      try await storeResults()
      guard let next = try await store.nextDue() else { return Self.interval }
      let now = clock.now()
      guard next <= now else { return min(Self.interval, next - now) }
      let room = Self.maximumInFlight - results.withLock(\.inFlight)
      guard intake.hasRoom(), room > 0 else { return Self.interval }
      let most = min(Self.batch, room)
      // A new one for every batch: a send that is taken again after its lease ended must not be mixed up with the first
      // attempt.
      let lease = makeLease()
      let due = try await store.takeDue(most, for: lease, until: now + Self.leaseDuration, at: now) {
        [logger] hub, send in
        logger.error(
          "Scheduled send could not be decoded; it will not be produced",
          metadata: [LogKeys.send: "\(send)", LogKeys.hub: "\(hub)"])
      }
      // Other schedulers may be taking the due sends.
      guard !due.isEmpty else { return Self.interval }
      await fire(due, of: lease)
      try await storeResults()
      return .zero
    } catch {
      logger.error("Schedule unavailable; trying again", metadata: [LogKeys.cause: "\(error)"])
      return Self.interval
    }
  }

  /// Produces sends. Returns when all are answered, or after `patience`.
  private func fire(_ due: [ScheduledSend], of lease: LeaseID) async {
    results.withLock { $0.inFlight += due.count }
    let (answers, continuation) = AsyncStream.makeStream(of: Void.self)
    // The oldest first, each on its own: some may be answered late.
    for held in due {
      intake.produce(held.send) { [self] outcome in
        record(outcome, of: held, under: lease)
        continuation.yield()
      }
    }
    await withDiscardingTaskGroup { group in
      group.addTask { [delays, patience] in
        // Cancelled when all are answered.
        try? await delays.sleep(for: patience)
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

  private func record(_ outcome: Result<Void, Refusal>, of held: ScheduledSend, under lease: LeaseID) {
    if case .success = outcome { metrics.fired(held.send.hub, after: clock.now() - held.due) }
    results.withLock { results in
      results.inFlight -= 1
      switch outcome {
      case .success: results.fired[lease, default: []].append(held)
      case .failure(let refusal):
        results.failures = ((results.failures?.count ?? 0) + 1, refusal.code)
        // If Kafka may have it, it must not be cancelled: it stays taken until the lease ends.
        if refusal.code != .outcomeUnknown { results.refused[lease, default: []].append(held) }
      }
    }
  }

  /// Stores the results, even of leases that have ended.
  /// A send that was not taken again need not be produced again.
  private func storeResults() async throws {
    let (fired, refused, failures) = results.withLock { results in
      defer { results.failures = nil }
      return (results.fired, results.refused, results.failures)
    }
    if let failures {
      logger.warning(
        "Kafka did not accept scheduled sends; trying again",
        metadata: [LogKeys.count: "\(failures.count)", LogKeys.code: "\(failures.reason.rawValue)"])
    }
    let now = clock.now()
    for (lease, sends) in fired {
      try await store.finish(sends, of: lease, at: now)
      results.withLock { Self.forget(sends.count, of: lease, in: &$0.fired) }
    }
    for (lease, sends) in refused {
      try await store.release(sends, of: lease, until: now + Self.backoff)
      results.withLock { Self.forget(sends.count, of: lease, in: &$0.refused) }
    }
  }

  /// Removes the first `count` results, which are stored. More may have been appended meanwhile.
  private static func forget(_ count: Int, of lease: LeaseID, in sends: inout [LeaseID: [ScheduledSend]]) {
    sends[lease]?.removeFirst(count)
    if sends[lease]?.isEmpty == true { sends[lease] = nil }
  }
}

/// Metrics of scheduled sends, per hub.
private final class SchedulerMetrics: Sendable {
  private struct Hub {
    let accepted: Counter
    let lateness: Timer

    init(_ hub: HubName) {
      accepted = Counter(label: "fanfare_sends_accepted_total", dimensions: [("hub", hub.rawValue)])
      lateness = Timer(label: "fanfare_schedule_lateness_seconds", dimensions: [("hub", hub.rawValue)])
    }
  }

  private let hubs = Mutex<[HubName: Hub]>([:])

  /// Counts a send that Kafka acknowledged this long after its scheduled time.
  func fired(_ hub: HubName, after lateness: Duration) {
    hubs.withLock { hubs in
      let entry = hubs[hub] ?? Hub(hub)
      hubs[hub] = entry
      entry.accepted.increment()
      entry.lateness.record(duration: max(.zero, lateness))
    }
  }
}
