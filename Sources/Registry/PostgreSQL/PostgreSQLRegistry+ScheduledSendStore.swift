package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: ScheduledSendStore {
  private static let insertHeld = PreparedStatement(
    """
    INSERT INTO scheduled_sends (hub, id, sender, audience, record, scheduled_at, state, ready_at, bytes)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (hub, id) DO NOTHING
    """)
  private static let selectNextDue = PreparedStatement("SELECT min(ready_at) FROM scheduled_sends WHERE state = 'held'")
  private static let selectDue = PreparedStatement(
    """
    SELECT record, scheduled_at, state, hub, id, lease IS NOT NULL FROM scheduled_sends
    WHERE state = 'held' AND ready_at <= $1 ORDER BY ready_at LIMIT $2 FOR UPDATE SKIP LOCKED
    """)
  private static let markUnreadable = PreparedStatement(
    "UPDATE scheduled_sends SET state = 'unreadable', forget_at = $3 WHERE hub = $1 AND id = $2")
  private static let setLease = PreparedStatement(
    "UPDATE scheduled_sends SET ready_at = $3, lease = $4 WHERE hub = $1 AND id = ANY ($2)")
  private static let markFired = PreparedStatement(
    """
    UPDATE scheduled_sends SET state = 'fired', forget_at = $4
    WHERE hub = $1 AND id = ANY ($2) AND lease = $3 AND state = 'held'
    """)
  private static let releaseLease = PreparedStatement(
    """
    UPDATE scheduled_sends SET ready_at = $4, lease = CASE WHEN $5 THEN lease END
    WHERE hub = $1 AND id = ANY ($2) AND lease = $3 AND state = 'held'
    """)
  private static let updateScheduled = PreparedStatement(
    """
    UPDATE scheduled_sends SET state = $3, forget_at = $4
    WHERE hub = $1 AND id = $2 AND lease IS NULL AND state IN ('held', 'paused')
    """)
  private static let selectScheduled = PreparedStatement(
    """
    SELECT record, scheduled_at, CASE WHEN state = 'held' AND lease IS NOT NULL THEN 'fired' ELSE state END
    FROM scheduled_sends WHERE hub = $1 AND id = $2
    """)
  private static let listAll = listing("")
  private static let listBySender = listing("AND sender = $6")
  private static let listByRecipient = listing("AND audience = $6 AND sender = $7")
  private static let listByUser = listing("AND sender = $6", "AND audience = $7")

  /// Each condition is a branch, read newest first from one of the partial indexes of the waiting sends.
  private static func listing(_ conditions: String...) -> PreparedStatement {
    let branches = conditions.map { condition in
      """
      (SELECT record, scheduled_at, state, id FROM scheduled_sends
      WHERE hub = $1 AND state IN ('held', 'paused') AND lease IS NULL AND (scheduled_at, id) < ($2, $3)
        AND scheduled_at >= $5 \(condition)
      ORDER BY scheduled_at DESC, id DESC LIMIT $4)
      """
    }
    // UNION removes the duplicate of a send that both branches find.
    return PreparedStatement(
      branches.count == 1
        ? branches[0] : branches.joined(separator: "\nUNION\n") + "\nORDER BY scheduled_at DESC, id DESC LIMIT $4")
  }

  package func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws
    -> QuotaName?
  {
    let records = sends.map { $0.send.encoded() }
    return try await write(at: now) { connection -> QuotaName? in
      for (sender, group) in Dictionary(grouping: sends.indices, by: { sends[$0].send.senderKey }) {
        guard let sender else { continue }
        let bytes = group.reduce(0) { $0 + records[$1].count }
        let exceeded = try Self.addScheduled(
          group.count, bytes: bytes, of: sender, within: limit, at: now, connection)
        if let exceeded { return exceeded }
      }
      // One round trip: a batch of the front end may have thousands of sends.
      try connection.query(
        Self.insertHeld,
        [
          .texts(sends.map(\.send.hub.rawValue)), .ids(sends.map(\.send.id)), .texts(sends.map(\.send.sender)),
          .texts(sends.map(\.send.audience.text)), .byteas(records),
          .int8s(sends.map(\.scheduledAt.milliseconds)), .texts(sends.map(\.state.rawValue)),
          .int8s(sends.map(\.due.milliseconds)), .int8s(records.map { Int64($0.count) }),
        ])
      return nil
    }
  }

  package func nextDue() async throws -> UnixTime? {
    try await read { connection in
      let rows = try connection.query(Self.selectNextDue, [])
      return try rows.optionalInteger(0, 0).map(UnixTime.init(milliseconds:))
    }
  }

  package func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    try await write { connection in
      let rows = try connection.query(Self.selectDue, [.time(now), .int8(Int64(limit))])
      let due = try (0..<rows.count).compactMap { row in
        do {
          return try Self.scheduledSend(rows, row, mayBeEnqueued: try rows.bool(row, 5))
        } catch let error as RegistryError where error == ScheduledSend.damaged {
          let (hub, id): (String, SendID) = (try rows.text(row, 3), try rows.identifier(row, 4))
          try connection.query(Self.markUnreadable, [.text(hub), .id(id), .time(now + Purge.broadcastLifetime)])
          if let hub = HubName(hub) { unreadable(hub, id) }
          return nil
        }
      }
      for (hub, ids) in Self.byHub(due) {
        try connection.query(Self.setLease, [.text(hub), .ids(ids), .time(end), .id(lease)])
      }
      return due
    }
  }

  package func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await write(at: now) { connection in
      for (hub, ids) in Self.byHub(sends) {
        try connection.query(Self.markFired, [.text(hub), .ids(ids), .id(lease), .time(now + Purge.firedLifetime)])
      }
    }
  }

  package func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await write { connection in
      for mayBeEnqueued in [false, true] {
        for (hub, ids) in Self.byHub(sends.filter { $0.mayBeEnqueued == mayBeEnqueued }) {
          try connection.query(
            Self.releaseLease, [.text(hub), .ids(ids), .id(lease), .time(moment), .bool(mayBeEnqueued)])
        }
      }
    }
  }

  package func steer(
    _ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime
  ) async throws -> ScheduledSend? {
    try await write(at: now) { connection -> ScheduledSend? in
      let end = ScheduledSend.forgetAt(state, at: now)
      try connection.query(Self.updateScheduled, [.text(hub.rawValue), .id(send), .text(state.rawValue), .time(end)])
      let rows = try connection.query(Self.selectScheduled, [.text(hub.rawValue), .id(send)])
      return rows.count == 1 ? try Self.scheduledSend(rows, 0) : nil
    }
  }

  package func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await read { connection -> ScheduledSend? in
      let rows = try connection.query(Self.selectScheduled, [.text(hub.rawValue), .id(send)])
      return rows.count == 1 ? try Self.scheduledSend(rows, 0) : nil
    }
  }

  package func waiting(_ query: SendQuery) async throws -> [ScheduledSend] {
    let (statement, parameters) = Self.listing(query)
    return try await read { connection in
      let rows = try connection.query(statement, parameters)
      return try (0..<rows.count).map { try Self.scheduledSend(rows, $0) }
    }
  }

  /// The statement that finds the waiting sends of a query. Its cost depends on the number of results only.
  static func listing(_ query: SendQuery) -> (statement: PreparedStatement, parameters: [Parameter]) {
    let page: [Parameter] = [
      .text(query.hub.rawValue), .time(query.start.acceptedAt), .id(query.start.send), .int8(Int64(query.limit)),
      .int8(query.from?.milliseconds ?? .min),
    ]
    switch (query.sender, query.user) {
    case (nil, nil): return (listAll, page)
    case (let sender?, nil): return (listBySender, page + [.text(sender)])
    case (nil, let user?): return (listByUser, page + [.text(user), .text(Audience.user(user).text)])
    case (let sender?, let user?) where sender.hasSameBytes(as: user): return (listBySender, page + [.text(sender)])
    case (let sender?, let user?): return (listByRecipient, page + [.text(Audience.user(user).text), .text(sender)])
    }
  }

  private static func byHub(_ sends: [ScheduledSend]) -> [String: [SendID]] {
    Dictionary(grouping: sends.map(\.send), by: \.hub.rawValue).mapValues { $0.map(\.id) }
  }

  /// Reads the columns `record`, `scheduled_at` and `state`.
  private static func scheduledSend(_ rows: ResultRows, _ row: Int, mayBeEnqueued: Bool = false) throws -> ScheduledSend
  {
    try ScheduledSend(
      stored: try rows.raw(row, 0), scheduledAt: UnixTime(milliseconds: try rows.integer(row, 1)),
      state: try rows.text(row, 2), mayBeEnqueued: mayBeEnqueued)
  }
}
