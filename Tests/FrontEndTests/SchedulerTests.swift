import FanfareCore
import RDKafka
import Registry
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Producing scheduled sends when they are due.
@Suite(.timeLimit(.minutes(2))) struct SchedulerTests {
  private let temporary: TemporaryRegistry
  private let clock = ManualClock()
  private let sink: RecordingSink
  private let refusal: Mutable<RDKafkaError?>

  /// A thread-safe variable.
  private final class Mutable<Value: Sendable>: Sendable {
    private let held: Mutex<Value>
    init(_ value: Value) { held = Mutex(value) }
    var value: Value {
      get { held.withLock { $0 } }
      set { held.withLock { $0 = newValue } }
    }
  }

  init() throws {
    temporary = try TemporaryRegistry()
    let refusal = Mutable<RDKafkaError?>(nil)
    self.refusal = refusal
    sink = RecordingSink { _ in refusal.value }
  }

  private func scheduler(
    over store: (any ScheduledSendStore)? = nil, into sink: (any SendSink)? = nil,
    hasRoom: @escaping @Sendable () -> Bool = { true }, patience: Duration = .seconds(60)
  ) -> Scheduler {
    Scheduler(
      store: store ?? temporary.registry, sink: sink ?? self.sink, topics: Topics(prefix: "test"), hasRoom: hasRoom,
      clock: clock,
      patience: patience, logger: TestKafka.quietLogger)
  }

  /// A sink that answers one user's sends only after `open()`, like a partition without a leader.
  private final class SlowSink: SendSink {
    private let sink: RecordingSink
    private let user: String
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    init(over sink: RecordingSink, for user: String) { (self.sink, self.user) = (sink, user) }

    func open() {
      for answer in waiting.withLock({ waiting in
        defer { waiting = [] }
        return waiting
      }) { answer() }
    }

    func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] { await sink.send(records) }

    func submit(
      _ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void
    ) {
      guard record.key == Array(Tag.username(user).utf8) else { return sink.submit(record, completion: completion) }
      waiting.withLock { waiting in waiting.append { [sink] in sink.submit(record, completion: completion) } }
    }
  }

  /// Schedules sends at these delays from now.
  private func hold(_ delays: Duration..., for user: String = "bob") async throws -> [SendID] {
    let sends = delays.map { delay in
      SendRequest(
        id: .random(), sender: "alice", acceptedAt: clock.now() + delay, audience: .user(user),
        content: Content(message: Message(body: "b")), timeToLive: 60)
    }
    try await temporary.registry.hold(sends.map { ScheduledSend(send: $0, scheduledAt: clock.now()) }, at: clock.now())
    return sends.map(\.id)
  }

  @Test func sendIsProducedWhenDueAndNotBefore() async throws {
    let scheduler = scheduler()
    #expect(await scheduler.fireDue() == Scheduler.interval)
    let due = clock.now() + .milliseconds(900)
    let ids = try await hold(.milliseconds(900))
    #expect(await scheduler.fireDue() == Scheduler.interval)
    clock.advance(by: .milliseconds(600))
    #expect(await scheduler.fireDue() == .milliseconds(300), "until it is due")
    clock.advance(by: .milliseconds(299))
    #expect(await scheduler.fireDue() == .milliseconds(1))
    #expect(sink.isEmpty)
    clock.advance(by: .milliseconds(1))
    #expect(await scheduler.fireDue() == .zero)
    let sends = try sink.sends()
    #expect(
      sends.map(\.id) == ids && sends.map(\.acceptedAt) == [due], "its time to live counts from its scheduled time")
    #expect(sink.records.map { $0.key.map { String(decoding: $0, as: UTF8.self) } } == ["username:bob"])
    #expect(sink.records.map(\.topic) == ["test.sends"])
    clock.advance(by: .seconds(100))
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(sink.records.count == 1)
  }

  @Test func oldestSendsAreProducedFirstAfterAnOutage() async throws {
    let ids = try await hold(.seconds(3), .seconds(1), .seconds(2), .seconds(3600))
    clock.advance(by: .seconds(600))
    _ = await scheduler().fireDue()
    // Expired sends are produced too; the worker settles them.
    #expect(try sink.sends().map(\.id) == [ids[1], ids[2], ids[0]])
  }

  @Test func twoSchedulersProduceEachSendOnce() async throws {
    let second = try RegistryDatabase(temporary.configuration)
    var ids: Set<SendID> = []
    for number in 0..<450 { ids.formUnion(try await hold(.milliseconds(number))) }
    clock.advance(by: .seconds(1))
    let schedulers = [
      scheduler(),
      Scheduler(
        store: second, sink: sink, topics: Topics(prefix: "test"), clock: clock, logger: TestKafka.quietLogger),
    ]
    await withDiscardingTaskGroup { group in
      for scheduler in schedulers {
        group.addTask { while await scheduler.fireDue() == .zero {} }
      }
    }
    let fired = try sink.sends().map(\.id)
    #expect(fired.count == 450 && Set(fired) == ids)
  }

  @Test func sendRefusedByKafkaIsRetriedAfterBackoff() async throws {
    let ids = try await hold(.zero)
    let scheduler = scheduler()
    refusal.value = RDKafkaError(code: .queueFull, message: "full")
    #expect(await scheduler.fireDue() == .zero)
    #expect(await scheduler.fireDue() == Scheduler.interval, "during backoff")
    #expect(try await temporary.registry.scheduled(ids[0], hub: .default)?.state == .held)
    refusal.value = nil
    clock.advance(by: Scheduler.backoff)
    #expect(await scheduler.fireDue() == .zero)
    #expect(try sink.sends().map(\.id) == ids)
  }

  /// Otherwise the sends would be taken and produced again when the lease ends.
  @Test(arguments: [Duration.seconds(1), Scheduler.leaseDuration])
  func unstoredResultsAreStoredBeforeMoreSendsAreTaken(outage: Duration) async throws {
    let store = TroubledSchedule(over: temporary.registry)
    let scheduler = scheduler(over: store)
    let ids = try await hold(.zero)
    store.trouble = .cannotStoreResults
    #expect(await scheduler.fireDue() == Scheduler.interval)
    let more = try await hold(.zero)
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(try sink.sends().map(\.id) == ids)
    clock.advance(by: outage)
    store.trouble = .none
    #expect(await scheduler.fireDue() == .zero)
    #expect(try sink.sends().map(\.id) == ids + more)
    clock.advance(by: Scheduler.leaseDuration)
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(sink.records.count == 2)

    // Sends that Kafka refused can then be cancelled again.
    let refused = try await hold(.zero)
    refusal.value = RDKafkaError(code: .queueFull, message: "full")
    store.trouble = .cannotStoreResults
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(try await temporary.registry.scheduled(refused[0], hub: .default)?.state == .fired)
    store.trouble = .none
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(try await temporary.registry.scheduled(refused[0], hub: .default)?.state == .held)
  }

  @Test func shutdownWaitsUntilResultsAreStored() async throws {
    let services = Mutable<ServiceGroup?>(nil)
    let troubled = Mutable<TroubledSchedule?>(nil)
    let store = TroubledSchedule(over: temporary.registry) {
      await services.value?.triggerGracefulShutdown()
      troubled.value?.trouble = .none
    }
    (store.trouble, troubled.value) = (.cannotStoreResults, store)
    let ids = try await hold(.zero)
    let group = ServiceGroup(services: [scheduler(over: store)], logger: TestKafka.quietLogger)
    services.value = group
    // Returns at the end of the shutdown.
    try await group.run()
    (services.value, troubled.value) = (nil, nil)
    clock.advance(by: Scheduler.leaseDuration)
    #expect(await scheduler().fireDue() == Scheduler.interval)
    #expect(try sink.sends().map(\.id) == ids)
  }

  @Test func sendsTakenByOthersAreNotQueriedAgainAtOnce() async throws {
    let store = TroubledSchedule(over: temporary.registry)
    let scheduler = scheduler(over: store)
    let ids = try await hold(.zero)
    store.trouble = .takenByOthers
    #expect(await scheduler.fireDue() == Scheduler.interval)
    store.trouble = .none
    #expect(await scheduler.fireDue() == .zero)
    #expect(try sink.sends().map(\.id) == ids)
  }

  @Test func sendThatKafkaMayHaveCannotBeCancelled() async throws {
    let ids = try await hold(.zero)
    refusal.value = RDKafkaError(code: .possiblyPersisted, message: "late")
    _ = await scheduler().fireDue()
    #expect(try await temporary.registry.scheduled(ids[0], hub: .default)?.state == .fired)
    let held = try await temporary.registry.control(ids[0], hub: .default, to: .cancelled, at: clock.now())
    #expect(held?.state == .fired)
    // It is taken again when the lease has ended, with the same id.
    refusal.value = nil
    clock.advance(by: Scheduler.leaseDuration)
    _ = await scheduler().fireDue()
    #expect(try sink.sends().map(\.id) == ids)
  }

  /// Not even if Kafka definitely refused the second attempt.
  @Test func sendThatKafkaMayHaveFromAnEarlierAttemptCannotBeCancelled() async throws {
    let (ids, scheduler) = (try await hold(.zero), scheduler())
    refusal.value = RDKafkaError(code: .possiblyPersisted, message: "late")
    _ = await scheduler.fireDue()
    clock.advance(by: Scheduler.leaseDuration)
    refusal.value = RDKafkaError(code: .queueFull, message: "full")
    for _ in 0..<2 {
      #expect(await scheduler.fireDue() == .zero)
      let held = try await temporary.registry.control(ids[0], hub: .default, to: .cancelled, at: clock.now())
      #expect(held?.state == .fired)
      clock.advance(by: Scheduler.backoff)
    }
    refusal.value = nil
    #expect(await scheduler.fireDue() == .zero)
    #expect(try sink.sends().map(\.id) == ids)
  }

  @Test func unansweredSendsDoNotDelayOthers() async throws {
    let slow = SlowSink(over: sink, for: "bob")
    let scheduler = scheduler(into: slow, patience: .zero)
    let stuck = try await hold(.zero, .milliseconds(1))
    clock.advance(by: .seconds(1))
    #expect(await scheduler.fireDue() == .zero)
    let others = try await hold(.zero, .zero, for: "carol")
    #expect(await scheduler.fireDue() == .zero)
    #expect(Set(try sink.sends().map(\.id)) == Set(others))
    // Answered sends are stored at once.
    #expect(try await temporary.registry.nextDue() == clock.now() + Scheduler.leaseDuration)
    #expect(await scheduler.fireDue() == Scheduler.interval)

    // Taken again after the lease. The answers to the first attempt must not count for the second.
    clock.advance(by: Scheduler.leaseDuration)
    #expect(await scheduler.fireDue() == .zero)
    refusal.value = RDKafkaError(code: .notPersisted, message: "late")
    slow.open()
    #expect(await scheduler.fireDue() == Scheduler.interval)
    let held = try await temporary.registry.control(stuck[0], hub: .default, to: .cancelled, at: clock.now())
    #expect(held?.state == .fired)
    refusal.value = nil
    clock.advance(by: Scheduler.leaseDuration)
    #expect(await scheduler.fireDue() == .zero)
    slow.open()
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(try await temporary.registry.nextDue() == nil)
    #expect(try sink.sends().suffix(2).map(\.id) == stuck)
  }

  @Test func sendsOfACrashedSchedulerAreTakenAfterTheLease() async throws {
    let ids = try await hold(.zero)
    let now = clock.now()
    let taken = try await temporary.registry.takeDue(9, for: .random(), until: now + Scheduler.leaseDuration, at: now)
    #expect(taken.map(\.send.id) == ids)
    let scheduler = scheduler()
    #expect(await scheduler.fireDue() == Scheduler.interval)
    clock.advance(by: Scheduler.leaseDuration)
    #expect(await scheduler.fireDue() == .zero)
    #expect(try sink.sends().map(\.id) == ids)
  }

  @Test func schedulerWaitsForAFullClusterAndABrokenStore() async throws {
    let ids = try await hold(.zero)
    let isFull = Mutable(true)
    let scheduler = scheduler(hasRoom: { !isFull.value })
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(try await temporary.registry.scheduled(ids[0], hub: .default)?.state == .held)
    temporary.registry.close()
    isFull.value = false
    #expect(await scheduler.fireDue() == Scheduler.interval)
    #expect(sink.isEmpty)
  }

  @Test func shutdownEndsTheScheduler() async throws {
    let group = ServiceGroup(services: [scheduler()], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await group.run() }
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }
}
