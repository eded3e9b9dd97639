import EmbeddedKafka
import FanfareCore
import GRDB
import Logging
import Metrics
import RDKafka
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import Ledger

/// Runs whole ledgers on a cluster that tests share, with topics of their own.
@Suite(.timeLimit(.minutes(2))) struct LedgerTests {
  private let kafka: TestKafka
  private let topics: Topics
  private let directory: TemporaryDirectory
  private let sends = (0..<60).map { _ in SendID.timeOrdered(at: .start) }

  init() async throws {
    kafka = try TestKafka.shared()
    topics = Topics(prefix: kafka.group())
    directory = try TemporaryDirectory()
    let specifications = [topics.sends, topics.status].map { TopicSpecification(name: $0, partitions: 2) }
    if let cluster = kafka.cluster {
      try cluster.createTopics(specifications)
    } else {
      let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
      _ = try await administrator.createTopics(specifications)
    }
  }

  private func configuration(group: String) -> LedgerConfiguration {
    var configuration = LedgerConfiguration(client: kafka.client("ledger"), topics: topics, group: group)
    configuration.consumer.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
    configuration.batchRecords = 50
    configuration.windowRecords = 100
    configuration.backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(10))
    return configuration
  }

  /// Runs a ledger until it has recorded `count` records, then shuts it down gracefully. Returns the number of records
  /// that it has recorded.
  private func run(
    _ store: any LedgerStore, group: String, until count: Int, deadline: Duration? = nil,
    clock: any WallClock = SystemWallClock(), logger: Logger = TestKafka.quietLogger,
    while body: (PatientLedger) async throws -> Void = { _ in }
  ) async throws -> Int {
    var configuration = configuration(group: group)
    if let deadline { configuration.consumer.rebalanceDeadline = deadline }
    let (recorded, counter) = AsyncStream.makeStream(of: Int.self)
    let total = Mutex(0)
    let ledger = try PatientLedger(
      configuration: configuration, store: store, clock: clock, logger: logger,
      onRecorded: { batch in
        counter.yield(
          total.withLock { total in
            total += batch.records
            return total
          })
      })
    let services = ServiceGroup(services: [ledger], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await services.run() }
      try await body(ledger)
      for await total in recorded where total >= count { break }
      #expect(ledger.readinessProblem == nil)
      await services.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
    return total.withLock { $0 }
  }

  private func produce(_ samples: [Sample]) async throws {
    let records = samples.map { ProducerRecord(topic: $0.topic(topics), key: nil, value: $0.value) }
    try await produce(records)
  }

  private func produce(_ records: [ProducerRecord]) async throws {
    try await kafka.withProducer { producer in
      for result in await producer.send(records) { _ = try result.get() }
    }
  }

  /// All sends of the test, and the status records of all but the last ten.
  private var history: [Sample] {
    sends.map { Sample.send(Samples.send($0)) }
      + sends.dropLast(10).map { .status(Samples.status($0, devices: [Samples.device()])) }
  }

  @Test func sendsAndStatusTopicsAreJoined() async throws {
    // Status records first, so that some are read before their sends.
    try await produce(history.reversed())
    try await produce([
      ProducerRecord(topic: topics.sends, key: nil, value: Array("not a record".utf8)),
      ProducerRecord(topic: topics.status, key: nil, value: Samples.send(.random()).encoded()),
      ProducerRecord(topic: topics.status, key: nil, value: []),
    ])
    let store = try SQLiteLedger(directory.settings())
    let group = kafka.group()
    #expect(try await run(store, group: group, until: history.count + 3) == history.count + 3)
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.inFlight, totals.unannounced) == (60, 50, 10, 0))
    #expect(totals.devices == [.apns: [.delivered: 50]])
    #expect(try await store.report(of: sends[0], hub: .default)?.state == .settled)

    // The offsets are committed: another run reads only new records.
    try await produce(sends.suffix(10).map { .status(Samples.status($0, state: .noTarget)) })
    #expect(try await run(store, group: group, until: 10) == 10)
    #expect(try await store.totals(hub: .default).inFlight == 0)
  }

  @Test func crashBeforeTheCommitChangesNoCounts() async throws {
    try await produce(history)
    let store = try SQLiteLedger(directory.settings())
    _ = try await run(store, group: kafka.group(), until: history.count)
    let totals = try await store.totals(hub: .default)
    // Another group has no committed offsets: the same file receives all records again.
    #expect(try await run(store, group: kafka.group(), until: history.count) == history.count)
    #expect(try await store.totals(hub: .default) == totals)
    #expect(totals.duplicates == 0)
    #expect(totals.accepted == 60)
  }

  @Test func newFileIsFilledFromTheLogDespiteCommittedOffsets() async throws {
    try await produce(history)
    let group = kafka.group()
    let first = try SQLiteLedger(directory.settings("first"))
    _ = try await run(first, group: group, until: history.count)
    let second = try SQLiteLedger(directory.settings("second"))
    #expect(try await run(second, group: group, until: history.count) == history.count)
    #expect(try await second.totals(hub: .default) == (try await first.totals(hub: .default)))
  }

  @Test func lateRewindIsRepeatedByANewLedger() async throws {
    try await produce(history)
    let group = kafka.group()
    let first = try SQLiteLedger(directory.settings("first"))
    _ = try await run(first, group: group, until: history.count)
    // The second call is made for the assignment. It returns after the consumer has begun to read from the group's
    // offsets.
    let second = FaultyStore(try SQLiteLedger(directory.settings("second")), delayedPositions: 2)
    let log = LogRecorder()
    let count = try await run(second, group: group, until: history.count, deadline: .seconds(1), logger: log.logger) {
      _ in
      while log.count(of: "Rebalance takes effect before the application has completed it") == 0 {
        await Task.yield()
      }
      second.returnPositions()
    }
    #expect(count == history.count)
    #expect(try await second.totals(hub: .default) == (try await first.totals(hub: .default)))
  }

  @Test func lagIsReportedFromTheFirstRecordUntilTheLedgerEnds() async throws {
    try await produce(history)
    let store = FaultyStore(try SQLiteLedger(directory.settings()))
    store.refusesWrites = true
    let gauges = GaugeValues()
    let clock = ManualClock(at: SystemWallClock().now() + .seconds(86_400))
    try await withMetricsFactory(gauges) {
      _ = try await run(store, group: kafka.group(), until: history.count, clock: clock) { _ in
        while (gauges.values(of: "fanfare_consumer_lag_seconds").max() ?? 0) < 86_000 { await Task.yield() }
        #expect(gauges.values(of: "fanfare_consumer_lag_records").contains { $0 > 0 })
        store.refusesWrites = false
      }
    }
    #expect(gauges.values(of: "fanfare_consumer_lag_seconds").isEmpty)
    #expect(gauges.values(of: "fanfare_consumer_lag_records").isEmpty)
  }

  @Test func failedWritesAreRetried() async throws {
    try await produce(history)
    var settings = directory.settings()
    settings.busyTimeout = .milliseconds(1)
    let store = try SQLiteLedger(settings)
    var lockable = Configuration()
    lockable.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: settings.path, configuration: lockable)
    let (locked, release) = AsyncStream.makeStream(of: Void.self)
    try await withThrowingTaskGroup { tasks in
      try await other.writeWithoutTransaction { db in try db.execute(sql: "BEGIN IMMEDIATE") }
      tasks.addTask {
        for await _ in locked { break }
        try await other.writeWithoutTransaction { db in try db.execute(sql: "ROLLBACK") }
      }
      let count = try await run(store, group: kafka.group(), until: history.count) { ledger in
        while ledger.readinessProblem?.contains("SQLite error") != true { await Task.yield() }
        release.yield()
      }
      #expect(count == history.count)
      try await tasks.waitForAll()
    }
    #expect(try await store.totals(hub: .default).settled == 50)
  }

  @Test func positionsNeverPassPendingWrites() async throws {
    // Records that arrive together form one batch; the second half arrives later and forms another.
    let samples = history
    try await produce(Array(samples.prefix(30)))
    let store = FaultyStore(try SQLiteLedger(directory.settings()), holdsFirstBatch: true)
    let count = try await run(store, group: kafka.group(), until: samples.count) { _ in
      while !store.hasBegunWriting { await Task.yield() }
      try await produce(Array(samples.dropFirst(30)))
    }
    #expect(count == samples.count)
    #expect(store.prematurePositions == 0)
    #expect(try await store.totals(hub: .default).settled == 50)
  }

  @Test func removalRunsBesideWritesAndIsCancelledAtTheEnd() async throws {
    try await produce(history)
    let store = FaultyStore(try SQLiteLedger(directory.settings()), removalNeverEnds: true)
    let count = try await run(store, group: kafka.group(), until: history.count) { _ in
      while !store.isRemovingExpired { await Task.yield() }
    }
    #expect(count == history.count)
    #expect(!store.isRemovingExpired)
  }

  @Test func ledgerWaitsForItsStoreAtTheStart() async throws {
    try await produce(history)
    let store = FaultyStore(try SQLiteLedger(directory.settings()))
    store.isUnavailable = true
    let count = try await run(store, group: kafka.group(), until: history.count) { ledger in
      while ledger.readinessProblem != FaultyStore.unavailable.message { await Task.yield() }
      store.isUnavailable = false
    }
    #expect(count == history.count)
  }

  @Test func ledgerRejoinsAfterItsStoreWasUnavailableAtAnAssignment() async throws {
    try await produce(history)
    let store = FaultyStore(try SQLiteLedger(directory.settings()))
    // It answers the call that precedes joining the group, and is then unavailable for longer than an assignment
    // allows.
    store.availablePositions = 1
    let count = try await run(store, group: kafka.group(), until: history.count, deadline: .seconds(1)) { ledger in
      while ledger.readinessProblem != FaultyStore.unavailable.message { await Task.yield() }
      store.isUnavailable = false
    }
    #expect(count == history.count)
    #expect(try await store.totals(hub: .default).settled == 50)
  }

  @Test func invalidConfigurationIsRefused() throws {
    var configuration = configuration(group: "g")
    configuration.consumer.client.properties = ["no.such.key": "x"]
    let store = try SQLiteLedger(directory.settings())
    #expect(throws: RDKafkaError.self) {
      _ = try Ledger(configuration: configuration, store: store, logger: TestKafka.quietLogger)
    }
  }

  @Test func consumerThatEndsByItselfThrows() async throws {
    // An invalid regular expression, so that the consumer cannot subscribe.
    let configuration = LedgerConfiguration(
      client: kafka.client("ledger"), topics: Topics(prefix: "^("), group: kafka.group())
    let ledger = try PatientLedger(
      configuration: configuration, store: try SQLiteLedger(directory.settings()), logger: TestKafka.quietLogger)
    let error = await #expect(throws: LedgerError.self) { try await ledger.run() }
    #expect(error?.code == .consumer)
  }

  @Test func checkThrowsWithoutABroker() async throws {
    let own = try TestKafka.embedded()
    let cluster = try #require(own.cluster)
    try cluster.createTopics([TopicSpecification(name: topics.sends, partitions: 1)])
    let ledger = try PatientLedger(
      configuration: LedgerConfiguration(client: own.client("ledger"), topics: topics),
      store: try SQLiteLedger(directory.settings()), logger: TestKafka.quietLogger)
    try await ledger.checkKafka()
    try cluster.setBroker(isUp: false)
    await #expect(throws: RDKafkaError.self) { try await ledger.checkKafka() }
  }

  @Test func ledgerWithoutPartitionsIsNotReady() throws {
    let store = try SQLiteLedger(directory.settings())
    let ledger = try Ledger(configuration: configuration(group: "g"), store: store, logger: TestKafka.quietLogger)
    #expect(ledger.readinessProblem == "the ledger's consumer group has not assigned it any partitions yet")
  }
}

/// Records the values of gauges until they are destroyed.
private final class GaugeValues: MetricsFactory {
  private final class Recorder: RecorderHandler {
    let value = Mutex<Double?>(nil)

    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { self.value.withLock { $0 = value } }
  }

  private let recorders = Mutex<[(label: String, recorder: Recorder)]>([])

  /// The last value of each gauge with that label.
  func values(of label: String) -> [Double] {
    recorders.withLock { recorders in
      recorders.filter { $0.label == label }.compactMap { $0.recorder.value.withLock { $0 } }
    }
  }

  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    let recorder = Recorder()
    recorders.withLock { $0.append((label, recorder)) }
    return recorder
  }

  func destroyRecorder(_ handler: any RecorderHandler) {
    recorders.withLock { recorders in recorders.removeAll { $0.recorder === handler } }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { NOOPMetricsHandler.instance }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { NOOPMetricsHandler.instance }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
