import FanfareCore
import PostgreSQL

/// Removes rows that nobody can see any more. They are ignored without it; it only gives the space back.
///
/// It reads keys and then deletes by key, which every distributed engine can do, and looks once more at the age of what
/// it deletes.
enum PostgreSQLPurge {
  private static let pending = PreparedStatement(
    "SELECT hub, id FROM registrations WHERE expires_at <= $1 LIMIT \(Purge.batch) FOR UPDATE SKIP LOCKED")
  private static let deletePending = PreparedStatement(
    "DELETE FROM registrations WHERE hub = $1 AND id = ANY ($2) AND expires_at <= $3 RETURNING id, handle")
  private static let deleteHandles = PreparedStatement(
    "DELETE FROM handles WHERE hub = $1 AND handle = ANY ($2) AND registration = ANY ($3)")
  private static let others = [
    expiring("secure_payloads", key: "id", "expires_at <= $1"), expiring("send_claims", key: "key", "expires_at <= $1"),
    expiring("broadcasts", key: "send", "touched_at < $1"),
    expiring("broadcast_pages", key: "send, page", "finished_at < $1"),
    expiring("tombstones", key: "registration", "at < $1"), expiring("scheduled_sends", key: "id", "forget_at <= $1"),
    expiring("import_batches", key: "file, first_byte", "finished_at < $1"),
  ]

  private static func expiring(_ table: String, key: String, _ condition: String) -> PreparedStatement {
    PreparedStatement(
      """
      DELETE FROM \(table)
      WHERE (hub, \(key)) IN (SELECT hub, \(key) FROM \(table) WHERE \(condition) LIMIT \(Purge.batch)) AND \(condition)
      """)
  }

  /// Removes a bounded number of expired rows; true when there may be more.
  static func run(
    _ connection: PostgreSQLConnection, at now: UnixTime, forgettingTombstonesBefore oldest: UnixTime
  ) throws -> Bool {
    let forgotten = now + (.zero - Purge.broadcastLifetime)
    var counts = [try purgePending(connection, at: now)]
    for (statement, moment) in zip(others, [now, now, forgotten, forgotten, oldest, now, forgotten]) {
      counts.append(try connection.query(statement, [.time(moment)]).affected)
    }
    return counts.contains(Purge.batch)
  }

  private static func purgePending(_ connection: PostgreSQLConnection, at now: UnixTime) throws -> Int {
    let rows = try connection.query(pending, [.time(now)])
    var ids: [String: [RegistrationID]] = [:]
    for row in 0..<rows.count { ids[try rows.text(row, 0), default: []].append(try rows.identifier(row, 1)) }
    for (hub, ids) in ids {
      let gone = try connection.query(deletePending, [.text(hub), .ids(ids), .time(now)])
      let handles = try (0..<gone.count).compactMap { try gone.optionalText($0, 1) }
      if !handles.isEmpty { try connection.query(deleteHandles, [.text(hub), .texts(handles), .ids(ids)]) }
    }
    return rows.count
  }
}
