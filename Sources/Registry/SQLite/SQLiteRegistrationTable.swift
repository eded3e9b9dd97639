import FanfareCore
import Foundation
import GRDB

/// The registrations of one hub within one transaction. Each statement is prepared once per connection.
struct SQLiteRegistrationTable: RegistrationTable {
  let db: Database
  let hub: HubName

  init(_ db: Database, _ hub: HubName) {
    self.db = db
    self.hub = hub
  }

  func registration(_ id: RegistrationID) throws -> Registration? { try find(id)?.registration }

  func registration(holding address: String) throws -> Registration? { try find(holderOf: address)?.registration }

  func registrations(ofHandle handle: String) throws -> [Registration] {
    let sql = """
      SELECT \(StoredRegistration.sqliteColumns) FROM registrations
      WHERE hub = ? AND handle >= ? AND handle < ? AND user IS NOT NULL ORDER BY handle
      """
    return try Row.fetchAll(
      db.cachedStatement(sql: sql), arguments: [hub.rawValue, handle, TemplateRow.end(ofHandle: handle)]
    ).compactMap { try StoredRegistration($0, hub: hub).registration }
  }

  func registration(ofInstallation installation: String) throws -> Registration? {
    try find(installation: installation)?.registration
  }

  func registrations(_ ids: [RegistrationID]) throws -> [Registration] { try ids.compactMap { try registration($0) } }

  func holders(of handles: [String], at now: UnixTime) throws -> [StoredRegistration] {
    try handles.compactMap { try find("handle = ?", $0) }.filter { $0.isLive(at: now) }
  }

  func claim(_ id: RegistrationID, address: String, at now: UnixTime) throws -> RegistrationClaim {
    let stored = try find(id).flatMap { $0.isLive(at: now) ? $0 : nil }
    return RegistrationClaim(id: id, stored: stored, holder: try holder(of: address, stored) ?? id)
  }

  func claim(installation: String, handle: String, at now: UnixTime) throws -> RegistrationClaim {
    let stored = try find(installation: installation)
    let id = try stored?.id ?? idOfNew(installation: installation, at: now)
    return RegistrationClaim(id: id, stored: stored, holder: try holder(of: handle, stored) ?? id)
  }

  func findToRemove(_ id: RegistrationID, at now: UnixTime) throws -> StoredRegistration? {
    try find(id).flatMap { $0.isLive(at: now) ? $0 : nil }
  }

  /// The row with the id, whether it has expired or not.
  func find(_ id: RegistrationID) throws -> StoredRegistration? { try find("id = ?", id.data) }

  /// The row that holds the address, whether it has expired or not.
  func find(holderOf address: String) throws -> StoredRegistration? { try find("handle = ?", address) }

  /// The row of the installation without a template.
  func find(installation: String) throws -> StoredRegistration? { try find("installation = ?", installation) }

  func insertPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws {
    if let handle {
      // An expired row that was not purged yet would violate the unique index.
      try execute(
        "DELETE FROM registrations WHERE hub = ? AND handle = ? AND expires_at <= ?",
        [hub.rawValue, handle, now.milliseconds])
    }
    try upsertPending(id, handle: handle, at: now)
  }

  func renewPending(_ id: RegistrationID, at now: UnixTime) throws { try upsertPending(id, handle: nil, at: now) }

