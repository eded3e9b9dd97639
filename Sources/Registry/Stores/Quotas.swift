package import FanfareCore
import Store

extension RegistryDatabase: CallerQuotaStore {
  private static let lockRate = PreparedStatement(
    "SELECT reserved_until FROM caller_quotas WHERE hub = ?1 AND username = ?2 AND quota = ?3 FOR UPDATE")
  private static let insertRate = PreparedStatement(
    """
    INSERT INTO caller_quotas (hub, username, quota, reserved_until, idle_at) VALUES (?1, ?2, ?3, 0, ?4)
    ON CONFLICT (hub, username, quota) DO NOTHING
    """)
  private static let updateRate = PreparedStatement(
    "UPDATE caller_quotas SET reserved_until = ?4, idle_at = ?5 WHERE hub = ?1 AND username = ?2 AND quota = ?3")
  private static let selectRates = PreparedStatement(
    "SELECT quota, reserved_until FROM caller_quotas WHERE hub = ?1 AND username = ?2")
  private static let countOpen = PreparedStatement(
    "SELECT count(*) FROM open_broadcasts WHERE hub = ?1 AND username = ?2 AND ends_at > ?3 AND send <> ?4")
  private static let selectOpen = PreparedStatement(
    "SELECT send FROM open_broadcasts WHERE hub = ?1 AND username = ?2 LIMIT 10000")
  private static let selectPlan = PreparedStatement(
    "SELECT send, pages, course FROM broadcasts WHERE hub = ?1 AND send = ANY (?2)")
  private static let countFinished = PreparedStatement(
    "SELECT send, count(*) FROM broadcast_pages WHERE hub = ?1 AND send = ANY (?2) GROUP BY send")
  private static let selectScheduled = PreparedStatement(
    "SELECT id, state = 'cancelled' FROM scheduled_sends WHERE hub = ?1 AND id = ANY (?2)")
  private static let deleteOpen = PreparedStatement(
    "DELETE FROM open_broadcasts WHERE hub = ?1 AND username = ?2 AND send = ANY (?3)")
  private static let insertOpen = PreparedStatement(
    """
    INSERT INTO open_broadcasts (hub, username, send, ends_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (hub, username, send) DO UPDATE SET ends_at = excluded.ends_at
    """)
  private static let selectUsers = PreparedStatement(
    """
    SELECT username FROM caller_quotas WHERE hub = ?1 AND username > ?2 AND idle_at > ?3
    UNION SELECT username FROM open_broadcasts WHERE hub = ?1 AND username > ?2 AND ends_at > ?3
    UNION SELECT username FROM scheduled_use WHERE hub = ?1 AND username > ?2
    ORDER BY 1 LIMIT ?4
    """)

  package func reserve(_ demand: RateDemand, of rate: CallerRate, at now: UnixTime) async throws -> RateGrant {
    try await write(at: now) { session in
      let key: [Value] = [.hub(rate.hub), .text(rate.user), .text(rate.name.rawValue)]
      let former = try Self.lockRate(key, at: now, session)
      let grant = rate.limit.grant(demand, behind: former, at: now)
      if grant.permits > 0 {
        let end = grant.reservedUntil
        try session.run(Self.updateRate, key + [.integer(end), .time(UnixTime(microsecondsRoundedUp: end))])
      }
      return grant
    }
  }

  /// Locks the row of a user's quota, which is created if missing. Returns the end of the reservations.
  private static func lockRate(_ key: [Value], at now: UnixTime, _ session: Session) throws -> Int64 {
    func locked() throws -> Int64? { try session.first(lockRate, key) { try $0.integer(0) } }
    if let end = try locked() { return end }
    // Idle from now on, so that a purge by another process does not take the row away at once.
    try session.run(insertRate, key + [.time(now + .seconds(60))])
    guard let end = try locked() else { throw StoreError.overtaken }
    return end
  }

  package func open(
    _ broadcast: BroadcastID, by user: String, until end: UnixTime, limit: Int, at now: UnixTime
  ) async throws -> Bool {
    try await write(at: now) { session in
      let key: [Value] = [.hub(broadcast.hub), .text(user)]
      // Two front ends must not both take the last place.
      _ = try Self.lockRate(key + [.text(QuotaName.openBroadcasts.rawValue)], at: now, session)
      func isFull() throws -> Bool { try Self.countOpen(key, besides: broadcast.send, at: now, session) >= limit }
      if try isFull() {
        let ended = try Self.ended(key, at: now, session)
        try session.run(Self.deleteOpen, key, any: ended.map { .id($0) })
        if try isFull() { return false }
      }
      try session.run(Self.insertOpen, key + [.id(broadcast.send), .time(end)])
      return true
    }
  }

