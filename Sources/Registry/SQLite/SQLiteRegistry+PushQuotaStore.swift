package import FanfareCore
import GRDB

extension SQLiteRegistry: PushQuotaStore {
  /// Reserves pushes behind those that are reserved; see `PushQuotaStore`.
  package func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await write { db in
      let key: StatementArguments = [quota.hub.rawValue, Int64(PlatformSet(quota.platform).rawValue)]
      let select = try db.cachedStatement(sql: "SELECT reserved_until FROM push_quotas WHERE hub = ? AND platform = ?")
      let former = try Int64.fetchOne(select, arguments: key) ?? 0
      let (start, end) = quota.reservation(of: pushes, behind: former, at: now)
      let upsert = try db.cachedStatement(
        sql: """
          INSERT INTO push_quotas (hub, platform, reserved_until) VALUES (?, ?, ?)
          ON CONFLICT (hub, platform) DO UPDATE SET reserved_until = excluded.reserved_until
          """)
      try upsert.execute(arguments: key + [end])
      return UnixTime(milliseconds: (start + 999) / 1000)
    }
  }
}
