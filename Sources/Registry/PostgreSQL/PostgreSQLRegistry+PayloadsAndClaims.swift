package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: SecurePayloadStore {
  private static let insertPayload = PreparedStatement(
    """
    INSERT INTO secure_payloads AS p (hub, id, recipient, payload, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, id) DO UPDATE SET expires_at = greatest(p.expires_at, excluded.expires_at)
      WHERE p.recipient = excluded.recipient AND p.payload = excluded.payload
    """)
  private static let selectPayload = PreparedStatement(
    """
    SELECT payload, is_read FROM secure_payloads WHERE hub = $1 AND id = $2 AND recipient = $3 AND expires_at > $4 FOR UPDATE
    """)
  private static let markPayloadRead = PreparedStatement(
    "UPDATE secure_payloads SET is_read = true WHERE hub = $1 AND id = $2")
  private static let deletePayload = PreparedStatement("DELETE FROM secure_payloads WHERE hub = $1 AND id = $2")

  package func store(
    _ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime
  ) async throws {
    guard recipient.isStorable else {
      throw RegistryError(.forbidden, "recipient: must not contain control characters")
    }
    try await write { connection in
      // As `bytea`, because PostgreSQL refuses a NUL in a text and a payload may contain one.
      let rows = try connection.query(
        Self.insertPayload,
        [.text(hub.rawValue), .id(id), .text(recipient), .bytea(Array(payload.utf8)), .time(expiresAt)])
      guard rows.affected == 1 else { throw RegistryError(.conflict, "another payload has this id") }
    }
  }

  package func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? {
    guard recipient.isStorable else { return nil }
    return try await write(at: now) { connection in
      let rows = try connection.query(Self.selectPayload, [.text(hub.rawValue), .id(id), .text(recipient), .time(now)])
      guard rows.count == 1 else { return nil }
      let payload = SecurePayload(id: id, payload: try rows.text(0, 0), isRead: try rows.bool(0, 1))
      if isDelivered, !payload.isRead { try connection.query(Self.markPayloadRead, [.text(hub.rawValue), .id(id)]) }
      return payload
    }
  }

  package func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    try await write { connection in _ = try connection.query(Self.deletePayload, [.text(hub.rawValue), .id(id)]) }
  }
}

extension PostgreSQLRegistry: SendClaimStore {
  private static let upsertClaim = PreparedStatement(
    """
    INSERT INTO send_claims AS c (hub, key, request, at, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, key) DO UPDATE SET request = excluded.request, at = excluded.at, expires_at = excluded.expires_at,
      is_settled = false
      WHERE c.expires_at <= excluded.at
    """)
  private static let selectClaim = PreparedStatement(
    "SELECT request, at, is_settled FROM send_claims WHERE hub = $1 AND key = $2")
  private static let settleClaim = PreparedStatement(
    "UPDATE send_claims SET is_settled = true WHERE hub = $1 AND key = $2 AND at = $3")

  package func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
    try await write(at: claim.at) { connection in
      let (hub, key) = (Parameter.text(claim.hub.rawValue), Parameter.bytea(claim.key))
      let rows = try connection.query(
        Self.upsertClaim, [hub, key, .bytea(claim.request), .time(claim.at), .time(claim.at + lifetime)])
      if rows.affected == 1 {
        return SendClaim(hub: claim.hub, key: claim.key, request: claim.request, at: claim.at)
      }
      let held = try connection.query(Self.selectClaim, [hub, key])
      // A purge has removed the row in between.
      guard held.count == 1 else { throw PostgreSQLError.overtaken }
      return SendClaim(
        hub: claim.hub, key: claim.key, request: try held.raw(0, 0), at: UnixTime(milliseconds: try held.integer(0, 1)),
        isSettled: try held.bool(0, 2))
    }
  }

  package func settle(_ claim: SendClaim) async throws {
    try await write { connection in
      _ = try connection.query(Self.settleClaim, [.text(claim.hub.rawValue), .bytea(claim.key), .time(claim.at)])
    }
  }
}
