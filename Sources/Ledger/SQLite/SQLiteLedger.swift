import FanfareCore
import Foundation
import GRDB

/// A SQLite ledger's queries, the same for the process that writes the file and for readers.
///
/// The methods are `package` because they implement `SendHistory`.
protocol SQLiteLedger: Sendable {
  /// Runs `body` on a consistent snapshot of the file. Throws `LedgerError`.
  func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws -> Value
}

extension SQLiteLedger {
  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await read { db in
      let select = try db.cachedStatement(
        sql: "SELECT \(SendRow.columns) FROM sends WHERE hub = (SELECT id FROM hubs WHERE name = ?) AND id = ?")
      return try Row.fetchOne(select, arguments: [hub.rawValue, Data(send.bytes)]).map { row in
        try SendRow(row).makeReport(of: send, hub: hub) { try AttemptTable.furthest(db, hub: hub, send: send) }
      }
    }
  }

  package func list(_ query: SendQuery) async throws -> SendPage {
    try await read { db in try Listing(db, query).page() }
  }

  /// Throws `LedgerError` when there is no ledger yet or it cannot be read.
  package func check() async throws {
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM sends LIMIT 1") }
  }
}

extension LedgerTotals {
  /// Reads the totals of a hub; zero for an unknown hub.
  init(_ db: Database, hub: HubName) throws {
    self.init()
    let select = try db.cachedStatement(
      sql: """
        SELECT accepted, settled, no_target, expired, dead_lettered, unannounced, duplicates, cancelled FROM totals
        WHERE hub = (SELECT id FROM hubs WHERE name = ?)
        """)
    guard let row = try Row.fetchOne(select, arguments: [hub.rawValue]) else { return }
    // In the order of the SELECT, which is not that of PostgreSQL.
    let sums: [WritableKeyPath<LedgerTotals, Int>] = [
      \.accepted, \.settled, \.noTarget, \.expired, \.deadLettered, \.unannounced, \.duplicates, \.cancelled,
    ]
    for (column, sum) in sums.enumerated() { self[keyPath: sum] = row[column] }
    let devices = try db.cachedStatement(
      sql: "SELECT platform, outcome, devices FROM device_totals WHERE hub = (SELECT id FROM hubs WHERE name = ?)")
    let rows = try Row.fetchCursor(devices, arguments: [hub.rawValue])
    while let row = try rows.next() { try setDevices(row[2], platform: row[0], outcome: row[1]) }
  }
}
