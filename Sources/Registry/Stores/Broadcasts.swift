package import FanfareCore
import Store

extension RegistryDatabase: BroadcastStore {
  private static let planOnce = PreparedStatement(
    """
    INSERT INTO broadcasts AS b (hub, send, pages, segments, rate, planned_at, touched_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
    ON CONFLICT (hub, send) DO UPDATE SET pages = excluded.pages, segments = excluded.segments,
      rate = coalesce(b.rate, excluded.rate), planned_at = excluded.planned_at, touched_at = excluded.touched_at
      WHERE b.pages = 0
    """)
  private static let selectPlan = PreparedStatement(
    "SELECT pages, segments, is_announced FROM broadcasts WHERE hub = ?1 AND send = ?2")
  private static let markAnnounced = PreparedStatement(
    "UPDATE broadcasts SET is_announced = true WHERE hub = ?1 AND send = ?2")
  private static let selectPages = PreparedStatement(
    "SELECT page FROM broadcast_pages WHERE hub = ?1 AND send = ?2 AND page >= ?3 AND page < ?4 ORDER BY page")
  private static let insertPage = PreparedStatement(
    """
    INSERT INTO broadcast_pages (hub, send, page, finished_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (hub, send, page) DO NOTHING
    """)
  private static let selectControl = PreparedStatement(
    "SELECT course, cause, rate FROM broadcasts WHERE hub = ?1 AND send = ?2")
  private static let insertBroadcast = PreparedStatement(
    "INSERT INTO broadcasts (hub, send, touched_at) VALUES (?1, ?2, ?3) ON CONFLICT (hub, send) DO NOTHING")
  private static let lockBroadcast = PreparedStatement(
    "SELECT course, cause, rate, next_push_at FROM broadcasts WHERE hub = ?1 AND send = ?2 FOR UPDATE")
  private static let updateControl = PreparedStatement(
    "UPDATE broadcasts SET course = ?3, cause = ?4, touched_at = ?5 WHERE hub = ?1 AND send = ?2")
  private static let updateRate = PreparedStatement(
    "UPDATE broadcasts SET rate = ?3, touched_at = ?4 WHERE hub = ?1 AND send = ?2")
  private static let updateNextPush = PreparedStatement(
    "UPDATE broadcasts SET next_push_at = ?3, touched_at = ?4 WHERE hub = ?1 AND send = ?2")
  private static let selectBroadcast = PreparedStatement(
    "SELECT course, cause, rate, pages, segments, planned_at FROM broadcasts WHERE hub = ?1 AND send = ?2")
  private static let countPages = PreparedStatement(
    """
    SELECT ((page + 1) * ?4 - 1) / ?5, count(*), count(*) FILTER (WHERE finished_at > ?3) FROM broadcast_pages
    WHERE hub = ?1 AND send = ?2 GROUP BY 1
    """)

  package func plan(
    _ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime
  ) async throws -> (pages: Int, segments: Int, isAnnounced: Bool) {
    try await write(at: now) { session in
      try session.run(
        Self.planOnce,
        broadcast.key + [.int(plan.pages), .int(plan.segments), .integer(plan.rate?.stored), .time(now)])
      let held = try session.first(Self.selectPlan, broadcast.key) {
        (pages: try $0.int(0), segments: try $0.int(1), isAnnounced: try $0.bool(2))
      }
      // A purge has removed the row in between.
      guard let held else { throw StoreError.overtaken }
      return held
    }
  }

  package func announce(_ broadcast: BroadcastID) async throws {
    _ = try await write { try $0.run(Self.markAnnounced, broadcast.key) }
  }

  package func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] {
    try await read {
      try $0.all(Self.selectPages, broadcast.key + [.int(range.lowerBound), .int(range.upperBound)]) { try $0.int(0) }
    }
  }

  package func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws {
    try await write { try $0.run(Self.insertPage, each: pages.map { broadcast.key + [.int($0), .time(now)] }) }
  }

  package func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] {
    guard !broadcasts.isEmpty else { return [] }
    return try await read { session in
      try session.first(Self.selectControl, each: broadcasts.map(\.key)) { try BroadcastControl($0) }
        .map { $0 ?? .initial }
    }
  }

  package func control(_ broadcast: BroadcastID, _ wanted: BroadcastControl, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { session in
      let held = try Self.lock(broadcast, at: now, session).control
      guard held.accepts(wanted) else { return held }
      try session.run(
        Self.updateControl,
        broadcast.key + [.text(wanted.state.rawValue), .text(wanted.cause.rawValue), .time(now)])
      return BroadcastControl(wanted.state, because: wanted.cause, rate: held.rate)
    }
  }

  package func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { session in
      let held = try Self.lock(broadcast, at: now, session).control
      guard held.state != .cancelled else { return held }
      try session.run(Self.updateRate, broadcast.key + [.integer(rate.stored), .time(now)])
      return BroadcastControl(held.state, because: held.cause, rate: rate)
    }
  }

  package func reserve(
    _ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime
  ) async throws -> UnixTime {
    try await write { session in
      let start = PushQuota.start(behind: try Self.lock(broadcast, at: now, session).nextPush, at: now)
      let next = PushQuota.end(of: pushes, from: start, perSecond: perSecond)
      try session.run(Self.updateNextPush, broadcast.key + [.integer(next), .time(now)])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }

  package func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? {
    try await read { session -> BroadcastProgress? in
      let held = try session.first(Self.selectBroadcast, broadcast.key) { row in
        (
          control: try BroadcastControl(row), pages: try row.int(3), segments: try row.int(4),
          plannedAt: try row.optionalTime(5)
        )
      }
      guard let held else { return nil }
      let recent = now + (.zero - BroadcastProgress.window)
      let finished = try session.all(
        Self.countPages, broadcast.key + [.time(recent), .int(max(1, held.segments)), .int(max(1, held.pages))]
      ) { (try $0.int(0), try $0.int(1), try $0.int(2)) }
      return BroadcastProgress(
        control: held.control, pages: held.pages, segments: held.segments, plannedAt: held.plannedAt,
        finished: finished)
    }
  }

  /// Locks the broadcast's row, which is created if missing.
  private static func lock(_ broadcast: BroadcastID, at now: UnixTime, _ session: Session) throws
    -> (control: BroadcastControl, nextPush: Int64)
  {
    func locked() throws -> (control: BroadcastControl, nextPush: Int64)? {
      try session.first(lockBroadcast, broadcast.key) {
        (control: try BroadcastControl($0), nextPush: try $0.integer(3))
      }
    }
    if let held = try locked() { return held }
    try session.run(insertBroadcast, broadcast.key + [.time(now)])
    guard let made = try locked() else { throw StoreError.overtaken }
    return made
  }
}

extension BroadcastID {
  /// The values of the columns `hub` and `send`.
  fileprivate var key: [Value] { [.hub(hub), .id(send)] }
}

extension BroadcastControl {
  /// Reads the columns `course`, `cause` and `rate`.
  fileprivate init(_ row: Row) throws {
    try self.init(state: row.text(0), cause: row.text(1), rate: row.optionalInteger(2))
  }
}
