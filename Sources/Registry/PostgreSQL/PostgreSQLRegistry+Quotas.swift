package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: CallerQuotaStore {
  private static let lockRate = PreparedStatement(
    "SELECT reserved_until FROM caller_quotas WHERE hub = $1 AND username = $2 AND quota = $3 FOR UPDATE")
  private static let insertRate = PreparedStatement(
    """
    INSERT INTO caller_quotas (hub, username, quota, reserved_until, idle_at) VALUES ($1, $2, $3, 0, $4)
    ON CONFLICT (hub, username, quota) DO NOTHING
    """)
  private static let updateRate = PreparedStatement(
    "UPDATE caller_quotas SET reserved_until = $4, idle_at = $5 WHERE hub = $1 AND username = $2 AND quota = $3")
  private static let shortenRate = PreparedStatement(
    """
    UPDATE caller_quotas SET reserved_until = reserved_until - $4, idle_at = (reserved_until - $4) / 1000 + 1
    WHERE hub = $1 AND username = $2 AND quota = $3
    """)
  private static let selectRates = PreparedStatement(
    "SELECT quota, reserved_until FROM caller_quotas WHERE hub = $1 AND username = $2")
  private static let countOpen = PreparedStatement(
    "SELECT count(*) FROM open_broadcasts WHERE hub = $1 AND username = $2 AND ends_at > $3 AND send <> $4")
  private static let selectOpen = PreparedStatement(
    "SELECT send FROM open_broadcasts WHERE hub = $1 AND username = $2 LIMIT 10000")
  private static let selectEnded = PreparedStatement(
    "SELECT send, pages, course FROM broadcasts WHERE hub = $1 AND send = ANY ($2)")
  private static let countFinished = PreparedStatement(
    "SELECT send, count(*) FROM broadcast_pages WHERE hub = $1 AND send = ANY ($2) GROUP BY send")
  private static let selectScheduled = PreparedStatement(
    "SELECT id, state = 'cancelled' FROM scheduled_sends WHERE hub = $1 AND id = ANY ($2)")
  private static let deleteOpen = PreparedStatement(
    "DELETE FROM open_broadcasts WHERE hub = $1 AND username = $2 AND send = ANY ($3)")
  private static let insertOpen = PreparedStatement(
    """
    INSERT INTO open_broadcasts (hub, username, send, ends_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (hub, username, send) DO UPDATE SET ends_at = excluded.ends_at
    """)
  private static let selectUsers = PreparedStatement(
    """
    SELECT username FROM caller_quotas WHERE hub = $1 AND username > $2 AND idle_at > $3
    UNION SELECT username FROM open_broadcasts WHERE hub = $1 AND username > $2 AND ends_at > $3
    UNION SELECT username FROM scheduled_use WHERE hub = $1 AND username > $2
    ORDER BY 1 LIMIT $4
    """)

  package func reserve(_ demand: RateDemand, of rate: CallerRate, at now: UnixTime) async throws -> RateGrant {
    try await write(at: now) { connection in
      let key: [Parameter] = [.text(rate.hub.rawValue), .text(rate.user), .text(rate.name.rawValue)]
      let former = try Self.lockRate(key, at: now, connection)
      let grant = rate.limit.grant(demand, behind: former, at: now)
      if grant.permits > 0 {
        let end = grant.reservedUntil
        try connection.query(Self.updateRate, key + [.int8(end), .time(UnixTime(microsecondsRoundedUp: end))])
      }
      return grant
    }
  }

  package func giveBack(_ returns: [RateReturn]) async throws {
    // Sorted: two front ends that return to the same users then wait for each other without a deadlock.
    let sorted = returns.sorted {
      ($0.hub.rawValue, $0.user, $0.name.rawValue) < ($1.hub.rawValue, $1.user, $1.name.rawValue)
    }
    try await write { connection in
      for part in sorted {
        try connection.query(
          Self.shortenRate,
          [.text(part.hub.rawValue), .text(part.user), .text(part.name.rawValue), .int8(part.microseconds)])
      }
    }
  }

  /// Locks the row of a user's quota, which is created if missing. Returns the end of the reservations.
  private static func lockRate(
    _ key: [Parameter], at now: UnixTime, _ connection: PostgreSQLConnection
  ) throws -> Int64 {
    let rows = try connection.query(lockRate, key)
    if rows.count == 1 { return try rows.integer(0, 0) }
    // Idle from now on, so that a purge by another process does not take the row away at once.
    try connection.query(insertRate, key + [.time(now + .seconds(60))])
    let made = try connection.query(lockRate, key)
    guard made.count == 1 else { throw PostgreSQLError.overtaken }
    return try made.integer(0, 0)
  }

  package func open(
    _ broadcast: BroadcastID, by user: String, until end: UnixTime, limit: Int, at now: UnixTime
  ) async throws -> Bool {
    try await write(at: now) { connection in
      let key: [Parameter] = [.text(broadcast.hub.rawValue), .text(user)]
      // Two front ends must not both take the last place.
      _ = try Self.lockRate(key + [.text(QuotaName.openBroadcasts.rawValue)], at: now, connection)
      func count() throws -> Int64 {
        try connection.query(Self.countOpen, key + [.time(now), .id(broadcast.send)]).integer(0, 0)
      }
      if try count() >= limit {
        let ended = try Self.ended(key, at: now, connection)
        if !ended.isEmpty { try connection.query(Self.deleteOpen, key + [.ids(ended)]) }
        guard try count() < limit else { return false }
      }
      try connection.query(Self.insertOpen, key + [.id(broadcast.send), .time(end)])
      return true
    }
  }

  /// Those of a user's open broadcasts that are finished or cancelled, or that never began.
  private static func ended(
    _ key: [Parameter], at now: UnixTime, _ connection: PostgreSQLConnection
  ) throws -> [SendID] {
    let open = try connection.query(selectOpen, key)
    let sends: [SendID] = try (0..<open.count).map { try open.identifier($0, 0) }
    let known: [Parameter] = [key[0], .ids(sends)]
    var finished: [SendID: Int64] = [:]
    let pages = try connection.query(countFinished, known)
    for row in 0..<pages.count { finished[try pages.identifier(row, 0)] = try pages.integer(row, 1) }
    let plans = try connection.query(selectEnded, known)
    var ended: [SendID] = []
    var missing = Set(sends.filter { $0 < .neverBegun(at: now) })
    for row in 0..<plans.count {
      let (send, count): (SendID, Int64) = (try plans.identifier(row, 0), try plans.integer(row, 1))
      missing.remove(send)
      let isCancelled = try plans.text(row, 2) == BroadcastControl.State.cancelled.rawValue
      if isCancelled || (count > 0 && finished[send] ?? 0 >= count) { ended.append(send) }
    }
    let scheduled = try connection.query(selectScheduled, known)
    for row in 0..<scheduled.count {
      let send: SendID = try scheduled.identifier(row, 0)
      missing.remove(send)
      if try scheduled.bool(row, 1) { ended.append(send) }
    }
    return ended + missing
  }

  package func close(_ broadcast: BroadcastID, by user: String) async throws {
    try await write { connection in
      _ = try connection.query(
        Self.deleteOpen, [.text(broadcast.hub.rawValue), .text(user), .ids([broadcast.send])])
    }
  }

  package func estimatedDevices(of audiences: [Audience], hub: HubName) async throws -> [Int] {
    if let known = AudienceCosts.cached(audiences, hub: hub, weights: tagWeights) { return known }
    return try await read { [tagWeights] connection in
      try AudienceCosts.estimate(audiences, weights: tagWeights, in: PostgreSQLRegistrationTable(connection, hub))
    }
  }

  package func quotaUse(
    hub: HubName, user: String?, after: String?, limit: Int, at now: UnixTime
  ) async throws -> [QuotaUse] {
    try await read { connection in
      let users: [String]
      if let user {
        users = [user]
      } else {
        let rows = try connection.query(
          Self.selectUsers, [.text(hub.rawValue), .text(after ?? ""), .time(now), .int8(Int64(limit))])
        users = try (0..<rows.count).map { try rows.text($0, 0) }
      }
      return try users.map { try Self.use(hub, $0, at: now, connection) }
    }
  }

  private static func use(
    _ hub: HubName, _ user: String, at now: UnixTime, _ connection: PostgreSQLConnection
  ) throws -> QuotaUse {
    let key: [Parameter] = [.text(hub.rawValue), .text(user)]
    let rates = try connection.query(selectRates, key)
    var reservedUntil: [QuotaName: Int64] = [:]
    for row in 0..<rates.count {
      if let name = QuotaName(rawValue: try rates.text(row, 0)) { reservedUntil[name] = try rates.integer(row, 1) }
    }
    // No broadcast has this id.
    let open = try connection.query(countOpen, key + [.time(now), .id(SendID(high: 0, low: 0))]).integer(0, 0)
    let scheduled = try scheduledUse(key, connection)
    let devices = try PostgreSQLRegistrationTable(connection, hub).deviceCount(of: user, limit: QuotaUse.mostDevices)
    return QuotaUse(
      user: user, reservedUntil: reservedUntil,
      stocks: [
        .openBroadcasts: Int(open), .scheduledSends: scheduled.sends, .scheduledBytes: scheduled.bytes,
      ], devices: devices)
  }
}

