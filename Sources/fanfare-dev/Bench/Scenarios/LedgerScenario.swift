import FanfareCore
import Ledger
import Logging
import PostgreSQL
import RDKafka

/// Sends that have been settled, into the ledger's tables in PostgreSQL: from the topics' bytes to committed
/// transactions, as a ledger does it.
///
/// A send's record and its end lie in partitions of different topics, and so mostly come to different ledgers, and
/// never in one batch.
struct LedgerScenario: BenchScenario {
  let name = "ledger"

  /// Records of a batch, as by default.
  private static let batch = 5000
  /// It is written to all the time, so it has its checkpoints, and is cleaned up after, as by default.
  private static let server = [
    "shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "5min", "autovacuum": "on",
    "wal_level": "replica",
    "wal_init_zero": "on",
  ]

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    guard let database = try BenchDatabase(bench.rig, settings: Self.server) else {
      var report = ScenarioReport(scenario: name, unit: "sends", sink: "–")
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    var reports: [ScenarioReport] = []
    for ledgers in [1, 2] {
      var report = ScenarioReport(
        scenario: "\(name), \(ledgers) sharing the work", unit: "sends", sink: "PostgreSQL", goals: [.rate(40_000)])
      let sends = bench.rig.options.scaled(300_000, floor: 20_000)
      report.pairs = try await bench.pairs(
        ceiling: { nil },
        product: {
          try await database.withEmptySchema { try await measure(ledgers, sends, $0, bench.rig.logger) }
        })
      reports.append(report)
    }
    return reports
  }

  private func measure(_ count: Int, _ sends: Int, _ connection: String, _ logger: Logger) async throws -> Measurement {
    let hub = HubName("bench-\(UInt32.random(in: 0...UInt32.max))") ?? .default
    var database = PostgreSQLConfiguration(connection: connection)
    database.maximumConnections = 4
    let ledgers = try (0..<count).map { _ in
      try PostgreSQLLedger(PostgreSQLLedgerConfiguration(database: database), logger: logger)
    }
    let log = try LedgerLog(sends: sends, hub: hub, readers: count)
    _ = try await ledgers[0].positions()
    let (start, before) = (ContinuousClock.now, try ProcessUsage())
    try await withThrowingTaskGroup { group in
      for (number, ledger) in ledgers.enumerated() {
        for _ in 0..<ledger.writesAtOnce {
          group.addTask {
            while let records = try log.next(Self.batch, of: number) {
              _ = try await ledger.write(await Self.decode(records, topics: log.topics, for: ledger))
            }
          }
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

  @concurrent private static func decode(_ records: [ConsumedRecord], topics: Topics, for ledger: PostgreSQLLedger)
    async
    -> LedgerBatch
  {
    LedgerBatch(records, topics: topics, maximumDevices: ledger.maximumDevices)
  }
}
