package import FanfareCore
import Store

extension RegistryDatabase: SecurePayloadStore {
  private static let insertPayload = PreparedStatement(
    """
    INSERT INTO secure_payloads AS p (hub, id, recipient, payload, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hub, id) DO UPDATE SET expires_at = greatest(p.expires_at, excluded.expires_at)
      WHERE p.recipient = excluded.recipient AND p.payload = excluded.payload
    """)
  private static let selectPayload = PreparedStatement(
    """
    SELECT payload, is_read FROM secure_payloads
    WHERE hub = ?1 AND id = ?2 AND recipient = ?3 AND expires_at > ?4 FOR UPDATE
    """)
  private static let markPayloadRead = PreparedStatement(
    "UPDATE secure_payloads SET is_read = true WHERE hub = ?1 AND id = ?2")
  private static let deletePayload = PreparedStatement("DELETE FROM secure_payloads WHERE hub = ?1 AND id = ?2")

  package func store(
    _ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime
  ) async throws {
    guard recipient.isStorable else {
      throw RegistryError(.forbidden, "recipient: must not contain control characters")
    }
    try await write { session in
      // As bytes, because a payload may contain a NUL, which PostgreSQL refuses in a text and SQLite takes for its end.
      let stored = try session.run(
        Self.insertPayload,
        [.hub(hub), .id(id), .text(recipient), .bytes(Array(payload.utf8)), .time(expiresAt)])
      guard stored == 1 else { throw RegistryError(.conflict, "another payload has this id") }
    }
  }

  package func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? {
    guard recipient.isStorable else { return nil }
    return try await write(at: now) { session in
      let payload = try session.first(Self.selectPayload, [.hub(hub), .id(id), .text(recipient), .time(now)]) { row in
        SecurePayload(id: id, payload: String(decoding: try row.bytes(0), as: UTF8.self), isRead: try row.bool(1))
      }
      if isDelivered, payload?.isRead == false { try session.run(Self.markPayloadRead, [.hub(hub), .id(id)]) }
      return payload
    }
  }

  package func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    _ = try await write { try $0.run(Self.deletePayload, [.hub(hub), .id(id)]) }
  }
}
