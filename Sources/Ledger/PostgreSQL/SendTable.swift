import FanfareCore
import Store

/// The statements on the rows of `ledger_sends`, apart from inserting.
enum SendTable {
  /// The keys' hubs, ids and days, as arrays.
  static func parameters(_ keys: [BatchPlan.Key]) -> [Parameter] {
    [
      .texts(keys.map(\.hub.rawValue)), .uuids(keys.map { (high: $0.id.high, low: $0.id.low) }),
      .int4s(keys.map(\.day)),
    ]
  }

  /// The columns from `state` to `times` as arrays, for the records of sends of one item.
  static func parameters(ends: [LedgerEntry.Settlement?]) -> [Parameter] {
    let states: [Int16?] = ends.map { $0?.storedState }
    let times: [Int64?] = ends.map { $0?.settledAt.milliseconds }
    let digests: [Int64?] = ends.map { $0?.digest }
    return [
      .int2s(states), .int8s(times), .int8s(digests), .byteas(ends.map { $0?.storedCounts }),
      .byteas(ends.map { $0?.storedDevices }), .byteas(ends.map { $0?.storedFailures }),
      .byteas(ends.map { $0?.storedTimes }),
    ]
  }

  private static let select = PreparedStatement(
    """
    SELECT \(SendRow.columns) FROM unnest($1, $2, $3) WITH ORDINALITY AS k (hub, id, day, number),
      LATERAL (SELECT * FROM ledger_sends AS s WHERE s.hub = k.hub AND s.id = k.id AND s.day = k.day LIMIT 1) AS s
    ORDER BY k.number
    """)

  /// The rows of sends, all of which must exist; throws `SendRow.damaged` otherwise.
  static func rows(of keys: [BatchPlan.Key], on connection: PostgreSQLConnection) throws -> [SendRow] {
    let rows = try connection.query(select, parameters(keys))
    guard rows.count == keys.count else { throw SendRow.damaged }
    return try (0..<rows.count).map { try SendRow(Row(rows, $0)) }
  }

  private static let settling = PreparedStatement(
    """
    WITH ended AS (
      UPDATE ledger_sends AS s SET settled_parts = 1, state = u.state, settled_at = u.settled_at, digest = u.digest,
        counts = u.counts, devices = u.devices, failures = u.failures, times = u.times
      FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY
        AS u (hub, id, state, settled_at, digest, counts, devices, failures, times, number)
      WHERE s.hub = u.hub AND s.id = u.id AND s.day = $1 AND s.known_parts = 1 AND s.settled_parts = 0
      RETURNING u.number
    )
    SELECT CASE WHEN count(*) < cardinality($3) THEN coalesce(array_agg(number), '{}') END FROM ended
    """)

  /// Settles open sends of one item; returns for each whether it was open. All are of one day, so that the server
  /// chooses the partition once.
  static func settle(
    _ ends: [(key: BatchPlan.Key, end: LedgerEntry.Settlement)], of day: Int32, on connection: PostgreSQLConnection
  ) throws -> [Bool] {
    let rows = try connection.query(
      settling, [.int4(day)] + parameters(ends.map(\.key)).dropLast() + parameters(ends: ends.map(\.end)))
    // NULL means that all of them were open, the usual case.
    guard !rows.isNull(0, 0) else { return Array(repeating: true, count: ends.count) }
    var wereOpen = Array(repeating: false, count: ends.count)
    for number in try rows.integers(0, 0) { wereOpen[Int(number) - 1] = true }
    return wereOpen
  }

  private static let known = PreparedStatement(
    """
    SELECT k.number FROM unnest($1, $2, $3) WITH ORDINALITY AS k (hub, id, day, number),
      LATERAL (SELECT 1 FROM ledger_sends AS s WHERE s.hub = k.hub AND s.id = k.id AND s.day = k.day LIMIT 1) AS s
    """)

  /// The indexes of the sends that exist.
  static func known(_ keys: [BatchPlan.Key], on connection: PostgreSQLConnection) throws -> Set<Int> {
    let rows = try connection.query(known, parameters(keys))
    return Set(try (0..<rows.count).map { Int(try rows.integer($0, 0)) - 1 })
  }

  private static let updating = PreparedStatement(
    """
    UPDATE ledger_sends AS s SET
      known_parts = u.known_parts, settled_parts = u.settled_parts, digest = u.digest, state = u.state,
      settled_at = u.settled_at, counts = u.counts, devices = u.devices, failures = u.failures, times = u.times
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      AS u (hub, id, day, known_parts, settled_parts, digest, state, settled_at, counts, devices, failures, times)
    WHERE s.hub = u.hub AND s.id = u.id AND s.day = u.day
    """)

  /// Updates the columns that items change.
  static func update(_ changed: [(key: BatchPlan.Key, row: SendRow)], on connection: PostgreSQLConnection) throws {
    let knownParts: [Int64?] = changed.map { Int64($0.row.knownParts) }
    let settledParts: [Int64?] = changed.map { Int64($0.row.sum.items) }
    let digests: [Int64?] = changed.map { $0.row.digest }
    let states: [Int16?] = changed.map { $0.row.sum.storedState }
    let times: [Int64?] = changed.map { $0.row.sum.settledAt?.milliseconds }
    let counts: [[UInt8]?] = changed.map { $0.row.sum.storedCounts }
    let devices: [[UInt8]?] = changed.map { $0.row.sum.storedDevices }
    try connection.query(
      updating,
      parameters(changed.map(\.key)) + [
        .int8s(knownParts), .int8s(settledParts), .int8s(digests), .int2s(states), .int8s(times), .byteas(counts),
        .byteas(devices), .byteas(changed.map(\.row.sum.storedFailures)),
        .byteas(changed.map(\.row.sum.storedTimes)),
      ])
  }
}
