import FanfareCore
import Store

/// The items of one send in PostgreSQL. The caller's transaction has locked the send's row.
struct PostgreSQLAttemptTable: SendItems {
  private let connection: PostgreSQLConnection
  private let send: [Parameter]

  init(_ connection: PostgreSQLConnection, send: BatchPlan.Key) {
    self.connection = connection
    self.send = [.int4(send.day), .text(send.hub.rawValue), .uuid(high: send.id.high, low: send.id.low)]
  }

  private static let selectRanges = PreparedStatement(
    """
    SELECT part, span, digest FROM ledger_parts WHERE day = $1 AND hub = $2 AND send = $3 AND attempt = $4
      AND part >= coalesce((
        SELECT max(part) FROM ledger_parts WHERE day = $1 AND hub = $2 AND send = $3 AND attempt = $4 AND part <= $5
      ), $5)
      AND part < $6 AND part + span > $5 ORDER BY part
    """)
  private static let addParts = PreparedStatement(
    """
    INSERT INTO ledger_parts (day, hub, send, attempt, part, span, digest)
    SELECT $1, $2, $3, $4, part, span, $7 FROM unnest($5, $6) AS u (part, span)
    """)
  private static let selectSum = PreparedStatement(
    """
    SELECT settled_parts, state, settled_at, counts, devices, failures, times FROM ledger_attempts
    WHERE day = $1 AND hub = $2 AND send = $3 AND attempt = $4
    """)
  private static let putSum = PreparedStatement(
    """
    INSERT INTO ledger_attempts
      (day, hub, send, attempt, settled_parts, state, settled_at, counts, devices, failures, times)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (day, hub, send, attempt) DO UPDATE SET settled_parts = excluded.settled_parts, state = excluded.state,
      settled_at = excluded.settled_at, counts = excluded.counts, devices = excluded.devices,
      failures = excluded.failures, times = excluded.times
    """)
  private static let noteOthers = PreparedStatement(
    """
    INSERT INTO ledger_duplicates (day, hub, send, part, digest)
    SELECT day, hub, send, part, digest FROM ledger_parts WHERE day = $1 AND hub = $2 AND send = $3 AND attempt <> $4
    ON CONFLICT DO NOTHING
    """)
  private static let removeOthers = PreparedStatement(
    "DELETE FROM ledger_parts WHERE day = $1 AND hub = $2 AND send = $3 AND attempt <> $4")
  private static let removeSums = PreparedStatement(
    "DELETE FROM ledger_attempts WHERE day = $1 AND hub = $2 AND send = $3")
  private static let removeRedeemed = PreparedStatement(
    """
    DELETE FROM ledger_duplicates AS d USING ledger_parts AS p
    WHERE d.day = $1 AND d.hub = $2 AND d.send = $3 AND p.day = $1 AND p.hub = $2 AND p.send = $3 AND p.attempt = $4
      AND p.digest = d.digest
    """)
  private static let isNoted = PreparedStatement(
    "SELECT 1 FROM ledger_duplicates WHERE day = $1 AND hub = $2 AND send = $3 AND part = $4 AND digest = $5")
  private static let note = PreparedStatement(
    "INSERT INTO ledger_duplicates (day, hub, send, part, digest) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING")

  /// The row before the item's first one may reach into the item; all others begin in it.
  func stored(_ item: LedgerEntry.Settlement) throws -> [StoredRange] {
    let range = item.range
    let rows = try connection.query(
      Self.selectRanges,
      send + [.bytea(item.attemptKey), .int8(Int64(range.lowerBound)), .int8(Int64(range.upperBound))])
    return try (0..<rows.count).map { row in
      guard let items = StoredRange.items(try rows.integer(row, 0), try rows.integer(row, 1)) else {
        throw SendRow.damaged
      }
      return StoredRange(items: items, digest: try rows.integer(row, 2))
    }
  }

  func add(_ item: LedgerEntry.Settlement, _ ranges: [Range<Int>], maximumDevices: Int) throws -> ItemSum {
    let attempt = send + [.bytea(item.attemptKey)]
    try connection.query(
      Self.addParts,
      attempt + [
        .int8s(ranges.map { Int64($0.lowerBound) }), .int4s(ranges.map { Int32($0.count) }), .int8(item.digest),
      ])
    let rows = try connection.query(Self.selectSum, attempt)
    var sum = rows.count == 0 ? ItemSum() : try SendTable.sum(items: try rows.integer(0, 0), rows, 0, from: 1)
    sum.add(item, items: ranges.reduce(0) { $0 + $1.count }, maximumDevices: maximumDevices)
    try connection.query(
      Self.putSum,
      attempt + [
        .int8(Int64(sum.items)), .int2(sum.storedState), .int8(sum.settledAt?.milliseconds), .bytea(sum.storedCounts),
        .bytea(sum.storedDevices), .bytea(sum.storedFailures), .bytea(sum.storedTimes),
      ])
    return sum
  }

  func noteOthers(than item: LedgerEntry.Settlement) throws -> Int {
    try connection.query(Self.noteOthers, send + [.bytea(item.attemptKey)]).affected
  }

  func close(with item: LedgerEntry.Settlement) throws {
    try connection.query(Self.removeOthers, send + [.bytea(item.attemptKey)])
    try connection.query(Self.removeSums, send)
  }

  func redeem(_ item: LedgerEntry.Settlement) throws -> Int {
    try connection.query(Self.removeRedeemed, send + [.bytea(item.attemptKey)]).affected
  }

  func isDuplicate(_ item: LedgerEntry.Settlement) throws -> Bool {
    try connection.query(Self.isNoted, send + [.int8(Int64(item.part)), .int8(item.digest)]).count > 0
  }

  func noteDuplicate(_ digest: Int64, part: Int) throws -> Int {
    try connection.query(Self.note, send + [.int8(Int64(part)), .int8(digest)]).affected
  }
}
