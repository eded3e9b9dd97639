import FanfareCore
import Ledger
import Logging
import PostgreSQL
import RDKafka

/// Sends that have been settled, into the ledger's tables in PostgreSQL: from the topics' bytes to committed transactions, as a ledger does it.
///
/// A send's record and its end lie in partitions of different topics, and so mostly come to different ledgers, and never in one batch.
struct LedgerScenario: BenchScenario {
  let name = "ledger"

  /// Records of a batch, as by default.
  private static let batch = 5000
  /// How many sends are under way when an end is read.
  private static let underWay = 10_000

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    guard PrivateServer.programs != nil else {
      var report = ScenarioReport(scenario: name, unit: "sends", sink: "–")
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    // It waits for the disk, as a server that matters does.
    let server = try PrivateServer(settings: [
      "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "8GB",
    ])
    var reports: [ScenarioReport] = []
    for ledgers in [1, 2] {
      var report = ScenarioReport(
        scenario: "\(name), \(ledgers) sharing the work", unit: "sends", sink: "PostgreSQL", goals: [.rate(40_000)])
      let sends = bench.rig.options.scaled(300_000, floor: 20_000)
      report.pairs = try await bench.pairs(
        ceiling: { nil }, product: { try await measure(ledgers, sends, server, bench.rig.logger) })
      reports.append(report)
    }
    return reports
  }

  private func measure(_ count: Int, _ sends: Int, _ server: PrivateServer, _ logger: Logger) async throws -> Measurement {
    let hub = HubName("bench-\(UInt32.random(in: 0...UInt32.max))") ?? .default
    var database = PostgreSQLConfiguration(connection: server.connection)
    database.maximumConnections = 2
    let ledgers = try (0..<count).map { _ in
      try PostgreSQLLedger(PostgreSQLLedgerConfiguration(database: database), logger: logger)
    }
    let topics = Topics()
    let batches = Self.batches(of: sends, hub: hub, ledgers: count, topics: topics)
    _ = try await ledgers[0].positions()
    let (start, before) = (ContinuousClock.now, try ProcessUsage())
    try await withThrowingTaskGroup { group in
      for (ledger, batches) in zip(ledgers, batches) {
        group.addTask {
          // One half decodes what the other half writes next.
          var decoded = LedgerBatch(batches[0], topics: topics, maximumDevices: ledger.maximumDevices)
          for next in batches.dropFirst() {
            async let following = Self.decode(next, topics: topics, for: ledger)
            _ = try await ledger.write(decoded)
            decoded = await following
          }
          _ = try await ledger.write(decoded)
        }
      }
      try await group.waitForAll()
    }
    let (end, after) = (ContinuousClock.now, try ProcessUsage())
    let totals = try await ledgers[0].totals(hub: hub)
    guard totals.accepted == sends, totals.settled == sends, totals.unannounced == 0, totals.duplicates == 0 else {
      throw BenchError("of \(sends) sends the ledger has \(totals.accepted), \(totals.settled) of them settled")
    }
    return Measurement(
      count: sends, seconds: (end - start) / .seconds(1), cpuSeconds: after.cpuSeconds - before.cpuSeconds,
      peakBytes: after.peakBytes)
  }

  @concurrent private static func decode(_ records: [ConsumedRecord], topics: Topics, for ledger: PostgreSQLLedger) async
    -> LedgerBatch
  {
    LedgerBatch(records, topics: topics, maximumDevices: ledger.maximumDevices)
  }

  /// The records, for each ledger in batches. Of a send's two records each goes to any of the ledgers.
  private static func batches(of sends: Int, hub: HubName, ledgers: Int, topics: Topics) -> [[[ConsumedRecord]]] {
    var batches: [[[ConsumedRecord]]] = Array(repeating: [[]], count: ledgers)
    var ends: [StatusRecord] = []
    ends.reserveCapacity(sends)
    let now = SystemWallClock().now()
    func append(_ topic: String, _ value: [UInt8], to ledger: Int) {
      if batches[ledger][batches[ledger].count - 1].count == batch { batches[ledger].append([]) }
      let record = ConsumedRecord(topic: topic, partition: Int32(ledger), offset: 0, timestamp: 0, key: nil, value: value[...])
      batches[ledger][batches[ledger].count - 1].append(record)
    }
    func appendEnd(_ number: Int) {
      append(topics.status, ends[number].encoded(), to: Int.random(in: 0..<ledgers))
    }
    for number in 0..<sends {
      let send = SendRequest(
        id: .timeOrdered(at: now), hub: hub, sender: "backend", acceptedAt: now, audience: .user("user-\(number % 50_000)"),
        content: Content(message: Message(title: "Number \(number)", body: "of \(sends)")))
      // 1.6 devices a user.
      let devices = (0..<(number % 5 < 3 ? 2 : 1)).map { _ in
        DeviceResult(registration: .random(), platform: .fcm, outcome: .delivered, reason: "", status: 200, attempts: 1)
      }
      ends.append(
        StatusRecord(
          send: send.id, hub: hub, state: .settled, sender: "backend", audience: send.audience, acceptedAt: now,
          settledAt: now + .milliseconds(40), devices: devices))
      append(topics.sends, send.encoded(), to: Int.random(in: 0..<ledgers))
      if number >= underWay { appendEnd(number - underWay) }
    }
    for number in max(0, sends - underWay)..<sends { appendEnd(number) }
    return batches
  }
}
