import FanfareCore
import RDKafka
import Store

/// The queries of a PostgreSQL ledger.
struct PostgreSQLLookup {
  let connection: PostgreSQLConnection

  init(_ connection: PostgreSQLConnection) {
    self.connection = connection
  }

  private static let selectSend = PreparedStatement(
    "SELECT \(SendTable.columns), s.day FROM ledger_sends AS s WHERE s.hub = $1 AND s.id = $2 ORDER BY s.day LIMIT 1")
  private static let selectFurthest = PreparedStatement(
    """
    SELECT settled_parts, state, settled_at, counts, devices, failures, times FROM ledger_attempts
    WHERE day = $1 AND hub = $2 AND send = $3 ORDER BY settled_parts DESC, attempt LIMIT 1
    """)
  private static let selectTotals = PreparedStatement(
    """
    SELECT sum(accepted)::bigint, sum(settled)::bigint, sum(no_target)::bigint, sum(expired)::bigint,
      sum(dead_lettered)::bigint, sum(cancelled)::bigint, sum(unannounced)::bigint, sum(duplicates)::bigint
    FROM ledger_totals WHERE hub = $1 HAVING count(*) > 0
    """)
  private static let selectDeviceTotals = PreparedStatement(
    "SELECT platform, outcome, sum(devices)::bigint FROM ledger_device_totals WHERE hub = $1 GROUP BY platform, outcome"
  )
  private static let selectPositions = PreparedStatement("SELECT topic, part, next_offset FROM ledger_positions")
  private static let probe = PreparedStatement("SELECT 1 FROM ledger_positions LIMIT 1")

  func report(of send: SendID, hub: HubName) throws -> SendReport? {
    let rows = try connection.query(Self.selectSend, [.text(hub.rawValue), .uuid(high: send.high, low: send.low)])
    guard rows.count > 0 else { return nil }
    let day = Int32(try rows.integer(0, SendTable.columnCount))
    return try SendTable.row(rows, 0, from: 0).makeReport(of: send, hub: hub) { try furthest(send, hub: hub, day: day) }
  }

  /// The sum of the open attempt with the most items; nil when there is none.
  func furthest(_ send: SendID, hub: HubName, day: Int32) throws -> ItemSum? {
    let rows = try connection.query(
      Self.selectFurthest, [.int4(day), .text(hub.rawValue), .uuid(high: send.high, low: send.low)])
    return rows.count == 0 ? nil : try SendTable.sum(items: try rows.integer(0, 0), rows, 0, from: 1)
  }

  /// The totals of a hub; zero for an unknown hub.
  func totals(hub: HubName) throws -> LedgerTotals {
    var totals = LedgerTotals()
    let sums = try connection.query(Self.selectTotals, [.text(hub.rawValue)])
    guard sums.count > 0 else { return totals }
    // In the order of the SELECT, which is not that of SQLite.
    let columns: [WritableKeyPath<LedgerTotals, Int>] = [
      \.accepted, \.settled, \.noTarget, \.expired, \.deadLettered, \.cancelled, \.unannounced, \.duplicates,
    ]
    for (number, sum) in columns.enumerated() { totals[keyPath: sum] = Int(try sums.integer(0, Int32(number))) }
    let devices = try connection.query(Self.selectDeviceTotals, [.text(hub.rawValue)])
    for row in 0..<devices.count {
      try totals.setDevices(
        Int(try devices.integer(row, 2)), platform: UInt8(truncatingIfNeeded: try devices.integer(row, 0)),
        outcome: UInt8(truncatingIfNeeded: try devices.integer(row, 1)))
    }
    return totals
  }

  func positions() throws -> [TopicPartition: Int64] {
    let rows = try connection.query(Self.selectPositions)
    var positions: [TopicPartition: Int64] = [:]
    for row in 0..<rows.count {
      let partition = TopicPartition(topic: try rows.text(row, 0), partition: Int32(try rows.integer(row, 1)))
      positions[partition] = try rows.integer(row, 2)
    }
    return positions
  }

  /// Throws when the tables cannot be read.
  func check() throws {
    try connection.query(Self.probe)
  }
}