/// What a sender's scheduled sends take.
extension PostgreSQLRegistry {
  private static let countScheduled = PreparedStatement(
    """
    SELECT count(*) FILTER (WHERE state <> 'cancelled'), coalesce(sum(coalesce(bytes, 1024)), 0)::bigint
    FROM scheduled_sends WHERE hub = $1 AND sender = $2 AND state IN ('held', 'paused', 'cancelled')
    """)
  private static let lockUse = PreparedStatement(
    "SELECT sends, bytes, counted_at FROM scheduled_use WHERE hub = $1 AND username = $2 FOR UPDATE")
  private static let insertUse = PreparedStatement(
    """
    INSERT INTO scheduled_use (hub, username, sends, bytes, counted_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, username) DO NOTHING
    """)
  private static let updateUse = PreparedStatement(
    "UPDATE scheduled_use SET sends = $3, bytes = $4, counted_at = $5 WHERE hub = $1 AND username = $2")

  private static func scheduledUse(
    _ key: [Parameter], _ connection: PostgreSQLConnection
  ) throws -> (sends: Int, bytes: Int) {
    let rows = try connection.query(countScheduled, key)
    return (Int(try rows.integer(0, 0)), Int(try rows.integer(0, 1)))
  }

  /// See ``ScheduledUse/add(_:bytes:within:at:recount:)``.
  static func addScheduled(
    _ sends: Int, bytes: Int, of sender: SenderKey, within limit: ScheduledSendLimit, at now: UnixTime,
    _ connection: PostgreSQLConnection
  ) throws -> QuotaName? {
    let key: [Parameter] = [.text(sender.hub.rawValue), .text(sender.name)]
    var rows = try connection.query(lockUse, key)
    if rows.count == 0 {
      let counted = try scheduledUse(key, connection)
      try connection.query(insertUse, key + [.int8(Int64(counted.sends)), .int8(Int64(counted.bytes)), .time(now)])
      rows = try connection.query(lockUse, key)
      guard rows.count == 1 else { throw PostgreSQLError.overtaken }
    }
    var use = ScheduledUse(
      sends: Int(try rows.integer(0, 0)), bytes: Int(try rows.integer(0, 1)), countedAt: try rows.integer(0, 2))
    let refusal = try use.add(sends, bytes: bytes, within: limit, at: now) { try scheduledUse(key, connection) }
    try connection.query(updateUse, key + [.int8(Int64(use.sends)), .int8(Int64(use.bytes)), .int8(use.countedAt)])
    return refusal
  }
}
