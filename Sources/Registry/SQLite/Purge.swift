import FanfareCore
import GRDB

/// Removes rows that nobody can see any more. They are ignored without it; it only gives the space back.
enum Purge {
  /// How often one process does it.
  static let interval: Duration = .seconds(60)
  /// The most rows of one kind removed at once: a transaction that somebody waits for stays short.
  static let batch = 500
  /// How long it is remembered that a scheduled send has gone: until every ledger knows it.
  static let firedLifetime: Duration = .seconds(86_400)
  /// How long broadcasts are remembered: longer than any send may live.
  static let broadcastLifetime: Duration = .seconds(SendRequest.maximumTimeToLive + 3 * 86_400)

  /// Removes a bounded number of expired rows; true when there may be more.
  static func run(_ db: Database, at now: UnixTime, forgettingTombstonesBefore oldest: UnixTime) throws -> Bool {
    let forgotten = (now + (.zero - broadcastLifetime)).milliseconds
    let now = now.milliseconds
    return try [
      delete(db, from: "registrations", key: "hub, id", where: "expires_at <= ?", now),
      delete(db, from: "secure_payloads", key: "hub, id", where: "expires_at <= ?", now),
      delete(db, from: "send_claims", key: "hub, key", where: "expires_at <= ?", now),
      delete(db, from: "scheduled_sends", key: "hub, id", where: "forget_at <= ?", now),
      delete(db, from: "broadcasts", key: "hub, send", where: "touched_at < ?", forgotten),
      delete(
        db, from: "broadcast_pages", key: "hub, send, page", where: "finished_at < ?", forgotten),
      delete(db, from: "import_batches", key: "hub, file, first_byte", where: "finished_at < ?", forgotten),
      delete(db, from: "tombstones", key: "hub, registration", where: "at < ?", oldest.milliseconds),
    ].contains(batch)
  }

  private static func delete(
    _ db: Database, from table: String, key: String, where condition: String, _ moment: Int64
  ) throws -> Int {
    let sql = "DELETE FROM \(table) WHERE (\(key)) IN (SELECT \(key) FROM \(table) WHERE \(condition) LIMIT \(batch))"
    try db.cachedStatement(sql: sql).execute(arguments: [moment])
    return db.changesCount
  }
}
