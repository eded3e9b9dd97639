import FanfareCore
import PostgreSQL

/// Removes expired rows; see ``Purge``.
///
/// Reads keys and deletes by key, which every PostgreSQL-compatible engine can do, and checks the age again: a row may
/// have been renewed in between.
enum PostgreSQLPurge {
  private static let pending = PreparedStatement(
    "SELECT hub, id FROM registrations WHERE expires_at <= $1 LIMIT \(Purge.batch) FOR UPDATE SKIP LOCKED")
  private static let deletePending = PreparedStatement(
    "DELETE FROM registrations WHERE hub = $1 AND id = ANY ($2) AND expires_at <= $3 RETURNING id, handle")
  private static let deleteHandles = PreparedStatement(
    "DELETE FROM handles WHERE hub = $1 AND handle = ANY ($2) AND registration = ANY ($3)")
  private static let tables = Purge.tables.map { table in
    let (key, condition) = (table.key, "\(table.condition) $1")
    let statement = PreparedStatement(
      """
      DELETE FROM \(table.name)
      WHERE (hub, \(key)) IN (SELECT hub, \(key) FROM \(table.name) WHERE \(condition) LIMIT \(Purge.batch)) AND \(condition)
      """)
    return (table: table, delete: statement)
  }

  /// Removes a bounded number of expired rows. Returns the number for each table.
  static func run(_ connection: PostgreSQLConnection, _ schedule: PurgeSchedule, at now: UnixTime) throws -> [Int] {
    try [purgePending(connection, at: now)]
      + tables.map { try connection.query($0.delete, [.time(schedule.limit(of: $0.table, at: now))]).affected }
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
