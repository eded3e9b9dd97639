package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: APIKeyStore {
  private static let columns =
    "id, username, scopes, comment, digest, created_at, expires_at, last_used_day"
  private static let countKeys = PreparedStatement("SELECT count(*) FROM api_keys WHERE hub = $1")
  private static let insertKey = PreparedStatement(
    """
    INSERT INTO api_keys (hub, id, username, scopes, comment, digest, created_at, expires_at, last_used_day)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (hub, id) DO NOTHING
    """)
  private static let selectKey = PreparedStatement("SELECT \(columns) FROM api_keys WHERE hub = $1 AND id = $2")
  private static let selectKeys = PreparedStatement(
    "SELECT \(columns) FROM api_keys WHERE hub = $1 ORDER BY created_at, id")
  private static let deleteKey = PreparedStatement("DELETE FROM api_keys WHERE hub = $1 AND id = $2")
  private static let markKeyUsed = PreparedStatement(
    """
    UPDATE api_keys SET last_used_day = $3 WHERE hub = $1 AND id = $2 AND coalesce(last_used_day < $3, true)
    """)

  package func addAPIKey(_ key: StoredAPIKey) async throws {
    guard key.isStorable else { throw RegistryError(.forbidden, "comment: must not contain control characters") }
    try await write { connection in
      let hub = Parameter.text(key.hub.rawValue)
      guard try connection.query(Self.countKeys, [hub]).integer(0, 0) < StoredAPIKey.maximumCount else {
        throw StoredAPIKey.tooMany
      }
      let rows = try connection.query(
        Self.insertKey,
        [
          hub, .text(key.id), .text(key.user), .text(key.scopeText), .text(key.comment),
          .bytea(key.digest), .time(key.createdAt), .time(key.expiresAt), .time(key.lastUsedDay),
        ])
      guard rows.affected == 1 else { throw StoredAPIKey.exists }
    }
  }

  package func apiKey(_ id: String, hub: HubName) async throws -> StoredAPIKey? {
    guard id.isStorable else { return nil }
    return try await read { connection in
      let rows = try connection.query(Self.selectKey, [.text(hub.rawValue), .text(id)])
      return rows.count == 1 ? try StoredAPIKey(rows, 0, hub: hub) : nil
    }
  }

  package func apiKeys(hub: HubName) async throws -> [StoredAPIKey] {
    try await read { connection in
      let rows = try connection.query(Self.selectKeys, [.text(hub.rawValue)])
      return try (0..<rows.count).map { try StoredAPIKey(rows, $0, hub: hub) }
    }
  }

  package func removeAPIKey(_ id: String, hub: HubName) async throws -> Bool {
    guard id.isStorable else { return false }
    return try await write { connection in
      try connection.query(Self.deleteKey, [.text(hub.rawValue), .text(id)]).affected == 1
    }
  }

  package func markAPIKeyUsed(_ id: String, hub: HubName, day: UnixTime) async throws {
    guard id.isStorable else { return }
    try await write { connection in
      _ = try connection.query(Self.markKeyUsed, [.text(hub.rawValue), .text(id), .time(day)])
    }
  }
}

extension StoredAPIKey {
  fileprivate init(_ rows: ResultRows, _ row: Int, hub: HubName) throws {
    self.init(
      hub: hub, id: try rows.text(row, 0), user: try rows.text(row, 1),
      scopes: Self.scopes(in: try rows.text(row, 2)), comment: try rows.text(row, 3),
      digest: try rows.raw(row, 4), createdAt: UnixTime(milliseconds: try rows.integer(row, 5)),
      expiresAt: try rows.optionalInteger(row, 6).map { UnixTime(milliseconds: $0) },
      lastUsedDay: try rows.optionalInteger(row, 7).map { UnixTime(milliseconds: $0) })
  }
}
