package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: ScheduledSendStore {
  package func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws
    -> QuotaName?
  {
    let rows = sends.map { (held: $0, record: Data($0.send.encoded())) }
    return try await write(at: now) { db in
      for (sender, group) in Dictionary(grouping: rows, by: \.held.send.senderKey) {
        guard let sender else { continue }
        let bytes = group.reduce(0) { $0 + $1.record.count }
        let exceeded = try Self.addScheduled(
          group.count, bytes: bytes, of: sender.name, sender.hub, within: limit, at: now, db)
        if let exceeded { return exceeded }
      }
      let insert = try db.cachedStatement(
        sql: """
          INSERT INTO scheduled_sends (hub, id, sender, audience, record, scheduled_at, state, ready_at, bytes)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
          """)
      for (held, record) in rows {
        try insert.execute(arguments: [
          held.send.hub.rawValue, Data(held.send.id.bytes), held.send.sender, held.send.audience.text, record,
          held.scheduledAt.milliseconds, held.state.rawValue, held.due.milliseconds, record.count,
        ])
      }
      return nil
    }
  }

  package func nextDue() async throws -> UnixTime? {
    try await read { db in
      let select = try db.cachedStatement(sql: "SELECT min(ready_at) FROM scheduled_sends WHERE state = 'held'")
      return try Int64.fetchOne(select).map(UnixTime.init(milliseconds:))
    }
  }

  package func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    try await write { db in
      let select = try db.cachedStatement(
        sql: """
          SELECT rowid, record, scheduled_at, state, hub, id, lease IS NOT NULL FROM scheduled_sends
          WHERE state = 'held' AND ready_at <= ? ORDER BY ready_at LIMIT ?
          """)
      let take = try db.cachedStatement(sql: "UPDATE scheduled_sends SET ready_at = ?, lease = ? WHERE rowid = ?")
      let markUnreadable = try db.cachedStatement(
        sql: "UPDATE scheduled_sends SET state = 'unreadable', forget_at = ? WHERE rowid = ?")
      return try Row.fetchAll(select, arguments: [now.milliseconds, limit]).compactMap { row in
        do {
          let send = try Self.scheduledSend(row, from: 1, mayBeEnqueued: row[6])
          try take.execute(arguments: [end.milliseconds, Data(lease.bytes), row[0] as Int64])
          return send
        } catch let error as RegistryError where error == ScheduledSend.damaged {
          try markUnreadable.execute(arguments: [(now + Purge.broadcastLifetime).milliseconds, row[0] as Int64])
          if let hub = HubName(row[4] as String), let id = SendID(row[5] as Data) { unreadable(hub, id) }
          return nil
        }
      }
    }
  }

  package func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await write(at: now) { db in
      let update = try db.cachedStatement(
        sql:
          "UPDATE scheduled_sends SET state = 'fired', forget_at = ? WHERE hub = ? AND id = ? AND lease = ? AND state = 'held'"
      )
      let end = (now + Purge.firedLifetime).milliseconds
      for held in sends {
        try update.execute(arguments: [end, held.send.hub.rawValue, Data(held.send.id.bytes), Data(lease.bytes)])
      }
    }
  }

  package func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await write { db in
      let update = try db.cachedStatement(
        sql: """
          UPDATE scheduled_sends SET ready_at = ?, lease = iif(?, lease, NULL)
          WHERE hub = ? AND id = ? AND lease = ? AND state = 'held'
          """)
      for held in sends {
        try update.execute(arguments: [
          moment.milliseconds, held.mayBeEnqueued, held.send.hub.rawValue, Data(held.send.id.bytes), Data(lease.bytes),
        ])
      }
    }
  }

  package func steer(
    _ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime
  ) async throws -> ScheduledSend? {
    try await write(at: now) { db in
      try db.cachedStatement(
        sql: """
          UPDATE scheduled_sends SET state = ?, forget_at = ?
          WHERE hub = ? AND id = ? AND lease IS NULL AND state IN ('held', 'paused')
          """
      ).execute(arguments: [
        state.rawValue, ScheduledSend.forgetAt(state, at: now)?.milliseconds, hub.rawValue, Data(send.bytes),
      ])
      return try Self.scheduledSend(send, hub: hub, db)
    }
  }

  package func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await read { db in try Self.scheduledSend(send, hub: hub, db) }
  }

  package func waiting(_ query: SendQuery) async throws -> [ScheduledSend] {
    let (sql, arguments) = Self.listing(query)
    return try await read { db in
      try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments).map { try Self.scheduledSend($0, from: 0) }
    }
  }

  /// The statement that finds the waiting sends of a query. Its cost depends on the number of results only: each branch
  /// is read, newest first, from a partial index of the waiting sends.
  static func listing(_ query: SendQuery) -> (sql: String, arguments: StatementArguments) {
    var arguments: StatementArguments = []
    func branch(_ condition: String, _ values: String...) -> String {
      arguments += [
        query.hub.rawValue, query.start.acceptedAt.milliseconds, Data(query.start.send.bytes),
        query.from?.milliseconds ?? .min,
      ]
      arguments += StatementArguments(values)
      arguments += [query.limit]
      return """
        SELECT record, scheduled_at, state, id FROM scheduled_sends
        WHERE hub = ? AND state IN ('held', 'paused') AND lease IS NULL AND (scheduled_at, id) < (?, ?)
          AND scheduled_at >= ? \(condition)
        ORDER BY scheduled_at DESC, id DESC LIMIT ?
        """
    }
    func bySender(_ name: String) -> String { branch("AND sender = ?", name) }
    switch (query.sender, query.user) {
    case (nil, nil): return (branch(""), arguments)
    case (let sender?, nil): return (bySender(sender), arguments)
    case (nil, let user?):
      // UNION removes the duplicate of a send that both branches find.
      let branches = [bySender(user), branch("AND audience = ?", Audience.user(user).text)].map {
        "SELECT * FROM (\($0))"
      }
      arguments += [query.limit]
      return (branches.joined(separator: " UNION ") + " ORDER BY scheduled_at DESC, id DESC LIMIT ?", arguments)
    case (let sender?, let user?) where sender.hasSameBytes(as: user): return (bySender(sender), arguments)
    case (let sender?, let user?):
      // Fewer sends wait for one user than from one sender: the unary plus keeps SQLite from using the sender's index.
      return (branch("AND audience = ? AND +sender = ?", Audience.user(user).text, sender), arguments)
    }
  }

  private static func scheduledSend(_ send: SendID, hub: HubName, _ db: Database) throws -> ScheduledSend? {
    let select = try db.cachedStatement(
      sql: """
        SELECT record, scheduled_at, iif(state = 'held' AND lease IS NOT NULL, 'fired', state) FROM scheduled_sends
        WHERE hub = ? AND id = ?
        """)
    return try Row.fetchOne(select, arguments: [hub.rawValue, Data(send.bytes)]).map { try scheduledSend($0, from: 0) }
  }

  /// Reads the columns `record`, `scheduled_at` and `state`, beginning at `first`.
  private static func scheduledSend(_ row: Row, from first: Int, mayBeEnqueued: Bool = false) throws -> ScheduledSend {
    try ScheduledSend(
      stored: [UInt8](row[first] as Data), scheduledAt: UnixTime(milliseconds: row[first + 1]), state: row[first + 2],
      mayBeEnqueued: mayBeEnqueued)
  }
}
