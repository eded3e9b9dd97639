package import FanfareCore
import Store

extension RegistryDatabase: SendClaimStore {
  private static let upsertClaim = PreparedStatement(
    """
    INSERT INTO send_claims AS c (hub, key, request, at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hub, key) DO UPDATE SET request = excluded.request, at = excluded.at, expires_at = excluded.expires_at,
      is_settled = false
      WHERE c.expires_at <= excluded.at
    """)
  private static let selectClaim = PreparedStatement(
    "SELECT request, at, is_settled FROM send_claims WHERE hub = ?1 AND key = ?2")
  private static let settleClaim = PreparedStatement(
    "UPDATE send_claims SET is_settled = true WHERE hub = ?1 AND key = ?2 AND at = ?3")

  package func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
    try await write(at: claim.at) { session in
      let key: [Value] = [.hub(claim.hub), .bytes(claim.key)]
      let claimed = try session.run(
        Self.upsertClaim, key + [.bytes(claim.request), .time(claim.at), .time(claim.at + lifetime)])
      if claimed == 1 { return SendClaim(hub: claim.hub, key: claim.key, request: claim.request, at: claim.at) }
      let held = try session.first(Self.selectClaim, key) { row in
        SendClaim(
          hub: claim.hub, key: claim.key, request: try row.bytes(0), at: try row.time(1), isSettled: try row.bool(2))
      }
      // A purge has removed the row in between.
      guard let held else { throw StoreError.overtaken }
      return held
    }
  }

  package func settle(_ claim: SendClaim) async throws {
    _ = try await write { try $0.run(Self.settleClaim, [.hub(claim.hub), .bytes(claim.key), .time(claim.at)]) }
  }
}
