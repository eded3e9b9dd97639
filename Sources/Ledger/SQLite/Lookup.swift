import FanfareCore
import Foundation
import GRDB

/// The queries of a SQLite ledger, for the writer and for readers.
enum Lookup {
  static func report(_ db: Database, of send: SendID, hub: HubName) throws -> SendReport? {
    let select = try db.cachedStatement(
      sql: "SELECT \(SendRow.columns) FROM sends WHERE hub = (SELECT id FROM hubs WHERE name = ?) AND id = ?")
    guard let row = try Row.fetchOne(select, arguments: [hub.rawValue, Data(send.bytes)]).map(SendRow.init) else {
      return nil
    }
    return try report(db, of: send, hub: hub, row)
  }

  static func report(_ db: Database, of send: SendID, hub: HubName, _ row: SendRow) throws -> SendReport {
    try row.makeReport(of: send, hub: hub) { try AttemptTable.furthest(db, hub: hub, send: send) }
  }

  /// The totals of a hub; zero for an unknown hub.
  static func totals(_ db: Database, hub: HubName) throws -> LedgerTotals {
    var totals = LedgerTotals()
    let sums = try db.cachedStatement(
      sql: """
        SELECT accepted, settled, no_target, expired, dead_lettered, unannounced, duplicates, cancelled FROM totals
        WHERE hub = (SELECT id FROM hubs WHERE name = ?)
        """)
    guard let row = try Row.fetchOne(sums, arguments: [hub.rawValue]) else { return totals }
    totals.accepted = row[0]
    totals.settled = row[1]
    totals.noTarget = row[2]
    totals.expired = row[3]
    totals.deadLettered = row[4]
    totals.unannounced = row[5]
    totals.duplicates = row[6]
    totals.cancelled = row[7]
    let devices = try db.cachedStatement(
      sql: "SELECT platform, outcome, devices FROM device_totals WHERE hub = (SELECT id FROM hubs WHERE name = ?)")
    let rows = try Row.fetchCursor(devices, arguments: [hub.rawValue])
    while let row = try rows.next() {
      guard let platform = StoredCode.platform(row[0]), let outcome = StoredCode.outcome(row[1]) else {
        throw SendRow.damaged
      }
      totals.devices[platform, default: [:]][outcome] = row[2]
    }
    return totals
  }
}
