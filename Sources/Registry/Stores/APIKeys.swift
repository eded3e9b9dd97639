package import FanfareCore
import Store

extension RegistryDatabase: APIKeyStore {
  private static let columns = "id, username, scopes, comment, digest, created_at, expires_at, last_used_day"
  private static let countKeys = PreparedStatement("SELECT count(*) FROM api_keys WHERE hub = ?1")
  private static let insertKey = PreparedStatement(
    """
    INSERT INTO api_keys (hub, \(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (hub, id) DO NOTHING
    """)
  private static let selectKey = PreparedStatement("SELECT \(columns) FROM api_keys WHERE hub = ?1 AND id = ?2")
  private static let selectKeys = PreparedStatement(
    "SELECT \(columns) FROM api_keys WHERE hub = ?1 ORDER BY created_at, id")
  private static let deleteKey = PreparedStatement("DELETE FROM api_keys WHERE hub = ?1 AND id = ?2")
  private static let markKeyUsed = PreparedStatement(
    """
    UPDATE api_keys SET last_used_day = ?3
    WHERE hub = ?1 AND id = ?2 AND (last_used_day IS NULL OR last_used_day < ?3)
    """)

  package func addAPIKey(_ key: StoredAPIKey) async throws {
    guard key.isStorable else { throw RegistryError(.forbidden, "comment: must not contain control characters") }
    try await write { session in
      let count = try session.first(Self.countKeys, [.hub(key.hub)]) { try $0.int(0) } ?? 0
      guard count < StoredAPIKey.maximumCount else { throw StoredAPIKey.tooMany }
      let inserted = try session.run(
        Self.insertKey,
        [
          .hub(key.hub), .text(key.id), .text(key.user), .text(key.scopes.joined(separator: " ")), .text(key.comment),
          .bytes(key.digest), .time(key.createdAt), .time(key.expiresAt), .time(key.lastUsedDay),
        ])
      guard inserted == 1 else { throw StoredAPIKey.exists }
    }
  }

  package func apiKey(_ id: String, hub: HubName) async throws -> StoredAPIKey? {
    guard id.isStorable else { return nil }
    return try await read { session in
      try session.first(Self.selectKey, [.hub(hub), .text(id)]) { try StoredAPIKey($0, hub: hub) }
    }
  }

  package func apiKeys(hub: HubName) async throws -> [StoredAPIKey] {
    try await read { session in try session.all(Self.selectKeys, [.hub(hub)]) { try StoredAPIKey($0, hub: hub) } }
  }

  package func removeAPIKey(_ id: String, hub: HubName) async throws -> Bool {
    guard id.isStorable else { return false }
    return try await write { try $0.run(Self.deleteKey, [.hub(hub), .text(id)]) == 1 }
  }

  package func markAPIKeyUsed(_ id: String, hub: HubName, day: UnixTime) async throws {
    guard id.isStorable else { return }
    _ = try await write { try $0.run(Self.markKeyUsed, [.hub(hub), .text(id), .time(day)]) }
  }
}

/// The rules for stored API keys.
extension StoredAPIKey {
  /// Whether every text can be stored and read again unchanged.
  fileprivate var isStorable: Bool {
    id.isStorable && user.isStorable && comment.isStorable && comment.utf8.count <= Self.maximumCommentLength
      && scopes.allSatisfy { $0.isStorable && !$0.isEmpty && !$0.contains(" ") }
  }

  fileprivate static let tooMany = RegistryError(
    .conflict, "the hub has \(maximumCount) API keys, the most allowed; revoke those that are not used")
  fileprivate static let exists = RegistryError(.conflict, "an API key with this id exists")

  fileprivate init(_ row: Row, hub: HubName) throws {
    self.init(
      hub: hub, id: try row.text(0), user: try row.text(1),
      scopes: try row.text(2).split(separator: " ").map(String.init), comment: try row.text(3),
      digest: try row.bytes(4), createdAt: try row.time(5), expiresAt: try row.optionalTime(6),
      lastUsedDay: try row.optionalTime(7))
  }
}
