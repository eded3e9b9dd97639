import FanfareCore
import Foundation
import GRDB
import RDKafka
import Store
import Support
import Testing

@testable import Ledger

/// Ledgers filled by version 0.2.0, the first one that later ones must read: they get the present tables, and everything
/// is read. See `GoldenFile`.
@Suite(.timeLimit(.minutes(2))) struct GoldenTests {
  private static let clock = ManualClock(at: .start)

  @Test func goldenFileIsReadCompletely() async throws {
    let file = GoldenFile("ledger.db")
    let directory = try TemporaryDirectory()
    if GoldenFile.isUpdating {
      let store = try SQLiteLedger(directory.settings("new"), clock: Self.clock)
      try await Self.fill(store)
      store.close()
      // Fails if the file does not exist yet.
      try? FileManager.default.removeItem(at: file.url)
      try await DatabaseQueue(path: directory.path("new")).vacuum(into: file.url.path)
    }
    let path = directory.path("old")
    try FileManager.default.copyItem(atPath: file.url.path, toPath: path)
    let store = try SQLiteLedger(directory.settings("old"), clock: Self.clock)
    let schema = try Self.schema(of: path)
    try GoldenFile("ledger.txt").expect(try await Self.survey(store))
    let reader = SQLiteLedgerReader(directory.settings("old"))
    for number in Self.numbers {
      #expect(
        try await reader.report(of: Self.id(number), hub: .default) == store.report(of: Self.id(number), hub: .default))
    }
    store.close()
    try SQLiteLedger(directory.settings("empty"), clock: Self.clock).close()
    #expect(try Self.schema(of: directory.path("empty")) == schema, "a new file has the same tables")
  }

  @Test(TestPostgreSQL.isAvailable) func goldenDatabaseIsReadCompletely() async throws {
    let file = GoldenFile("ledger.sql")
    if GoldenFile.isUpdating {
      try await Self.withLedger { ledger, database in
        try await Self.fill(ledger)
        try GoldenDump.sql(of: database).write(to: file.url, atomically: true, encoding: .utf8)
      }
    }
    let schema = try await TestPostgreSQL.withSchema { database in
      try await GoldenDump.load(try String(contentsOf: file.url, encoding: .utf8), into: database)
      let ledger = try Self.ledger(database)
      // As a ledger does at its start; readers do not migrate.
      _ = try await ledger.positions()
      let lines = try await Self.survey(ledger)
      ledger.close()
      let schema = try await GoldenDump.schema(of: database)
      try GoldenFile("ledger-of-postgresql.txt").expect(lines)
      return schema
    }
    try await Self.withLedger { ledger, database in
      // A day's first send creates its partition.
      try await ledger.write([.send(Samples.send(.random()))])
      let new = try await GoldenDump.schema(of: database)
      #expect(new == schema, "a new database has the same tables")
    }
  }

  private static func ledger(_ database: PostgreSQLConfiguration) throws -> PostgreSQLLedger {
    var settings = PostgreSQLLedgerConfiguration(database: database)
    settings.maximumDevices = 4
    return try PostgreSQLLedger(settings, clock: clock, logger: TestPostgreSQL.quietLogger)
  }

  private static func withLedger(_ body: (PostgreSQLLedger, PostgreSQLConfiguration) async throws -> Void) async throws
  {
    try await TestPostgreSQL.withSchema { database in
      let ledger = try ledger(database)
      defer { ledger.close() }
      try await body(ledger, database)
    }
  }

  /// The statements that create a file's tables, and its versions.
  private static func schema(of path: String) throws -> [String] {
    try DatabaseQueue(path: path).read { db in
      let statements = try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1")
      let versions = try ["user_version", "application_id"].map {
        "\($0) \(try Int.fetchOne(db, sql: "PRAGMA \($0)") ?? -1)"
      }
      return versions + statements.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
    }
  }

  private static let numbers: ClosedRange<UInt64> = 1...15
  private static func id(_ number: UInt64) -> SendID { SendID(high: 0x019F_0000_0000_7000, low: 1 << 63 + number) }

  /// Writes every kind of row to every table.
  private static func fill(_ store: any LedgerStore) async throws {
    let (one, other) = (DispatchID(high: 1, low: 1), DispatchID(high: 2, low: 2))
    func later(_ number: UInt64) -> UnixTime { .start + .seconds(Int64(number)) }
    func end(
      _ number: UInt64, _ state: StatusRecord.State = .settled, part: Int = 0, of parts: Int = 1,
      attempt: DispatchID? = nil, devices: [DeviceResult] = [], counts: OutcomeCounts = OutcomeCounts()
    ) -> Sample {
      .status(
        StatusRecord(
          send: id(number), hub: .default, part: part, parts: parts, attempt: attempt, state: state, sender: "alice",
          audience: number > 7 ? .everyone : .user("bob"), acceptedAt: later(number), settledAt: later(number + 60),
          devices: devices, counts: counts))
    }
    let all = DeviceResult.Outcome.allCases.enumerated().map { index, outcome in
      Samples.device(Platform.allCases[index % 3], outcome, number: UInt64(index))
    }
    // Settled with every state, known only by a status record, and open.
    let states = StatusRecord.State.allCases
    try await store.write((1...6 as ClosedRange<UInt64>).map { .send(Samples.send(id($0), at: later($0))) })
    try await store.write(
      states.enumerated().map { index, state in
        end(UInt64(index + 1), state, devices: state == .settled ? Array(all.prefix(3)) : [])
      } + [end(7, devices: Array(all.suffix(3)))])
    // A record with more devices than are kept, and a duplicate.
    try await store.write([.send(Samples.send(id(8), at: later(8))), end(8, devices: all), end(1, .noTarget)])
    // Broadcasts: settled, open, and open with parts of two attempts.
    let counts = OutcomeCounts(all + all)
    try await store.write(
      (0..<3).map { end(9, part: $0, of: 3, attempt: one, devices: [all[1]], counts: counts) }
        + [end(10, part: 1, of: 3, attempt: one, counts: counts)]
        + [end(11, part: 0, of: 2, attempt: one, devices: [all[0]]), end(11, part: 0, of: 3, attempt: other)])
    try await store.write([
      .send(Samples.send(id(12), hub: Samples.otherHub, at: later(12))),
      .send(Samples.send(id(13), at: .start + .seconds(-86_400 * 40))),
      .send(
        SendRequest(
          id: id(14), acceptedAt: later(14), audience: .device(.apns, handle: "ab"),
          content: Content(message: Message(body: "ü")))),
    ])
  }

  /// All content, as the API reports it, as lines of text.
  private static func survey(_ store: any LedgerStore) async throws -> [String] {
    func text(_ counts: [Platform: [DeviceResult.Outcome: Int]]) -> String {
      Platform.allCases.flatMap { platform in
        DeviceResult.Outcome.allCases.compactMap { outcome in
          counts[platform]?[outcome].map { "\(platform).\(outcome)=\($0)" }
        }
      }.joined(separator: ",")
    }
    var lines: [String] = []
    let hubs = [HubName.default, Samples.otherHub]
    for hub in hubs {
      for number in numbers {
        guard let report = try await store.report(of: id(number), hub: hub) else { continue }
        let times = [report.acceptedAt, report.settledAt].map { $0?.description ?? "-" }.joined(separator: " ")
        lines.append(
          "\(hub) \(number) \(report.state.rawValue) \(report.sender ?? "-") \(report.audience ?? "-") "
            + "\(report.isBroadcast) \(times) [\(text(report.counts))]")
        lines += (report.devices ?? []).map {
          "  \($0.registration) \($0.platform) \($0.outcome) '\($0.reason)' \($0.status) \($0.attempts)"
        }
      }
      let totals = try await store.totals(hub: hub)
      lines.append(
        "\(hub) accepted \(totals.accepted) settled \(totals.settled) no target \(totals.noTarget) "
          + "expired \(totals.expired) dead letters \(totals.deadLettered) cancelled \(totals.cancelled) "
          + "unannounced \(totals.unannounced) duplicates \(totals.duplicates) [\(text(totals.devices))]")
    }
    let queries = [
      SendQuery(hub: .default), SendQuery(hub: .default, sender: "alice"), SendQuery(hub: .default, user: "bob"),
      SendQuery(hub: Samples.otherHub), SendQuery(hub: .default, state: .accepted),
    ]
    for query in queries { lines.append("list \(try await store.list(query).sends.map { $0.id.low & 0xFF })") }
    let positions = try await store.positions().map { "position \($0.key.topic) \($0.key.partition) \($0.value)" }
    try await store.check()
    return lines + positions.sorted()
  }
}
