import FanfareCore
import Foundation
import GRDB
import Store

/// Removes sends older than the retention, a limited number in each transaction. Totals are not reduced.
struct Retention: Sendable {
  /// The shortest retention of a send that does not settle: the longest time to live, and a week for its settlement.
  static let open: Duration = .seconds(Int64(SendRequest.maximumTimeToLive) + 7 * 86_400)
  /// The smallest limit of rows that one transaction may remove.
  static let minimum = 500
  /// The rows that one transaction examines for sends that do not settle.
  private static let stride = 200

  private let period: Duration
  /// The latest time in any record so far, at most the present. Age is measured from here and not from the clock: a
  /// ledger rebuilt from an old log must not remove a send before its later records have been read.
  private var newest: UnixTime?
  /// The position of the search for sends that do not settle.
  private var cursor: (hub: Int64, id: Data) = (0, Data())

  init(period: Duration) {
    self.period = period
  }

  /// Removes expired sends after a batch: at most twice the batch's entries, or `minimum`.
  mutating func run(_ db: Database, after batch: LedgerBatch, at now: UnixTime) throws {
    let times = batch.entries.map { min($0.time, now) }
    guard let newest = (times + [newest].compactMap { $0 }).max() else { return }
    self.newest = newest
    let limit = max(Self.minimum, 2 * batch.entries.count)
    let select = try db.cachedStatement(
      sql: """
        SELECT \(Self.columns) FROM sends
        WHERE is_announced = 1 AND settled_parts >= known_parts AND settled_at < ? ORDER BY settled_at LIMIT ?
        """)
    let oldest = newest + (.zero - period)
    for row in try GRDB.Row.fetchAll(select, arguments: [oldest.milliseconds, limit]) { try Self.remove(row, from: db) }
    try removeOpen(db, before: newest + (.zero - max(period, Self.open)))
  }

  private mutating func removeOpen(_ db: Database, before oldest: UnixTime) throws {
    let select = try db.cachedStatement(
      sql: "SELECT \(Self.columns) FROM sends WHERE (hub, id) > (?, ?) ORDER BY hub, id LIMIT ?")
    let rows = try GRDB.Row.fetchAll(select, arguments: [cursor.hub, cursor.id, Self.stride])
    for row in rows where (row[3] as Int64) < oldest.milliseconds { try Self.remove(row, from: db) }
    cursor = rows.count == Self.stride ? rows.last.map { ($0[0], $0[1]) } ?? (0, Data()) : (0, Data())
  }

  /// The third is whether items of the send may be stored. Dead letters have them because they may be redriven.
  private static let columns = """
    hub, id, known_parts > 1 OR state IS \(StoredCode.code(StatusRecord.State.deadLettered)), accepted_at,
    (SELECT name FROM hubs WHERE hubs.id = sends.hub)
    """

  private static func remove(_ row: GRDB.Row, from db: Database) throws {
    let id: Data = row[1]
    try db.cachedStatement(sql: "DELETE FROM sends WHERE hub = ? AND id = ?").execute(arguments: [row[0] as Int64, id])
    guard let send = SendID(bytes: id), let hub = HubName(row[4] as String) else { throw SendRow.damaged }
    let day = BatchPlan.day(of: UnixTime(milliseconds: row[3]))
    try AttemptTable(Session(.sqlite(db)), BatchPlan.Key(hub: hub, id: send, day: day)).remove(hasItems: row[2])
  }
}
