import FanfareCore
import Store
import Synchronization

/// The rules for removing expired rows. Expired rows are ignored before that; purging only frees the space.
enum Purge {
  /// The interval between purges of one process.
  static let interval: Duration = .seconds(60)
  /// The maximum number of rows removed from one table at once, so that the transaction stays short.
  static let batch = 500
  /// How long the row of a fired scheduled send is kept: until every ledger knows the send.
  static let firedLifetime: Duration = .seconds(86_400)
  /// How long broadcasts are kept: longer than the maximum time to live of a send.
  static let broadcastLifetime: Duration = .seconds(SendRequest.maximumTimeToLive + 3 * 86_400)

  /// A table whose expired rows are removed by a condition on a time.
  struct Table: Sendable {
    let name: String
    /// The columns of the primary key after `hub`.
    let key: String
    /// The condition up to the time that it is compared with.
    let condition: String
    /// The age at which rows expire; nil for the tombstones' configured lifetime.
    let lifetime: Duration?
  }

  /// All tables that expire in the same way in every store; issued registrations are not among them.
  static let tables = [
    Table(name: "secure_payloads", key: "id", condition: "expires_at <=", lifetime: .zero),
    Table(name: "send_claims", key: "key", condition: "expires_at <=", lifetime: .zero),
    Table(name: "broadcasts", key: "send", condition: "touched_at <", lifetime: broadcastLifetime),
    Table(name: "broadcast_pages", key: "send, page", condition: "finished_at <", lifetime: broadcastLifetime),
    Table(name: "tombstones", key: "registration", condition: "at <", lifetime: nil),
    Table(name: "scheduled_sends", key: "id", condition: "forget_at <=", lifetime: .zero),
    Table(name: "caller_quotas", key: "username, quota", condition: "idle_at <=", lifetime: .zero),
    Table(name: "open_broadcasts", key: "username, send", condition: "ends_at <=", lifetime: .zero),
    Table(name: "scheduled_use", key: "username", condition: "counted_at <", lifetime: broadcastLifetime),
    Table(name: "quarantine", key: "id", condition: "ends_at <=", lifetime: .zero),
    // A name whose last version is purged begins again with version 1, which a worker could confuse with the former one
    // only if it has run and remembered that for over a year.
    Table(name: "templates", key: "name, version", condition: "removed_at <", lifetime: HubTemplate.retention),
    Table(name: "import_batches", key: "file, first_byte", condition: "finished_at <", lifetime: broadcastLifetime),
  ]

  /// Removes a bounded number of expired rows. Returns the number for each table.
  ///
  /// Reads keys and deletes by key, which every PostgreSQL-compatible engine can do. A row may have been renewed in
  /// between: issued ids are locked when they are read, and for the others the age is checked again.
  static func run(_ session: Session, _ schedule: PurgeSchedule, at now: UnixTime) throws -> [Int] {
    try [purgePending(session, at: now)]
      + zip(tables, deletions).map { table, delete in
        try session.run(delete, [.time(schedule.limit(of: table, at: now))])
      }
  }

  private static func purgePending(_ session: Session, at now: UnixTime) throws -> Int {
    let rows = try session.all(pending, [.time(now)]) { row in
      (hub: Value.text(try row.text(0)), id: try row.id(1) as RegistrationID, handle: try row.optionalText(2))
    }
    try session.run(RegistrationTable.delete, each: rows.map { [$0.hub, .id($0.id)] })
    if session.hasRowLocks {
      try session.run(
        RegistrationTable.deleteHandle,
        each: rows.compactMap { row in row.handle.map { handle -> [Value] in [row.hub, .text(handle), .id(row.id)] } })
    }
    return rows.count
  }

  private static let deletions = tables.map { table in
    let condition = "\(table.condition) ?1"
    return PreparedStatement(
      """
      DELETE FROM \(table.name) WHERE (hub, \(table.key)) IN
        (SELECT hub, \(table.key) FROM \(table.name) WHERE \(condition) LIMIT \(batch)) AND \(condition)
      """)
  }
  private static let pending = PreparedStatement(
    "SELECT hub, id, handle FROM registrations WHERE expires_at <= ?1 LIMIT \(batch) FOR UPDATE SKIP LOCKED")
}

/// Decides when a process purges its store.
final class PurgeSchedule: Sendable {
  private let tombstoneLifetime: Duration
  private let last = Mutex<UnixTime?>(nil)

  init(tombstoneLifetime: Duration) {
    self.tombstoneLifetime = tombstoneLifetime
  }

  /// Whether a purge is due. The caller then purges.
  func begin(at now: UnixTime) -> Bool {
    last.withLock { last in
      // If the clock was set back, purge at once instead of waiting for it to catch up.
      if let last, now >= last, now - last < Purge.interval { return false }
      last = now
      return true
    }
  }

  /// Records the result of a purge: after a full batch there may be more, and the next change purges again.
  func finish(removed counts: [Int]) {
    if counts.contains(Purge.batch) { last.withLock { $0 = nil } }
  }

  /// The time with which a table's condition is compared.
  func limit(of table: Purge.Table, at now: UnixTime) -> UnixTime {
    now + (.zero - (table.lifetime ?? tombstoneLifetime))
  }
}
