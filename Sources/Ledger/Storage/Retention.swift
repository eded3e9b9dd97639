import FanfareCore
import Foundation
import GRDB

/// Removes sends that nobody will ask for any more, a bounded number in each transaction. Totals keep what they have
/// counted.
struct Retention: Sendable {
  /// How long a send that does not end is kept, whatever the configuration: the longest time to live, and a week for it
  /// to be settled.
  static let open: Duration = .seconds(Int64(SendRequest.maximumTimeToLive) + 7 * 86_400)
  /// The fewest rows that one transaction may remove.
  static let minimum = 500
  /// Rows that one transaction looks at in search of sends that do not end.
  private static let stride = 200

  private let period: Duration
  /// The latest time that any record has spoken of, but never one in the future. Age is measured from here and not from
  /// the clock: a ledger that is rebuilt from an old log must not drop a send before its repetitions have come by.
  private var newest: UnixTime?
  /// Where the search for sends that do not end has come to.
  private var cursor: (hub: Int64, id: Data) = (0, Data())

  init(period: Duration) {
    self.period = period
  }

  /// Removes what is due after a batch; at most twice as many rows as the batch had entries, or `minimum`.
  mutating func run(_ db: Database, after batch: LedgerBatch, at now: UnixTime) throws {
    let times = batch.entries.map { min($0.time, now) }
    guard let newest = (times + [newest].compactMap { $0 }).max() else { return }
    self.newest = newest
    let limit = max(Self.minimum, 2 * batch.entries.count)
    let select = try db.cachedStatement(
      sql: """
        SELECT hub, id, \(Self.mayHaveParts) FROM sends
        WHERE is_announced = 1 AND settled_parts >= known_parts AND settled_at < ? ORDER BY settled_at LIMIT ?
        """)
    let oldest = newest + (.zero - period)
    for row in try Row.fetchAll(select, arguments: [oldest.milliseconds, limit]) { try Self.remove(row, from: db) }
    try removeOpen(db, before: newest + (.zero - max(period, Self.open)))
  }

  private mutating func removeOpen(_ db: Database, before oldest: UnixTime) throws {
    let select = try db.cachedStatement(
      sql:
        "SELECT hub, id, \(Self.mayHaveParts), accepted_at FROM sends WHERE (hub, id) > (?, ?) ORDER BY hub, id LIMIT ?"
    )
    let rows = try Row.fetchAll(select, arguments: [cursor.hub, cursor.id, Self.stride])
    for row in rows where (row[3] as Int64) < oldest.milliseconds { try Self.remove(row, from: db) }
    cursor = rows.count == Self.stride ? rows.last.map { ($0[0], $0[1]) } ?? (0, Data()) : (0, Data())
  }

  /// Whether items of the send may be kept: of one that was set aside too, as it may be put back.
  private static let mayHaveParts = "known_parts > 1 OR state IS \(StoredCode.code(StatusRecord.State.deadLettered))"

  private static func remove(_ row: Row, from db: Database) throws {
    let key: StatementArguments = [row[0] as Int64, row[1] as Data]
    try db.cachedStatement(sql: "DELETE FROM sends WHERE hub = ? AND id = ?").execute(arguments: key)
    try db.cachedStatement(sql: "DELETE FROM duplicates WHERE hub = ? AND send = ?").execute(arguments: key)
    guard row[2] as Bool else { return }
    try db.cachedStatement(sql: "DELETE FROM parts WHERE hub = ? AND send = ?").execute(arguments: key)
    try db.cachedStatement(sql: "DELETE FROM attempts WHERE hub = ? AND send = ?").execute(arguments: key)
  }
}
