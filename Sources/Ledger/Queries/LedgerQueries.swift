import FanfareCore
import RDKafka
import Store

/// The queries of a ledger, within one read or transaction.
struct LedgerQueries {
  let session: Session

  init(_ session: Session) { self.session = session }

  private static let selectSend = PreparedStatement(
    sqlite:
      "SELECT \(SendRow.columns) FROM sends AS s WHERE s.hub = (SELECT id FROM hubs WHERE name = ?1) AND s.id = ?2",
    postgreSQL: "SELECT \(SendRow.columns) FROM ledger_sends AS s WHERE s.hub = ?1 AND s.id = ?2 ORDER BY s.day LIMIT 1"
  )
  private static let selectTotals = PreparedStatement(
    sqlite: """
      SELECT accepted, settled, no_target, expired, dead_lettered, cancelled, unannounced, duplicates FROM totals
      WHERE hub = (SELECT id FROM hubs WHERE name = ?1)
      """,
    postgreSQL: """
      SELECT sum(accepted)::bigint, sum(settled)::bigint, sum(no_target)::bigint, sum(expired)::bigint,
        sum(dead_lettered)::bigint, sum(cancelled)::bigint, sum(unannounced)::bigint, sum(duplicates)::bigint
      FROM ledger_totals WHERE hub = ?1 HAVING count(*) > 0
      """)
  private static let selectDeviceTotals = PreparedStatement(
    sqlite: "SELECT platform, outcome, devices FROM device_totals WHERE hub = (SELECT id FROM hubs WHERE name = ?1)",
    postgreSQL: """
      SELECT platform, outcome, sum(devices)::bigint FROM ledger_device_totals WHERE hub = ?1 GROUP BY platform, outcome
      """)
  private static let selectPositions = PreparedStatement("SELECT topic, part, next_offset FROM ledger_positions")
  private static let storePosition = PreparedStatement(
    """
    INSERT INTO ledger_positions (topic, part, next_offset) VALUES (?1, ?2, ?3)
    ON CONFLICT (topic, part) DO UPDATE SET next_offset = excluded.next_offset
    """)

  func report(of send: SendID, hub: HubName) throws -> SendReport? {
    try session.first(Self.selectSend, [.hub(hub), .id(send)]) { try SendRow($0) }.map { row in
      try row.makeReport(of: send, hub: hub) { try AttemptTable(session, row.key(of: send, hub: hub)).furthest() }
    }
  }

  /// The totals of a hub; zero for an unknown hub.
  func totals(hub: HubName) throws -> LedgerTotals {
    // In the order of the SELECT.
    let sums: [WritableKeyPath<LedgerTotals, Int>] = [
      \.accepted, \.settled, \.noTarget, \.expired, \.deadLettered, \.cancelled, \.unannounced, \.duplicates,
    ]
    let totals = try session.first(Self.selectTotals, [.hub(hub)]) { row in
      var totals = LedgerTotals()
      for (column, sum) in sums.enumerated() { totals[keyPath: sum] = try row.int(Int32(column)) }
      return totals
    }
    guard var totals else { return LedgerTotals() }
    let devices = try session.all(Self.selectDeviceTotals, [.hub(hub)]) { row in
      (platform: try row.integer(0), outcome: try row.integer(1), count: try row.int(2))
    }
    for (platform, outcome, count) in devices {
      try totals.setDevices(
        count, platform: UInt8(truncatingIfNeeded: platform), outcome: UInt8(truncatingIfNeeded: outcome))
    }
    return totals
  }

  func positions() throws -> [TopicPartition: Int64] {
    let rows = try session.all(Self.selectPositions) { row in
      (
        TopicPartition(topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1))),
        try row.integer(2)
      )
    }
    return Dictionary(rows, uniquingKeysWith: max)
  }

  /// Stores positions, in the same order in every ledger, against deadlocks.
  func reach(_ positions: [TopicPartition: Int64]) throws {
    let sorted = positions.sorted { ($0.key.topic, $0.key.partition) < ($1.key.topic, $1.key.partition) }
    try session.run(
      Self.storePosition,
      each: sorted.map { [.text($0.key.topic), .integer(Int64($0.key.partition)), .integer($0.value)] })
  }

  /// Throws when the tables cannot be read.
  func check() throws { _ = try positions() }
}

/// The operator's acknowledgements.
extension LedgerQueries {
  private static let selectAcknowledgements = PreparedStatement(
    "SELECT topic, part, log_offset, reason, acknowledged_at FROM ledger_acknowledgements")
  private static let replaceAcknowledgement = PreparedStatement(
    """
    INSERT INTO ledger_acknowledgements (topic, part, log_offset, reason, acknowledged_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (topic, part, log_offset)
    DO UPDATE SET reason = excluded.reason, acknowledged_at = excluded.acknowledged_at
    """)

  func acknowledgements() throws -> [Acknowledgement] {
    try session.all(Self.selectAcknowledgements) { row in
      Acknowledgement(
        topic: try row.text(0), partition: Int32(truncatingIfNeeded: try row.integer(1)), offset: try row.integer(2),
        reason: try row.text(3), at: try row.time(4))
    }
  }

  func acknowledge(_ acknowledgement: Acknowledgement) throws {
    try session.run(
      Self.replaceAcknowledgement,
      [
        .text(acknowledgement.topic), .integer(Int64(acknowledgement.partition)), .integer(acknowledgement.offset),
        .text(acknowledgement.reason), .time(acknowledgement.at),
      ])
  }
}