  func put(_ registration: Registration, in claim: RegistrationClaim) throws {
    if claim.holder != registration.id, let holder = try find(claim.holder) {
      try remove(
        holder, leaving: Tombstone(cause: .merged, detail: registration.id.description, at: registration.registeredAt))
    }
    let sql = """
      INSERT INTO registrations (hub, id, user, platform, handle, installation, tags, registered_at, created_at,
        seen_at, profile, valid_until)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (hub, id) DO UPDATE SET user = excluded.user, platform = excluded.platform, handle = excluded.handle,
        installation = excluded.installation, tags = excluded.tags, registered_at = excluded.registered_at,
        created_at = excluded.created_at, seen_at = excluded.seen_at, profile = excluded.profile,
        valid_until = excluded.valid_until, expires_at = NULL
      """
    try execute(
      sql,
      [
        hub.rawValue, registration.id.data, registration.user, registration.storedPlatform, registration.address,
        registration.heldInstallation, registration.tags.joined(separator: "\n"),
        registration.registeredAt.milliseconds, registration.createdAt.milliseconds,
        registration.seenAt > registration.registeredAt ? registration.seenAt.milliseconds : nil,
        registration.profileText, registration.validUntil?.milliseconds,
      ])
    let former = claim.stored?.registration?.tags ?? []
    // Usually an app starts and registers with the same tags again.
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
          hub.rawValue, tag, registration.id.data, registration.storedPlatform, registration.address,
          registration.registeredAt.milliseconds, registration.createdAt.milliseconds,
        ])
    }
  }

  func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone) throws {
    try execute("DELETE FROM registrations WHERE hub = ? AND id = ?", [hub.rawValue, stored.id.data])
    try deleteTags(stored.registration?.tags ?? [], of: stored.id)
    try execute(
      "INSERT OR REPLACE INTO tombstones (hub, registration, cause, detail, at, username) VALUES (?, ?, ?, ?, ?, ?)",
      [
        hub.rawValue, stored.id.data, tombstone.cause.rawValue, tombstone.detail, tombstone.at.milliseconds,
        stored.registration?.user,
      ])
  }

  func holdings(of tag: String, limit: Int) throws -> [Holding] {
    let sql = "SELECT registration, handle FROM tags WHERE tag = ? AND hub = ? ORDER BY registration LIMIT ?"
    let statement = try db.cachedStatement(sql: sql)
    let rows = try Row.fetchCursor(statement, arguments: [tag, hub.rawValue, limit])
    var holdings: [Holding] = []
    while let row = try rows.next() {
      holdings.append(Holding(try statement.registrationID(at: 0), address: row[1]))
    }
    return holdings
  }

  func tags(withPrefix prefix: String, limit: Int) throws -> [String] {
    guard prefix.isStorable else { return [] }
    // Each step searches the key, which begins with the tag, for the next tag.
    let sql = """
      WITH RECURSIVE found(tag) AS (
        SELECT min(tag) FROM tags WHERE tag >= ?2
        UNION ALL SELECT (SELECT min(tag) FROM tags WHERE tag > found.tag) FROM found
          WHERE substr(found.tag, 1, length(?2)) = ?2
      ) SELECT tag FROM found WHERE substr(tag, 1, length(?2)) = ?2
        AND EXISTS (SELECT 1 FROM tags WHERE tag = found.tag AND hub = ?1) LIMIT ?3
      """
    return try String.fetchAll(db.cachedStatement(sql: sql), arguments: [hub.rawValue, prefix, limit])
  }

  func quarantined(_ key: QuarantineKey, at now: UnixTime) throws -> Registration? {
    let (column, value): (String, any DatabaseValueConvertible) =
      switch key {
      case .id(let id): ("id", id.data)
      case .handle(let handle): ("handle", handle)
      case .installation(let installation): ("installation", installation)
      }
    let sql = """
      SELECT \(Self.quarantineColumns) FROM quarantine
      WHERE hub = ? AND \(column) = ? AND ends_at > ? ORDER BY dropped_at DESC LIMIT 1
      """
    return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, value, now.milliseconds])
      .flatMap { try StoredRegistration($0, hub: hub).registration }
  }

  func quarantinedTemplates(ofHandle handle: String, at now: UnixTime) throws -> [Registration] {
    let sql = """
      SELECT \(Self.quarantineColumns) FROM quarantine WHERE hub = ? AND handle > ? AND handle < ? AND ends_at > ?
      """
    return try Row.fetchAll(
      db.cachedStatement(sql: sql),
      arguments: [hub.rawValue, handle, TemplateRow.end(ofHandle: handle), now.milliseconds]
    ).compactMap { try StoredRegistration($0, hub: hub).registration }
  }

  /// The columns of a quarantined registration, as `StoredRegistration` reads them.
  static let quarantineColumns = """
    id, username, platform, handle, installation, tags, registered_at, NULL, created_at, seen_at, profile, valid_until
    """

  func quarantine(_ registration: Registration, at now: UnixTime, until end: UnixTime) throws {
    let sql = """
      INSERT OR REPLACE INTO quarantine (hub, id, username, platform, handle, installation, tags, registered_at,
        created_at, seen_at, dropped_at, ends_at, profile, valid_until)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """
    try execute(
      sql,
      [
        hub.rawValue, registration.id.data, registration.user, registration.storedPlatform, registration.address,
        registration.heldInstallation, registration.tags.joined(separator: "\n"),
        registration.registeredAt.milliseconds, registration.createdAt.milliseconds, registration.seenAt.milliseconds,
        now.milliseconds, end.milliseconds, registration.profileText, registration.validUntil?.milliseconds,
      ])
  }

  func endQuarantine(of id: RegistrationID) throws {
    try execute("DELETE FROM quarantine WHERE hub = ? AND id = ?", [hub.rawValue, id.data])
    try deleteTombstone(of: id)
  }

  func claimVacant(_ registration: Registration, at now: UnixTime) throws -> RegistrationClaim? {
    guard try find(registration.id) == nil, try find(holderOf: registration.address) == nil,
      try registration.heldInstallation.map({ try find(installation: $0) == nil }) ?? true
    else { return nil }
    return RegistrationClaim(id: registration.id, stored: nil, holder: registration.id)
  }

  /// The tombstone of the registration.
  func tombstone(of id: RegistrationID) throws -> Tombstone? {
    let sql = "SELECT cause, detail, at FROM tombstones WHERE hub = ? AND registration = ?"
    guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, id.data]),
      let cause = Tombstone.Cause(rawValue: row[0])
    else { return nil }
    return Tombstone(cause: cause, detail: row[1], at: UnixTime(milliseconds: row[2]))
  }

  /// Deletes the tombstone of a registration that exists again.
  func deleteTombstone(of id: RegistrationID) throws {
    try execute("DELETE FROM tombstones WHERE hub = ? AND registration = ?", [hub.rawValue, id.data])
  }

  func scan(
    seenBefore moment: UnixTime, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) throws -> ExpiryScan {
    let sql = """
      SELECT id, user IS NOT NULL
        AND (max(registered_at, coalesce(seen_at, 0)) < ? OR valid_until IS NOT NULL AND valid_until <= ?)
      FROM registrations
      WHERE hub = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?
      """
    let statement = try db.cachedStatement(sql: sql)
    let rows = try Row.fetchCursor(
      statement,
      arguments: [
        moment.milliseconds, now.milliseconds, hub.rawValue, slice.first.data, slice.last.data, limit,
      ])
    return try ExpiryScan(of: slice, limit: limit) {
      try rows.next().map { (try statement.registrationID(at: 0), $0[1]) }
    }
  }

  /// The id of the row that holds the handle: `stored`, if it does, needs no look-up.
  private func holder(of handle: String, _ stored: StoredRegistration?) throws -> RegistrationID? {
    if let stored, let held = stored.handle, held.hasSameBytes(as: handle) { return stored.id }
    return try find(holderOf: handle)?.id
  }

  private func upsertPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws {
    let sql = """
      INSERT INTO registrations (hub, id, handle, registered_at, expires_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (hub, id) DO UPDATE SET registered_at = excluded.registered_at, expires_at = excluded.expires_at
      """
    let expiry = now + RegistrationRules.pendingLifetime
    try execute(sql, [hub.rawValue, id.data, handle, now.milliseconds, expiry.milliseconds])
  }

  private func deleteTags(_ tags: [String], of id: RegistrationID) throws {
    for tag in tags {
      try execute("DELETE FROM tags WHERE hub = ? AND tag = ? AND registration = ?", [hub.rawValue, tag, id.data])
    }
  }

  private func find(_ condition: String, _ key: some DatabaseValueConvertible) throws -> StoredRegistration? {
    let sql = """
      SELECT \(StoredRegistration.sqliteColumns)
      FROM registrations
      WHERE hub = ? AND \(condition)
      """
    return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, key])
      .map { try StoredRegistration($0, hub: hub) }
  }

  private func execute(_ sql: String, _ arguments: StatementArguments) throws {
    try db.cachedStatement(sql: sql).execute(arguments: arguments)
  }
}
