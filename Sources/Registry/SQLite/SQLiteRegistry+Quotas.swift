package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: CallerQuotaStore {
  package func reserve(_ demand: RateDemand, of rate: CallerRate, at now: UnixTime) async throws -> RateGrant {
    try await write(at: now) { db in
      let key: StatementArguments = [rate.hub.rawValue, rate.user, rate.name.rawValue]
      let select = try db.cachedStatement(
        sql: "SELECT reserved_until FROM caller_quotas WHERE hub = ? AND username = ? AND quota = ?")
      let former = try Int64.fetchOne(select, arguments: key) ?? 0
      let grant = rate.limit.grant(demand, behind: former, at: now)
      guard grant.permits > 0 else { return grant }
      let end = grant.reservedUntil
      let upsert = try db.cachedStatement(
        sql: """
          INSERT INTO caller_quotas (hub, username, quota, reserved_until, idle_at) VALUES (?, ?, ?, ?, ?)
          ON CONFLICT (hub, username, quota)
          DO UPDATE SET reserved_until = excluded.reserved_until, idle_at = excluded.idle_at
          """)
      try upsert.execute(arguments: key + [end, UnixTime(microsecondsRoundedUp: end).milliseconds])
      return grant
    }
  }

  package func giveBack(_ returns: [RateReturn]) async throws {
    try await write { db in
      let update = try db.cachedStatement(
        sql: """
          UPDATE caller_quotas SET reserved_until = reserved_until - ?4, idle_at = (reserved_until - ?4) / 1000 + 1
          WHERE hub = ?1 AND username = ?2 AND quota = ?3
          """)
      for part in returns {
        try update.execute(arguments: [part.hub.rawValue, part.user, part.name.rawValue, part.microseconds])
      }
    }
  }

  package func open(
    _ broadcast: BroadcastID, by user: String, until end: UnixTime, limit: Int, at now: UnixTime
  ) async throws -> Bool {
    try await write(at: now) { db in
      let key: StatementArguments = [broadcast.hub.rawValue, user]
      func count() throws -> Int {
        let select = try db.cachedStatement(
          sql: "SELECT count(*) FROM open_broadcasts WHERE hub = ? AND username = ? AND ends_at > ? AND send <> ?")
        return try Int.fetchOne(select, arguments: key + [now.milliseconds, Data(broadcast.send.bytes)]) ?? 0
      }
      if try count() >= limit {
        try db.cachedStatement(sql: Self.closeEnded).execute(arguments: key + [Data(SendID.neverBegun(at: now).bytes)])
        guard try count() < limit else { return false }
      }
      let insert = try db.cachedStatement(
        sql: """
          INSERT INTO open_broadcasts (hub, username, send, ends_at) VALUES (?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET ends_at = excluded.ends_at
          """)
      try insert.execute(arguments: key + [Data(broadcast.send.bytes), end.milliseconds])
      return true
    }
  }

  /// Deletes those of a user's open broadcasts that are finished or cancelled, or that never began.
  private static let closeEnded = """
    DELETE FROM open_broadcasts AS o WHERE hub = ?1 AND username = ?2 AND (
      EXISTS (SELECT 1 FROM broadcasts AS b WHERE b.hub = o.hub AND b.send = o.send AND (b.course = 'cancelled'
        OR (b.pages > 0
          AND b.pages <= (SELECT count(*) FROM broadcast_pages AS p WHERE p.hub = o.hub AND p.send = o.send))))
      OR EXISTS (SELECT 1 FROM scheduled_sends AS s WHERE s.hub = o.hub AND s.id = o.send AND s.state = 'cancelled')
      OR (o.send < ?3 AND NOT EXISTS (SELECT 1 FROM broadcasts AS b WHERE b.hub = o.hub AND b.send = o.send)
        AND NOT EXISTS (SELECT 1 FROM scheduled_sends AS s WHERE s.hub = o.hub AND s.id = o.send)))
    """

  package func close(_ broadcast: BroadcastID, by user: String) async throws {
    try await write { db in
      try db.cachedStatement(sql: "DELETE FROM open_broadcasts WHERE hub = ? AND username = ? AND send = ?")
        .execute(arguments: [broadcast.hub.rawValue, user, Data(broadcast.send.bytes)])
    }
  }

  package func estimatedDevices(of audiences: [Audience], hub: HubName) async throws -> [Int] {
    if let known = AudienceCosts.cached(audiences, hub: hub, weights: tagWeights) { return known }
    return try await read { db in
      try AudienceCosts.estimate(audiences, weights: tagWeights, in: SQLiteRegistrationTable(db, hub))
    }
  }

  package func quotaUse(
    hub: HubName, user: String?, after: String?, limit: Int, at now: UnixTime
  ) async throws -> [QuotaUse] {
    try await read { db in
      let users: [String]
      if let user {
        users = [user]
      } else {
        let sql = """
          SELECT username FROM caller_quotas WHERE hub = ?1 AND username > ?2 AND idle_at > ?3
          UNION SELECT username FROM open_broadcasts WHERE hub = ?1 AND username > ?2 AND ends_at > ?3
          UNION SELECT username FROM scheduled_use WHERE hub = ?1 AND username > ?2
          ORDER BY 1 LIMIT ?4
          """
        users = try String.fetchAll(db, sql: sql, arguments: [hub.rawValue, after ?? "", now.milliseconds, limit])
      }
      return try users.map { try Self.use(db, hub, $0, at: now) }
    }
  }

  private static func use(_ db: Database, _ hub: HubName, _ user: String, at now: UnixTime) throws -> QuotaUse {
    let key: StatementArguments = [hub.rawValue, user]
    let rates = try Row.fetchAll(
      db, sql: "SELECT quota, reserved_until FROM caller_quotas WHERE hub = ? AND username = ?", arguments: key)
    let open = try Int.fetchOne(
      db, sql: "SELECT count(*) FROM open_broadcasts WHERE hub = ? AND username = ? AND ends_at > ?",
      arguments: key + [now.milliseconds])
    let scheduled = try scheduledUse(db, hub, user)
    let devices = try SQLiteRegistrationTable(db, hub).deviceCount(of: user, limit: QuotaUse.mostDevices)
    return QuotaUse(
      user: user,
      reservedUntil: Dictionary(
        rates.compactMap { row in QuotaName(rawValue: row[0]).map { ($0, row[1]) } }, uniquingKeysWith: max),
      stocks: [.openBroadcasts: open ?? 0, .scheduledSends: scheduled.sends, .scheduledBytes: scheduled.bytes],
      devices: devices)
  }

  /// Counts what a sender's scheduled sends take.
  private static func scheduledUse(
    _ db: Database, _ hub: HubName, _ sender: String
  ) throws -> (sends: Int, bytes: Int) {
    let statement = try db.cachedStatement(
      sql: """
        SELECT count(*) FILTER (WHERE state <> 'cancelled'), coalesce(sum(coalesce(bytes, 1024)), 0)
        FROM scheduled_sends WHERE hub = ? AND sender = ? AND state IN ('held', 'paused', 'cancelled')
        """)
    guard let row = try Row.fetchOne(statement, arguments: [hub.rawValue, sender]) else { return (0, 0) }
    return (row[0], row[1])
  }

  /// See ``ScheduledUse/add(_:bytes:within:at:recount:)``.
  static func addScheduled(
    _ sends: Int, bytes: Int, of sender: String, _ hub: HubName, within limit: ScheduledSendLimit, at now: UnixTime,
    _ db: Database
  ) throws -> QuotaName? {
    let key: StatementArguments = [hub.rawValue, sender]
    let select = try db.cachedStatement(
      sql: "SELECT sends, bytes, counted_at FROM scheduled_use WHERE hub = ? AND username = ?")
    var use: ScheduledUse
    if let row = try Row.fetchOne(select, arguments: key) {
      use = ScheduledUse(sends: row[0], bytes: row[1], countedAt: row[2])
    } else {
      let counted = try scheduledUse(db, hub, sender)
      use = ScheduledUse(sends: counted.sends, bytes: counted.bytes, countedAt: now.milliseconds)
    }
    let refusal = try use.add(sends, bytes: bytes, within: limit, at: now) { try scheduledUse(db, hub, sender) }
    try db.cachedStatement(
      sql: """
        INSERT INTO scheduled_use (hub, username, sends, bytes, counted_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET sends = excluded.sends, bytes = excluded.bytes, counted_at = excluded.counted_at
        """
    ).execute(arguments: key + [use.sends, use.bytes, use.countedAt])
    return refusal
  }
}
