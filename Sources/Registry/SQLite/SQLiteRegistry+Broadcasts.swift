package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: BroadcastStore {
  package func plan(
    _ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime
  ) async throws -> (pages: Int, isAnnounced: Bool) {
    try await write(at: now) { db in
      try db.cachedStatement(
        sql: """
          INSERT INTO broadcasts (hub, send, pages, segments, rate, planned_at, touched_at)
          VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
          ON CONFLICT DO UPDATE SET pages = excluded.pages, segments = excluded.segments,
            rate = coalesce(rate, excluded.rate), planned_at = excluded.planned_at, touched_at = excluded.touched_at
          WHERE pages = 0
          """
      ).execute(arguments: broadcast.key + [plan.pages, plan.segments, plan.rate?.stored, now.milliseconds])
      let select = try db.cachedStatement(sql: "SELECT pages, is_announced FROM broadcasts WHERE hub = ? AND send = ?")
      guard let row = try Row.fetchOne(select, arguments: broadcast.key) else {
        throw RegistryError(.unavailable, "the registry lost the plan of a broadcast")
      }
      return (row[0], row[1])
    }
  }

  package func announce(_ broadcast: BroadcastID) async throws {
    try await write { db in
      try db.cachedStatement(sql: "UPDATE broadcasts SET is_announced = 1 WHERE hub = ? AND send = ?")
        .execute(arguments: broadcast.key)
    }
  }

  package func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int] {
    try await read { db in
      let select = try db.cachedStatement(
        sql: "SELECT page FROM broadcast_pages WHERE hub = ? AND send = ? AND page >= ? AND page < ? ORDER BY page")
      return try Int.fetchAll(select, arguments: broadcast.key + [range.lowerBound, range.upperBound])
    }
  }

  package func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws {
    try await write { db in
      let insert = try db.cachedStatement(
        sql: "INSERT INTO broadcast_pages (hub, send, page, finished_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING")
      for page in pages { try insert.execute(arguments: broadcast.key + [page, now.milliseconds]) }
    }
  }

  package func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl] {
    try await read { db in try broadcasts.map { try Self.control(of: $0, db) } }
  }

  package func steer(_ broadcast: BroadcastID, _ wanted: BroadcastControl, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { db in
      let held = try Self.control(of: broadcast, db)
      guard held.accepts(wanted) else { return held }
      try db.cachedStatement(
        sql: """
          INSERT INTO broadcasts (hub, send, course, cause, touched_at) VALUES (?, ?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET course = excluded.course, cause = excluded.cause, touched_at = excluded.touched_at
          """
      ).execute(arguments: broadcast.key + [wanted.state.rawValue, wanted.cause.rawValue, now.milliseconds])
      return BroadcastControl(wanted.state, because: wanted.cause, rate: held.rate)
    }
  }

  package func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws
    -> BroadcastControl
  {
    try await write(at: now) { db in
      let held = try Self.control(of: broadcast, db)
      guard held.state != .cancelled else { return held }
      try db.cachedStatement(
        sql: """
          INSERT INTO broadcasts (hub, send, rate, touched_at) VALUES (?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET rate = excluded.rate, touched_at = excluded.touched_at
          """
      ).execute(arguments: broadcast.key + [rate.stored, now.milliseconds])
      return BroadcastControl(held.state, because: held.cause, rate: rate)
    }
  }

  package func reserve(
    _ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime
  ) async throws -> UnixTime {
    try await write { db in
      let select = try db.cachedStatement(sql: "SELECT next_push_at FROM broadcasts WHERE hub = ? AND send = ?")
      let next = try Int64.fetchOne(select, arguments: broadcast.key) ?? 0
      let start = PushQuota.start(behind: next, at: now)
      try db.cachedStatement(
        sql: """
          INSERT INTO broadcasts (hub, send, next_push_at, touched_at) VALUES (?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET next_push_at = excluded.next_push_at, touched_at = excluded.touched_at
          """
      ).execute(
        arguments: broadcast.key
          + [PushQuota.end(of: pushes, from: start, perSecond: perSecond), now.milliseconds])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }

  package func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress? {
    try await read { db -> BroadcastProgress? in
      let select = try db.cachedStatement(
        sql: "SELECT pages, planned_at, course, cause, rate, segments FROM broadcasts WHERE hub = ? AND send = ?")
      guard let row = try Row.fetchOne(select, arguments: broadcast.key) else { return nil }
      let (pages, segments): (Int, Int) = (row[0], row[5])
      let count = try db.cachedStatement(
        sql: """
          SELECT ((page + 1) * ?4 - 1) / ?5, count(*), count(*) FILTER (WHERE finished_at > ?3) FROM broadcast_pages
          WHERE hub = ?1 AND send = ?2 GROUP BY 1
          """)
      let recent = (now + (.zero - BroadcastProgress.window)).milliseconds
      let finished = try Row.fetchAll(count, arguments: broadcast.key + [recent, max(1, segments), max(1, pages)])
      return BroadcastProgress(
        control: try BroadcastControl(state: row[2], cause: row[3], rate: row[4]), pages: pages, segments: segments,
        plannedAt: (row[1] as Int64?).map(UnixTime.init(milliseconds:)),
        finished: finished.map { ($0[0], $0[1], $0[2]) })
    }
  }

  private static func control(of broadcast: BroadcastID, _ db: Database) throws -> BroadcastControl {
    let select = try db.cachedStatement(sql: "SELECT course, cause, rate FROM broadcasts WHERE hub = ? AND send = ?")
    return try Row.fetchOne(select, arguments: broadcast.key).map {
      try BroadcastControl(state: $0[0], cause: $0[1], rate: $0[2])
    } ?? .initial
  }
}

extension SQLiteRegistry: PushQuotaStore {
  package func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) async throws -> UnixTime {
    try await write { db in
      let key: StatementArguments = [quota.hub.rawValue, Int64(quota.platform.code)]
      let select = try db.cachedStatement(sql: "SELECT reserved_until FROM push_quotas WHERE hub = ? AND platform = ?")
      let former = try Int64.fetchOne(select, arguments: key) ?? 0
      let (start, end) = quota.reservation(of: pushes, behind: former, at: now)
      let upsert = try db.cachedStatement(
        sql: """
          INSERT INTO push_quotas (hub, platform, reserved_until) VALUES (?, ?, ?)
          ON CONFLICT (hub, platform) DO UPDATE SET reserved_until = excluded.reserved_until
          """)
      try upsert.execute(arguments: key + [end])
      return UnixTime(microsecondsRoundedUp: start)
    }
  }
}

extension BroadcastID {
  /// The values of the columns `hub` and `send`.
  fileprivate var key: StatementArguments { [hub.rawValue, Data(send.bytes)] }
}
