package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: SendClaimStore {
  private static let upsert = PreparedStatement(
    """
    INSERT INTO send_claims AS c (hub, key, request, at, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, key) DO UPDATE SET request = excluded.request, at = excluded.at, expires_at = excluded.expires_at,
      is_settled = false
      WHERE c.expires_at <= excluded.at
    """)
  private static let select = PreparedStatement(
    "SELECT request, at, is_settled FROM send_claims WHERE hub = $1 AND key = $2")
  private static let settle = PreparedStatement(
    "UPDATE send_claims SET is_settled = true WHERE hub = $1 AND key = $2 AND at = $3")

  /// Makes the claim unless another one holds, and returns the one that does.
  package func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
    try await write(at: claim.at) { connection in
      let (hub, key) = (Parameter.text(claim.hub.rawValue), Parameter.bytea(claim.key))
      let rows = try connection.query(
        Self.upsert, [hub, key, .bytea(claim.request), .time(claim.at), .time(claim.at + lifetime)])
      if rows.affected == 1 {
        return SendClaim(hub: claim.hub, key: claim.key, request: claim.request, at: claim.at)
      }
      let held = try connection.query(Self.select, [hub, key])
      // It has been removed for its age in the meantime.
      guard held.count == 1 else { throw PostgreSQLError.overtaken }
      return SendClaim(
        hub: claim.hub, key: claim.key, request: try held.raw(0, 0), at: UnixTime(milliseconds: try held.integer(0, 1)),
        isSettled: try held.bool(0, 2))
    }
  }

  /// Remembers that all that was asked for is durable.
  package func settle(_ claim: SendClaim) async throws {
    try await write { connection in
      _ = try connection.query(Self.settle, [.text(claim.hub.rawValue), .bytea(claim.key), .time(claim.at)])
    }
  }
}
