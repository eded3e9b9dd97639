package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: SecurePayloadStore {
  /// Stores a payload for one recipient, or keeps it for longer where it is there already. Throws `.conflict` when
  /// something else has the id.
  package func store(
    _ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime
  ) async throws {
    guard recipient.isStorable else {
      throw RegistryError(.forbidden, "recipient: must not contain control characters")
    }
    try await write { db in
      // As bytes: a payload may contain anything, and texts end at a NUL.
      let sql = """
        INSERT INTO secure_payloads (hub, id, recipient, payload, expires_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (hub, id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)
          WHERE recipient = excluded.recipient AND payload = excluded.payload
        """
      try db.cachedStatement(sql: sql)
        .execute(arguments: [hub.rawValue, id.data, recipient, Data(payload.utf8), expiresAt.milliseconds])
      guard db.changesCount == 1 else { throw RegistryError(.conflict, "there is a payload of that id already") }
    }
  }

  /// The payload as it was before this call, marked read where it is delivered; see `SecurePayloadStore`.
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

  /// Takes back a payload that could not be announced.
  package func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    try await write { db in
      try db.cachedStatement(sql: "DELETE FROM secure_payloads WHERE hub = ? AND id = ?")
        .execute(arguments: [hub.rawValue, id.data])
    }
  }
}