  private static func countOpen(_ key: [Value], besides send: SendID, at now: UnixTime, _ session: Session) throws
    -> Int
  {
    try session.first(countOpen, key + [.time(now), .id(send)]) { try $0.int(0) } ?? 0
  }

  /// Those of a user's open broadcasts that are finished or cancelled, or that never began. No statement joins tables,
  /// because a sharded database need not have the rows of two tables on the same shard.
  private static func ended(_ key: [Value], at now: UnixTime, _ session: Session) throws -> [SendID] {
    let sends: [SendID] = try session.all(selectOpen, key) { try $0.id(0) }
    let (hub, ids) = ([key[0]], sends.map { Value.id($0) })
    let finished = Dictionary(
      try session.all(countFinished, hub, any: ids) { (try $0.id(0) as SendID, try $0.integer(1)) },
      uniquingKeysWith: max)
    let plans = try session.all(selectPlan, hub, any: ids) {
      (send: try $0.id(0) as SendID, pages: try $0.integer(1), course: try $0.text(2))
    }
    let scheduled = try session.all(selectScheduled, hub, any: ids) {
      (send: try $0.id(0) as SendID, isCancelled: try $0.bool(1))
    }
    let known = Set(plans.map(\.send) + scheduled.map(\.send))
    let over = plans.filter { plan in
      plan.course == BroadcastControl.State.cancelled.rawValue
        || (plan.pages > 0 && finished[plan.send] ?? 0 >= plan.pages)
    }
    return over.map(\.send) + scheduled.filter(\.isCancelled).map(\.send)
      + sends.filter { $0 < .neverBegun(at: now) && !known.contains($0) }
  }

  package func close(_ broadcast: BroadcastID, by user: String) async throws {
    _ = try await write {
      try $0.run(Self.deleteOpen, [.hub(broadcast.hub), .text(user)], any: [.id(broadcast.send)])
    }
  }

  package func estimatedDevices(of audiences: [Audience], hub: HubName) async throws -> [Int] {
    if let known = AudienceCosts.cached(audiences, hub: hub, weights: tagWeights) { return known }
    return try await read { [tagWeights] session in
      try AudienceCosts.estimate(audiences, weights: tagWeights, in: RegistrationTable(session, hub))
    }
  }

  package func quotaUse(
    hub: HubName, user: String?, after: String?, limit: Int, at now: UnixTime
  ) async throws -> [QuotaUse] {
    try await read { session in
      let users =
        try user.map { [$0] }
        ?? session.all(Self.selectUsers, [.hub(hub), .text(after ?? ""), .time(now), .int(limit)]) { try $0.text(0) }
      return try users.map { try Self.use(hub, $0, at: now, session) }
    }
  }

  private static func use(_ hub: HubName, _ user: String, at now: UnixTime, _ session: Session) throws -> QuotaUse {
    let key: [Value] = [.hub(hub), .text(user)]
    let rates = try session.all(selectRates, key) { (QuotaName(rawValue: try $0.text(0)), try $0.integer(1)) }
    let scheduled = try ScheduledUse.counted(key, in: session)
    // No broadcast has this id.
    let open = try countOpen(key, besides: SendID(high: 0, low: 0), at: now, session)
    let devices = try RegistrationTable(session, hub).deviceCount(of: user, limit: QuotaUse.mostDevices)
    return QuotaUse(
      user: user,
      reservedUntil: Dictionary(
        rates.compactMap { name, end in name.map { ($0, end) } }, uniquingKeysWith: max),
      stocks: [.openBroadcasts: open, .scheduledSends: scheduled.sends, .scheduledBytes: scheduled.bytes],
      devices: devices)
  }
}

extension RegistryDatabase: PushQuotaStore {
  private static let lockQuota = PreparedStatement(
    "SELECT reserved_until FROM push_quotas WHERE hub = ?1 AND platform = ?2 FOR UPDATE")
  private static let insertQuota = PreparedStatement(
    "INSERT INTO push_quotas (hub, platform, reserved_until) VALUES (?1, ?2, 0) ON CONFLICT (hub, platform) DO NOTHING")
  private static let updateQuota = PreparedStatement(
    "UPDATE push_quotas SET reserved_until = ?3 WHERE hub = ?1 AND platform = ?2")

  package func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await write { session in
      let key: [Value] = [.hub(quota.hub), .int(Int(quota.platform.code))]
      func locked() throws -> Int64? { try session.first(Self.lockQuota, key) { try $0.integer(0) } }
      var former = try locked()
      if former == nil {
        try session.run(Self.insertQuota, key)
        former = try locked()
      }
      guard let former else { throw StoreError.overtaken }
      let (start, end) = quota.reservation(of: pushes, behind: former, at: now)
      try session.run(Self.updateQuota, key + [.integer(end)])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }
}
