package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: SecurePayloadStore {
  package func store(
    _ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime
  ) async throws {
    guard recipient.isStorable else {
      throw RegistryError(.forbidden, "recipient: must not contain control characters")
    }
    try await write { db in
      // A blob, because SQLite ends a text at a NUL and a payload may contain one.
      let sql = """
        INSERT INTO secure_payloads (hub, id, recipient, payload, expires_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (hub, id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)
          WHERE recipient = excluded.recipient AND payload = excluded.payload
        """
      try db.cachedStatement(sql: sql)
        .execute(arguments: [hub.rawValue, id.data, recipient, Data(payload.utf8), expiresAt.milliseconds])
      guard db.changesCount == 1 else { throw RegistryError(.conflict, "another payload has this id") }
    }
  }

  package func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? {
    guard recipient.isStorable else { return nil }
    return try await write(at: now) { db in
      let select = try db.cachedStatement(
        sql:
          "SELECT payload, is_read FROM secure_payloads WHERE hub = ? AND id = ? AND recipient = ? AND expires_at > ?")
      guard let row = try Row.fetchOne(select, arguments: [hub.rawValue, id.data, recipient, now.milliseconds]) else {
        return nil
      }
      let payload = SecurePayload(id: id, payload: String(decoding: row[0] as Data, as: UTF8.self), isRead: row[1])
      if isDelivered, !payload.isRead {
        try db.cachedStatement(sql: "UPDATE secure_payloads SET is_read = 1 WHERE hub = ? AND id = ?")
          .execute(arguments: [hub.rawValue, id.data])
      }
      return payload
    }
  }

  package func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    try await write { db in
      try db.cachedStatement(sql: "DELETE FROM secure_payloads WHERE hub = ? AND id = ?")
        .execute(arguments: [hub.rawValue, id.data])
    }
  }
}

extension SQLiteRegistry: SendClaimStore {
  package func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
    try await write(at: claim.at) { db in
      let insert = """
        INSERT INTO send_claims (hub, key, request, at, expires_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET request = excluded.request, at = excluded.at, expires_at = excluded.expires_at, is_settled = 0
        WHERE expires_at <= excluded.at
        """
      try db.cachedStatement(sql: insert).execute(arguments: [
        claim.hub.rawValue, Data(claim.key), Data(claim.request), claim.at.milliseconds,
        (claim.at + lifetime).milliseconds,
      ])
      let select = try db.cachedStatement(
        sql: "SELECT request, at, is_settled FROM send_claims WHERE hub = ? AND key = ?")
      guard let row = try Row.fetchOne(select, arguments: [claim.hub.rawValue, Data(claim.key)]) else {
        throw RegistryError(.unavailable, "the registry lost a claim of an idempotency key")
      }
      return SendClaim(
        hub: claim.hub, key: claim.key, request: Array(row[0] as Data), at: UnixTime(milliseconds: row[1]),
        isSettled: row[2])
    }
  }

  package func settle(_ claim: SendClaim) async throws {
    try await write { db in
      try db.cachedStatement(sql: "UPDATE send_claims SET is_settled = 1 WHERE hub = ? AND key = ? AND at = ?")
        .execute(arguments: [claim.hub.rawValue, Data(claim.key), claim.at.milliseconds])
    }
  }
}
