package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: PushQuotaStore {
  private static let lockQuota = PreparedStatement(
    "SELECT reserved_until FROM push_quotas WHERE hub = $1 AND platform = $2 FOR UPDATE")
  private static let insertQuota = PreparedStatement(
    "INSERT INTO push_quotas (hub, platform, reserved_until) VALUES ($1, $2, 0) ON CONFLICT (hub, platform) DO NOTHING")
  private static let updateQuota = PreparedStatement(
    "UPDATE push_quotas SET reserved_until = $3 WHERE hub = $1 AND platform = $2")

  /// Reserves pushes behind those that are reserved; see `PushQuotaStore`.
  package func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await write { connection in
      let key: [Parameter] = [.text(quota.hub.rawValue), .platform(quota.platform)]
      var rows = try connection.query(Self.lockQuota, key)
      if rows.count == 0 {
        try connection.query(Self.insertQuota, key)
        rows = try connection.query(Self.lockQuota, key)
      }
      let (start, end) = quota.reservation(of: pushes, behind: try rows.integer(0, 0), at: now)
      try connection.query(Self.updateQuota, key + [.int8(end)])
      return UnixTime(milliseconds: (start + 999) / 1000)
    }
  }
}
