package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: SendClaimStore {
  /// Makes the claim unless another one holds, and returns the one that does.
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
        throw RegistryError(.unavailable, "the registry lost a claim")
      }
      return SendClaim(
        hub: claim.hub, key: claim.key, request: Array(row[0] as Data), at: UnixTime(milliseconds: row[1]),
        isSettled: row[2])
    }
  }

  /// Remembers that all that was asked for is durable.
  package func settle(_ claim: SendClaim) async throws {
    try await write { db in
      try db.cachedStatement(sql: "UPDATE send_claims SET is_settled = 1 WHERE hub = ? AND key = ? AND at = ?")
        .execute(arguments: [claim.hub.rawValue, Data(claim.key), claim.at.milliseconds])
    }
  }
}
