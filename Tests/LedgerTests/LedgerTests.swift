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

/// The whole ledger on a real protocol: topics of its own on a cluster that tests share.
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
    configuration.firstRetryDelay = .milliseconds(1)
    configuration.longestRetryDelay = .milliseconds(10)
    return configuration
  }

  /// Runs a ledger until it has taken in so many records, then shuts it down in order. Returns the number of records it
  /// took.
  private func run(
    _ store: any LedgerStorage, group: String, until count: Int, deadline: Duration? = nil,
    clock: any WallClock = SystemWallClock(), logger: Logger = TestKafka.quietLogger,
    while body: (PatientLedger) async throws -> Void = { _ in }
  ) async throws -> Int {
    var configuration = configuration(group: group)
    if let deadline { configuration.consumer.rebalanceDeadline = deadline }
    let (taken, counter) = AsyncStream.makeStream(of: Int.self)
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
      for await total in taken where total >= count { break }
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

  /// Every send of the test, and the ends of all but ten.
  private var history: [Sample] {
    sends.map { Sample.send(Samples.send($0)) }
      + sends.dropLast(10).map { .status(Samples.status($0, devices: [Samples.device()])) }
  }

  @Test func sendsAndStatusTopicsAreJoined() async throws {
    // The ends first, so that some are certainly read before their sends.
    try await produce(history.reversed())
    try await produce([
      ProducerRecord(topic: topics.sends, key: nil, value: Array("not a record".utf8)),
      ProducerRecord(topic: topics.status, key: nil, value: Samples.send(.random()).encoded()),
      ProducerRecord(topic: topics.status, key: nil, value: []),
    ])
    let store = try LedgerStore(directory.settings())
    let group = kafka.group()
    #expect(try await run(store, group: group, until: history.count + 3) == history.count + 3)
    let totals = try await store.totals(hub: .default)
    #expect((totals.accepted, totals.settled, totals.inFlight, totals.unannounced) == (60, 50, 10, 0))
    #expect(totals.devices == [.apns: [.delivered: 50]])
    #expect(try await store.report(of: sends[0], hub: .default)?.state == .settled)

    // What is in the file has been committed: another run takes in the news only.
    try await produce(sends.suffix(10).map { .status(Samples.status($0, state: .noTarget)) })
    #expect(try await run(store, group: group, until: 10) == 10)
    #expect(try await store.totals(hub: .default).inFlight == 0)
  }

  @Test func crashBeforeTheCommitChangesNoCounts() async throws {
    try await produce(history)
    let store = try LedgerStore(directory.settings())
    _ = try await run(store, group: kafka.group(), until: history.count)
    let totals = try await store.totals(hub: .default)
    // For another group nothing is committed: the same file is given everything again.
    #expect(try await run(store, group: kafka.group(), until: history.count) == history.count)
    #expect(try await store.totals(hub: .default) == totals)
    #expect(totals.duplicates == 0)
    #expect(totals.accepted == 60)
  }

  @Test func newFileIsFilledFromTheLogDespiteCommittedOffsets() async throws {
    try await produce(history)
    let group = kafka.group()
    let first = try LedgerStore(directory.settings("first"))
    _ = try await run(first, group: group, until: history.count)
    let second = try LedgerStore(directory.settings("second"))
    #expect(try await run(second, group: group, until: history.count) == history.count)
    #expect(try await second.totals(hub: .default) == (try await first.totals(hub: .default)))
  }

  @Test func lateRewindIsRepeatedByANewLedger() async throws {
    try await produce(history)
    let group = kafka.group()
    let first = try LedgerStore(directory.settings("first"))
    _ = try await run(first, group: group, until: history.count)
    // The second answer is for the assignment, and comes when the consumer reads already from where the group was.
    let second = TroubledStore(try LedgerStore(directory.settings("second")), lateAnswer: 2)
    let log = LogRecorder()
    let count = try await run(second, group: group, until: history.count, deadline: .seconds(1), logger: log.logger) {
      _ in
      while log.count(of: "A rebalance takes effect although the application has not completed it") == 0 {
        await Task.yield()
      }
      second.answer()
    }
    #expect(count == history.count)
    #expect(try await second.totals(hub: .default) == (try await first.totals(hub: .default)))
  }

  @Test func lagIsReportedFromTheFirstRecordUntilTheLedgerEnds() async throws {
    try await produce(history)
    let store = TroubledStore(try LedgerStore(directory.settings()))
    store.isFull = true
    let gauges = GaugeValues()
    let clock = SettableClock(SystemWallClock().now() + .seconds(86_400))
    try await withMetricsFactory(gauges) {
      _ = try await run(store, group: kafka.group(), until: history.count, clock: clock) { _ in
        while (gauges.values(of: "fanfare_consumer_lag_seconds").max() ?? 0) < 86_000 { await Task.yield() }
        #expect(gauges.values(of: "fanfare_consumer_lag_records").contains { $0 > 0 })
        store.isFull = false
      }
    }
    #expect(gauges.values(of: "fanfare_consumer_lag_seconds").isEmpty)
    #expect(gauges.values(of: "fanfare_consumer_lag_records").isEmpty)
  }

  @Test func failedWritesAreRetried() async throws {
    try await produce(history)
    var settings = directory.settings()
    settings.busyTimeout = .milliseconds(1)
    let store = try LedgerStore(settings)
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

  @Test func positionsAreStoredOnlyBehindPendingWrites() async throws {
    // What comes at once is one batch, and so the second is certainly another.
    let samples = history
    try await produce(Array(samples.prefix(30)))
    let store = TroubledStore(try LedgerStore(directory.settings()), holdsFirstBatch: true)
    let count = try await run(store, group: kafka.group(), until: samples.count) { _ in
      while !store.hasBegun { await Task.yield() }
      try await produce(Array(samples.dropFirst(30)))
    }
    #expect(count == samples.count)
    #expect(store.mistakes == 0)
    #expect(try await store.totals(hub: .default).settled == 50)
  }

  @Test func removalRunsBesideWritesAndIsCancelledAtTheEnd() async throws {
    try await produce(history)
    let store = TroubledStore(try LedgerStore(directory.settings()), retiresForEver: true)
    let count = try await run(store, group: kafka.group(), until: history.count) { _ in
      while !store.isRetiring { await Task.yield() }
    }
    #expect(count == history.count)
    #expect(!store.isRetiring)
  }

  @Test func ledgerWaitsForItsStoreAtTheStart() async throws {
    try await produce(history)
    let store = TroubledStore(try LedgerStore(directory.settings()))
    store.isAway = true
    let count = try await run(store, group: kafka.group(), until: history.count) { ledger in
      while ledger.readinessProblem != TroubledStore.away.message { await Task.yield() }
      store.isAway = false
    }
    #expect(count == history.count)
  }

  @Test func ledgerRejoinsAfterItsStoreWasAwayAtAnAssignment() async throws {
    try await produce(history)
    let store = TroubledStore(try LedgerStore(directory.settings()))
    // It answers the question that comes before the group is joined, and then is away for longer than an assignment
    // waits.
    store.goesAwayAfterPositions = 1
    let count = try await run(store, group: kafka.group(), until: history.count, deadline: .seconds(1)) { ledger in
      while ledger.readinessProblem != TroubledStore.away.message { await Task.yield() }
      store.isAway = false
    }
    #expect(count == history.count)
    #expect(try await store.totals(hub: .default).settled == 50)
  }

  @Test func invalidConfigurationIsRefused() throws {
    var configuration = configuration(group: "g")
    configuration.consumer.client.properties = ["no.such.key": "x"]
    let store = try LedgerStore(directory.settings())
    #expect(throws: RDKafkaError.self) {
      _ = try Ledger(configuration: configuration, store: store, logger: TestKafka.quietLogger)
    }
  }

  @Test func consumerThatEndsByItselfThrows() async throws {
    // It begins like an expression and is none, so that nothing can be subscribed to.
    let configuration = LedgerConfiguration(
      client: kafka.client("ledger"), topics: Topics(prefix: "^("), group: kafka.group())
    let ledger = try PatientLedger(
      configuration: configuration, store: try LedgerStore(directory.settings()), logger: TestKafka.quietLogger)
    let error = await #expect(throws: LedgerError.self) { try await ledger.run() }
    #expect(error?.code == .consumer)
  }

  @Test func checkThrowsWithoutABroker() async throws {
    let own = try TestKafka.embedded()
    let cluster = try #require(own.cluster)
    try cluster.createTopics([TopicSpecification(name: topics.sends, partitions: 1)])
    let ledger = try PatientLedger(
      configuration: LedgerConfiguration(client: own.client("ledger"), topics: topics),
      store: try LedgerStore(directory.settings()), logger: TestKafka.quietLogger)
    try await ledger.checkKafka()
    try cluster.setBroker(isUp: false)
    await #expect(throws: RDKafkaError.self) { try await ledger.checkKafka() }
  }

  @Test func ledgerWithoutPartitionsIsNotReady() throws {
    let store = try LedgerStore(directory.settings())
    let ledger = try Ledger(configuration: configuration(group: "g"), store: store, logger: TestKafka.quietLogger)
    #expect(ledger.readinessProblem == "the ledger's consumer group has not assigned it any partitions yet")
  }
}
