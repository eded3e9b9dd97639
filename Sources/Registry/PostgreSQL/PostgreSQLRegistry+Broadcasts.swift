package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: BroadcastStore {
  private static let planOnce = PreparedStatement(
    """
    INSERT INTO broadcasts AS b (hub, send, pages, segments, rate, planned_at, touched_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
    ON CONFLICT (hub, send) DO UPDATE SET pages = excluded.pages, segments = excluded.segments,
      rate = coalesce(b.rate, excluded.rate), planned_at = excluded.planned_at, touched_at = excluded.touched_at
      WHERE b.pages = 0
    """)
  private static let selectPlan = PreparedStatement(
    "SELECT pages, is_announced FROM broadcasts WHERE hub = $1 AND send = $2")
  private static let markAnnounced = PreparedStatement(
    "UPDATE broadcasts SET is_announced = true WHERE hub = $1 AND send = $2")
  private static let selectPages = PreparedStatement(
    "SELECT page FROM broadcast_pages WHERE hub = $1 AND send = $2 AND page >= $3 AND page < $4 ORDER BY page")
  private static let insertPages = PreparedStatement(
    """
    INSERT INTO broadcast_pages (hub, send, page, finished_at) SELECT $1, $2, p.page, $4 FROM unnest($3) AS p (page)
    ON CONFLICT (hub, send, page) DO NOTHING
    """)
  private static let selectControls = PreparedStatement(
    "SELECT hub, send, course, cause, rate FROM broadcasts WHERE hub = ANY ($1) AND send = ANY ($2)")
  private static let insertBroadcast = PreparedStatement(
    "INSERT INTO broadcasts (hub, send, touched_at) VALUES ($1, $2, $3) ON CONFLICT (hub, send) DO NOTHING")
  private static let lockBroadcast = PreparedStatement(
    "SELECT course, cause, next_push_at, rate FROM broadcasts WHERE hub = $1 AND send = $2 FOR UPDATE")
  private static let updateControl = PreparedStatement(
    "UPDATE broadcasts SET course = $3, cause = $4, touched_at = $5 WHERE hub = $1 AND send = $2")
  private static let updateRate = PreparedStatement(
    "UPDATE broadcasts SET rate = $3, touched_at = $4 WHERE hub = $1 AND send = $2")
  private static let updateNextPush = PreparedStatement(
    "UPDATE broadcasts SET next_push_at = $3, touched_at = $4 WHERE hub = $1 AND send = $2")
  private static let selectBroadcast = PreparedStatement(
    "SELECT pages, planned_at, course, cause, rate, segments FROM broadcasts WHERE hub = $1 AND send = $2")
  private static let countPages = PreparedStatement(
    """
    SELECT ((page + 1) * $4 - 1) / $5, count(*), count(*) FILTER (WHERE finished_at > $3) FROM broadcast_pages
    WHERE hub = $1 AND send = $2 GROUP BY 1
    """)

  package func plan(
    _ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime
  ) async throws -> (pages: Int, isAnnounced: Bool) {
    try await write(at: now) { connection in
      try connection.query(
        Self.planOnce,
        broadcast.key + [
          .int8(Int64(plan.pages)), .int8(Int64(plan.segments)), .int8(plan.rate?.stored), .time(now),
        ])
      let rows = try connection.query(Self.selectPlan, broadcast.key)
      // A purge has removed the row in between.
      guard rows.count == 1 else { throw PostgreSQLError.overtaken }
      return (Int(try rows.integer(0, 0)), try rows.bool(0, 1))
    }
  }

  package func announce(_ broadcast: BroadcastID) async throws {
    try await write { connection in _ = try connection.query(Self.markAnnounced, broadcast.key) }
  }

  package func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] {
    try await read { connection in
      let bounds: [Parameter] = [.int8(Int64(range.lowerBound)), .int8(Int64(range.upperBound))]
      let rows = try connection.query(Self.selectPages, broadcast.key + bounds)
      return try (0..<rows.count).map { Int(try rows.integer($0, 0)) }
    }
  }

  package func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws {
    try await write { connection in
      _ = try connection.query(Self.insertPages, broadcast.key + [.int8s(pages.map { Int64($0) }), .time(now)])
    }
  }

  package func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] {
    guard !broadcasts.isEmpty else { return [] }
    return try await read { connection in
      let rows = try connection.query(
        Self.selectControls, [.texts(Set(broadcasts.map(\.hub.rawValue)).map { $0 }), .ids(broadcasts.map(\.send))])
      var known: [BroadcastID: BroadcastControl] = [:]
      for row in 0..<rows.count {
        guard let hub = HubName(try rows.text(row, 0)) else { throw StoredRegistration.damaged }
        known[BroadcastID(hub: hub, send: try rows.identifier(row, 1))] = try BroadcastControl(
          state: try rows.text(row, 2), cause: try rows.text(row, 3), rate: try rows.optionalInteger(row, 4))
      }
      return broadcasts.map { known[$0] ?? .initial }
    }
  }

  package func steer(_ broadcast: BroadcastID, _ wanted: BroadcastControl, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { connection in
      let rows = try Self.lock(broadcast, at: now, connection)
      let held = try Self.control(rows)
      guard held.accepts(wanted) else { return held }
      try connection.query(
        Self.updateControl,
        broadcast.key + [.text(wanted.state.rawValue), .text(wanted.cause.rawValue), .time(now)])
      return BroadcastControl(wanted.state, because: wanted.cause, rate: held.rate)
    }
  }

  package func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { connection in
      let held = try Self.control(try Self.lock(broadcast, at: now, connection))
      guard held.state != .cancelled else { return held }
      try connection.query(Self.updateRate, broadcast.key + [.int8(rate.stored), .time(now)])
      return BroadcastControl(held.state, because: held.cause, rate: rate)
    }
  }

  package func reserve(
    _ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime
  ) async throws -> UnixTime {
    try await write { connection in
      let rows = try Self.lock(broadcast, at: now, connection)
      let start = PushQuota.start(behind: try rows.integer(0, 2), at: now)
      let next = PushQuota.end(of: pushes, from: start, perSecond: perSecond)
      try connection.query(Self.updateNextPush, broadcast.key + [.int8(next), .time(now)])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }

  package func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? {
    try await read { connection -> BroadcastProgress? in
      let rows = try connection.query(Self.selectBroadcast, broadcast.key)
      guard rows.count == 1 else { return nil }
      let recent = now + (.zero - BroadcastProgress.window)
      let (pages, segments) = (try rows.integer(0, 0), try rows.integer(0, 5))
      let counts = try connection.query(
        Self.countPages, broadcast.key + [.time(recent), .int8(max(1, segments)), .int8(max(1, pages))])
      return BroadcastProgress(
        control: try BroadcastControl(
          state: try rows.text(0, 2), cause: try rows.text(0, 3), rate: try rows.optionalInteger(0, 4)),
        pages: Int(pages), segments: Int(segments),
        plannedAt: try rows.optionalInteger(0, 1).map(UnixTime.init(milliseconds:)),
        finished: try (0..<counts.count).map {
          (Int(try counts.integer($0, 0)), Int(try counts.integer($0, 1)), Int(try counts.integer($0, 2)))
        })
    }
  }

  /// The control in a locked row.
  private static func control(_ rows: ResultRows) throws -> BroadcastControl {
    try BroadcastControl(
      state: try rows.text(0, 0), cause: try rows.text(0, 1), rate: try rows.optionalInteger(0, 3))
  }

  /// Locks the broadcast's row, which is created if missing.
  private static func lock(
    _ broadcast: BroadcastID, at now: UnixTime, _ connection: PostgreSQLConnection
  ) throws -> ResultRows {
    let rows = try connection.query(lockBroadcast, broadcast.key)
    if rows.count == 1 { return rows }
    try connection.query(insertBroadcast, broadcast.key + [.time(now)])
    let made = try connection.query(lockBroadcast, broadcast.key)
    guard made.count == 1 else { throw PostgreSQLError.overtaken }
    return made
  }
}

extension PostgreSQLRegistry: PushQuotaStore {
  private static let lockQuota = PreparedStatement(
    "SELECT reserved_until FROM push_quotas WHERE hub = $1 AND platform = $2 FOR UPDATE")
  private static let insertQuota = PreparedStatement(
    "INSERT INTO push_quotas (hub, platform, reserved_until) VALUES ($1, $2, 0) ON CONFLICT (hub, platform) DO NOTHING")
  private static let updateQuota = PreparedStatement(
    "UPDATE push_quotas SET reserved_until = $3 WHERE hub = $1 AND platform = $2")

  package func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await write { connection in
      let key: [Parameter] = [.text(quota.hub.rawValue), .int2(Int16(quota.platform.code))]
      var rows = try connection.query(Self.lockQuota, key)
      if rows.count == 0 {
        try connection.query(Self.insertQuota, key)
        rows = try connection.query(Self.lockQuota, key)
      }
      let (start, end) = quota.reservation(of: pushes, behind: try rows.integer(0, 0), at: now)
      try connection.query(Self.updateQuota, key + [.int8(end)])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }
}

extension BroadcastID {
  /// The values of the columns `hub` and `send`.
  fileprivate var key: [Parameter] { [.text(hub.rawValue), .id(send)] }
}
