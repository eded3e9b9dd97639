package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: SecurePayloadStore {
  private static let insert = PreparedStatement(
    """
    INSERT INTO secure_payloads AS p (hub, id, recipient, payload, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, id) DO UPDATE SET expires_at = greatest(p.expires_at, excluded.expires_at)
      WHERE p.recipient = excluded.recipient AND p.payload = excluded.payload
    """)
  private static let select = PreparedStatement(
    """
    SELECT payload, is_read FROM secure_payloads WHERE hub = $1 AND id = $2 AND recipient = $3 AND expires_at > $4 FOR UPDATE
    """)
  private static let markRead = PreparedStatement(
    "UPDATE secure_payloads SET is_read = true WHERE hub = $1 AND id = $2")
  private static let delete = PreparedStatement("DELETE FROM secure_payloads WHERE hub = $1 AND id = $2")

  /// Stores a payload for one recipient, or keeps it for longer where it is there already. Throws `.conflict` when
  /// something else has the id.
  package func store(
    _ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime
  ) async throws {
    guard recipient.isStorable else {
      throw RegistryError(.forbidden, "recipient: must not contain control characters")
    }
    try await write { connection in
      // As bytes: a payload may contain anything, and texts must not hold a NUL.
      let rows = try connection.query(
        Self.insert,
        [.text(hub.rawValue), .id(id), .text(recipient), .bytea(Array(payload.utf8)), .time(expiresAt)])
      guard rows.affected == 1 else { throw RegistryError(.conflict, "there is a payload of that id already") }
    }
  }

  /// The payload as it was before this call, marked read where it is delivered; see `SecurePayloadStore`.
  package func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? {
    guard recipient.isStorable else { return nil }
    return try await write(at: now) { connection in
      let rows = try connection.query(Self.select, [.text(hub.rawValue), .id(id), .text(recipient), .time(now)])
      guard rows.count == 1 else { return nil }
      let payload = SecurePayload(id: id, payload: try rows.text(0, 0), isRead: try rows.bool(0, 1))
      if isDelivered, !payload.isRead { try connection.query(Self.markRead, [.text(hub.rawValue), .id(id)]) }
      return payload
    }
  }

  /// Takes back a payload that could not be announced.
  package func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    try await write { connection in _ = try connection.query(Self.delete, [.text(hub.rawValue), .id(id)]) }
  }
}
