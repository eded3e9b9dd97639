package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: APIKeyStore {
  package func addAPIKey(_ key: StoredAPIKey) async throws {
    guard key.isStorable else { throw RegistryError(.forbidden, "comment: must not contain control characters") }
    try await write { db in
      let count = try db.cachedStatement(sql: "SELECT count(*) FROM api_keys WHERE hub = ?")
      guard try Int.fetchOne(count, arguments: [key.hub.rawValue]) ?? 0 < StoredAPIKey.maximumCount else {
        throw StoredAPIKey.tooMany
      }
      let sql = """
        INSERT INTO api_keys (hub, id, user, scopes, comment, digest, created_at, expires_at, last_used_day)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
        """
      try db.cachedStatement(sql: sql)
        .execute(arguments: [
          key.hub.rawValue, key.id, key.user, key.scopeText, key.comment, Data(key.digest),
          key.createdAt.milliseconds, key.expiresAt?.milliseconds, key.lastUsedDay?.milliseconds,
        ])
      guard db.changesCount == 1 else { throw StoredAPIKey.exists }
    }
  }

  package func apiKey(_ id: String, hub: HubName) async throws -> StoredAPIKey? {
    guard id.isStorable else { return nil }
    return try await read { db in
      let select = try db.cachedStatement(
        sql: "SELECT \(StoredAPIKey.sqliteColumns) FROM api_keys WHERE hub = ? AND id = ?")
      return try Row.fetchOne(select, arguments: [hub.rawValue, id]).map { StoredAPIKey($0, hub: hub) }
    }
  }

  package func apiKeys(hub: HubName) async throws -> [StoredAPIKey] {
    try await read { db in
      let select = try db.cachedStatement(
        sql: "SELECT \(StoredAPIKey.sqliteColumns) FROM api_keys WHERE hub = ? ORDER BY created_at, id")
      return try Row.fetchAll(select, arguments: [hub.rawValue]).map { StoredAPIKey($0, hub: hub) }
    }
  }

  package func removeAPIKey(_ id: String, hub: HubName) async throws -> Bool {
    guard id.isStorable else { return false }
    return try await write { db in
      try db.cachedStatement(sql: "DELETE FROM api_keys WHERE hub = ? AND id = ?")
        .execute(arguments: [hub.rawValue, id])
      return db.changesCount == 1
    }
  }

  package func markAPIKeyUsed(_ id: String, hub: HubName, day: UnixTime) async throws {
    guard id.isStorable else { return }
    try await write { db in
      let sql = """
        UPDATE api_keys SET last_used_day = ? WHERE hub = ? AND id = ? AND coalesce(last_used_day < ?, 1)
        """
      try db.cachedStatement(sql: sql)
        .execute(arguments: [day.milliseconds, hub.rawValue, id, day.milliseconds])
    }
  }
}

extension StoredAPIKey {
  /// The columns that `init(_:hub:)` reads.
  fileprivate static let sqliteColumns = "id, user, scopes, comment, digest, created_at, expires_at, last_used_day"

  fileprivate init(_ row: Row, hub: HubName) {
    self.init(
      hub: hub, id: row[0], user: row[1], scopes: Self.scopes(in: row[2]),
      comment: row[3], digest: Array(row[4] as Data), createdAt: UnixTime(milliseconds: row[5]),
      expiresAt: (row[6] as Int64?).map { UnixTime(milliseconds: $0) },
      lastUsedDay: (row[7] as Int64?).map { UnixTime(milliseconds: $0) })
  }
}
