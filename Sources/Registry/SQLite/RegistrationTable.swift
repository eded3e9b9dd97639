import FanfareCore
import Foundation
import GRDB

/// The registrations of one hub, read and written within one transaction. Every statement is prepared once per
/// connection.
struct RegistrationTable {
  private let db: Database
  private let hub: HubName

  /// Looks at a hub's rows through a connection that is inside a transaction.
  init(_ db: Database, _ hub: HubName) {
    self.db = db
    self.hub = hub
  }

  /// What has that id and has not expired; a pending one is found whatever its age where no moment is given.
  func find(_ id: RegistrationID, at now: UnixTime? = nil) throws -> StoredRegistration? {
    try find("id = ?", id.data, at: now)
  }

  /// What holds the handle (in its normal form) and has not expired.
  func find(handle: String, at now: UnixTime) throws -> StoredRegistration? {
    try find("handle = ?", handle, at: now)
  }

  /// What holds the handle (in its normal form), whatever its age.
  func find(holderOf handle: String) throws -> StoredRegistration? {
    try find("handle = ?", handle, at: nil)
  }

  /// The registration of the installation.
  func find(installation: String) throws -> StoredRegistration? {
    try find("installation = ?", installation, at: nil)
  }

  /// Issues an id, or gives an issued one its full time again. No live row may hold the handle, if one is given.
  func putPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws {
    if let handle {
      // What has expired but is still there holds nothing any more.
      try execute(
        "DELETE FROM registrations WHERE hub = ? AND handle = ? AND expires_at <= ?",
        [hub.rawValue, handle, now.milliseconds])
    }
    let sql = """
      INSERT INTO registrations (hub, id, handle, registered_at, expires_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (hub, id) DO UPDATE SET registered_at = excluded.registered_at, expires_at = excluded.expires_at
      """
    let expiry = now + RegistrationRules.pendingLifetime
    try execute(sql, [hub.rawValue, id.data, handle, now.milliseconds, expiry.milliseconds])
  }

  /// Creates the registration or replaces what was stored under its id. The handle is taken from whatever else holds
  /// it.
  func put(_ registration: Registration, replacing stored: StoredRegistration?) throws {
    try release(registration)
    let sql = """
      INSERT INTO registrations (hub, id, user, platform, handle, installation, tags, registered_at, created_at,
        seen_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (hub, id) DO UPDATE SET user = excluded.user, platform = excluded.platform, handle = excluded.handle,
        installation = excluded.installation, tags = excluded.tags, registered_at = excluded.registered_at,
        created_at = excluded.created_at, seen_at = excluded.seen_at, expires_at = NULL
      """
    try execute(
      sql,
      [
        hub.rawValue, registration.id.data, registration.user, Int64(PlatformSet(registration.platform).rawValue),
        registration.handle,
        registration.installation, registration.tags.joined(separator: "\n"), registration.registeredAt.milliseconds,
        registration.createdAt.milliseconds,
        registration.seenAt > registration.registeredAt ? registration.seenAt.milliseconds : nil,
      ])
    let former = stored?.registration?.tags ?? []
    // The usual case is an app that starts and says again what it said before.
    if !former.elementsEqual(registration.tags, by: { $0.hasSameBytes(as: $1) }) {
      try deleteTags(former, of: registration.id)
    }
    let tagging = """
      INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (tag, hub, registration) DO UPDATE SET platform = excluded.platform, handle = excluded.handle,
        registered_at = excluded.registered_at, created_at = excluded.created_at
      """
    for tag in registration.tags {
      try execute(
        tagging,
        [
          hub.rawValue, tag, registration.id.data, Int64(PlatformSet(registration.platform).rawValue),
          registration.handle,
          registration.registeredAt.milliseconds, registration.createdAt.milliseconds,
        ])
    }
  }

  /// Removes a registration and leaves a tombstone.
  func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone) throws {
    try execute("DELETE FROM registrations WHERE hub = ? AND id = ?", [hub.rawValue, stored.id.data])
    try deleteTags(stored.registration?.tags ?? [], of: stored.id)
    try execute(
      "INSERT OR REPLACE INTO tombstones (hub, registration, cause, detail, at) VALUES (?, ?, ?, ?, ?)",
      [hub.rawValue, stored.id.data, tombstone.cause.rawValue, tombstone.detail, tombstone.at.milliseconds])
  }

  /// Why the registration is gone.
  func tombstone(of id: RegistrationID) throws -> Tombstone? {
    let sql = "SELECT cause, detail, at FROM tombstones WHERE hub = ? AND registration = ?"
    let statement = try db.cachedStatement(sql: sql)
    guard let row = try Row.fetchOne(statement, arguments: [hub.rawValue, id.data]),
      let cause = Tombstone.Cause(rawValue: row[0])
    else { return nil }
    return Tombstone(cause: cause, detail: row[1], at: UnixTime(milliseconds: row[2]))
  }

  /// Forgets that the registration is gone: it is back.
  func deleteTombstone(of id: RegistrationID) throws {
    try execute("DELETE FROM tombstones WHERE hub = ? AND registration = ?", [hub.rawValue, id.data])
  }

  /// Takes the registration's handle from whatever else holds it, an expired id included.
  private func release(_ registration: Registration) throws {
    guard let holder = try find(holderOf: registration.handle), holder.id != registration.id else { return }
    try remove(
      holder, leaving: Tombstone(cause: .merged, detail: registration.id.description, at: registration.registeredAt))
  }

  private func deleteTags(_ tags: [String], of id: RegistrationID) throws {
    for tag in tags {
      try execute("DELETE FROM tags WHERE hub = ? AND tag = ? AND registration = ?", [hub.rawValue, tag, id.data])
    }
  }

  private func find(_ condition: String, _ key: some DatabaseValueConvertible, at now: UnixTime?) throws
    -> StoredRegistration?
  {
    let sql = """
      SELECT id, user, platform, handle, installation, tags, registered_at, expires_at, created_at, seen_at
      FROM registrations
      WHERE hub = ? AND \(condition)
      """
    guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, key]) else { return nil }
    let stored = try StoredRegistration(row, hub: hub)
    if let now, let expiry = stored.expiresAt, expiry <= now { return nil }
    return stored
  }

  private func execute(_ sql: String, _ arguments: StatementArguments) throws {
    try db.cachedStatement(sql: sql).execute(arguments: arguments)
  }
}
