package import FanfareCore
import Store

extension RegistryDatabase: ScheduledSendStore {
  private static let insertHeld = PreparedStatement(
    """
    INSERT INTO scheduled_sends (hub, id, sender, audience, record, scheduled_at, state, ready_at, bytes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (hub, id) DO NOTHING
    """)
  private static let selectNextDue = PreparedStatement("SELECT min(ready_at) FROM scheduled_sends WHERE state = 'held'")
  private static let selectDue = PreparedStatement(
    """
    SELECT record, scheduled_at, state, hub, id, lease IS NOT NULL FROM scheduled_sends
    WHERE state = 'held' AND ready_at <= ?1 ORDER BY ready_at LIMIT ?2 FOR UPDATE SKIP LOCKED
    """)
  private static let markUnreadable = PreparedStatement(
    "UPDATE scheduled_sends SET state = 'unreadable', forget_at = ?3 WHERE hub = ?1 AND id = ?2")
  private static let setLease = PreparedStatement(
    "UPDATE scheduled_sends SET ready_at = ?3, lease = ?4 WHERE hub = ?1 AND id = ?2")
  private static let markFired = PreparedStatement(
    """
    UPDATE scheduled_sends SET state = 'fired', forget_at = ?4
    WHERE hub = ?1 AND id = ?2 AND lease = ?3 AND state = 'held'
    """)
  private static let releaseLease = PreparedStatement(
    """
    UPDATE scheduled_sends SET ready_at = ?4, lease = CASE WHEN ?5 THEN lease END
    WHERE hub = ?1 AND id = ?2 AND lease = ?3 AND state = 'held'
    """)
  private static let updateScheduled = PreparedStatement(
    """
    UPDATE scheduled_sends SET state = ?3, forget_at = ?4
    WHERE hub = ?1 AND id = ?2 AND lease IS NULL AND state IN ('held', 'paused')
    """)
  private static let selectScheduled = PreparedStatement(
    """
    SELECT record, scheduled_at, CASE WHEN state = 'held' AND lease IS NOT NULL THEN 'fired' ELSE state END
    FROM scheduled_sends WHERE hub = ?1 AND id = ?2
    """)
  private static let listAll = listing("")
  private static let listBySender = listing("AND sender = ?6")
  private static let listByUser = listing("AND sender = ?6", "AND audience = ?7")
  /// Fewer sends wait for one user than from one sender: the concatenation keeps SQLite from using the sender's index.
  private static let listByRecipient = listing("AND audience = ?6 AND sender || '' = ?7")

  /// Each condition is a branch, read newest first from one of the partial indexes of the waiting sends.
  private static func listing(_ conditions: String...) -> PreparedStatement {
    let branches = conditions.map { condition in
      """
      SELECT record, scheduled_at, state, id FROM scheduled_sends
      WHERE hub = ?1 AND state IN ('held', 'paused') AND lease IS NULL AND (scheduled_at, id) < (?2, ?3)
        AND scheduled_at >= ?5 \(condition)
      ORDER BY scheduled_at DESC, id DESC LIMIT ?4
      """
    }
    guard branches.count > 1 else { return PreparedStatement(branches[0]) }
    // UNION removes the duplicate of a send that both branches find.
    let union = branches.map { "SELECT * FROM (\($0)) AS branch" }.joined(separator: "\nUNION\n")
    return PreparedStatement(union + "\nORDER BY scheduled_at DESC, id DESC LIMIT ?4")
  }

  package func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws
    -> QuotaName?
  {
    let rows = sends.map { (held: $0, record: $0.send.encoded()) }
    return try await write(at: now) { session -> QuotaName? in
      for (sender, group) in Dictionary(grouping: rows, by: \.held.send.senderKey) {
        guard let sender else { continue }
        let bytes = group.reduce(0) { $0 + $1.record.count }
        let exceeded = try ScheduledUse.add(
          group.count, bytes: bytes, of: sender, within: limit, at: now, in: session)
        if let exceeded { return exceeded }
      }
      try session.run(
        Self.insertHeld,
        each: rows.map { held, record in
          [
            .hub(held.send.hub), .id(held.send.id), .text(held.send.sender), .text(held.send.audience.text),
            .bytes(record), .time(held.scheduledAt), .text(held.state.rawValue), .time(held.due), .int(record.count),
          ]
        })
      return nil
    }
  }

  package func nextDue() async throws -> UnixTime? {
    try await read { try $0.first(Self.selectNextDue) { try $0.optionalTime(0) } ?? nil }
  }

  package func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    try await write { session in
      let rows = try session.all(Self.selectDue, [.time(now), .int(limit)]) {
        row -> (hub: String, id: SendID, send: ScheduledSend?) in
        let (hub, id): (String, SendID) = (try row.text(3), try row.id(4))
        do {
          return (hub, id, try ScheduledSend(row, mayBeEnqueued: row.bool(5)))
        } catch let error as RegistryError where error == ScheduledSend.damaged {
          return (hub, id, nil)
        }
      }
      for row in rows where row.send == nil {
        try session.run(Self.markUnreadable, [.text(row.hub), .id(row.id), .time(now + Purge.broadcastLifetime)])
        if let hub = HubName(row.hub) { unreadable(hub, row.id) }
      }
      let due = rows.compactMap(\.send)
      try session.run(Self.setLease, each: due.map { $0.key + [.time(end), .id(lease)] })
      return due
    }
  }

  package func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await write(at: now) { session in
      try session.run(Self.markFired, each: sends.map { $0.key + [.id(lease), .time(now + Purge.firedLifetime)] })
    }
  }

  package func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await write { session in
      try session.run(
        Self.releaseLease, each: sends.map { $0.key + [.id(lease), .time(moment), .bool($0.mayBeEnqueued)] })
    }
  }

  package func control(
    _ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime
  ) async throws -> ScheduledSend? {
    try await write(at: now) { session -> ScheduledSend? in
      let end = ScheduledSend.forgetAt(state, at: now)
      try session.run(Self.updateScheduled, [.hub(hub), .id(send), .text(state.rawValue), .time(end)])
      return try session.first(Self.selectScheduled, [.hub(hub), .id(send)]) { try ScheduledSend($0) }
    }
  }

  package func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await read { try $0.first(Self.selectScheduled, [.hub(hub), .id(send)]) { try ScheduledSend($0) } }
  }

  package func waiting(_ query: SendQuery) async throws -> [ScheduledSend] {
    let (statement, values) = Self.listing(query)
    return try await read { try $0.all(statement, values) { try ScheduledSend($0) } }
  }

  /// The statement that finds the waiting sends of a query. Its cost depends on the number of results only.
  static func listing(_ query: SendQuery) -> (statement: PreparedStatement, values: [Value]) {
    let page: [Value] = [
      .hub(query.hub), .time(query.start.acceptedAt), .id(query.start.send), .int(query.limit),
      .integer(query.from?.milliseconds ?? .min),
    ]
    switch (query.sender, query.user) {
    case (nil, nil): return (listAll, page)
    case (let sender?, nil): return (listBySender, page + [.text(sender)])
    case (nil, let user?): return (listByUser, page + [.text(user), .text(Audience.user(user).text)])
    case (let sender?, let user?) where sender.hasSameBytes(as: user): return (listBySender, page + [.text(sender)])
    case (let sender?, let user?): return (listByRecipient, page + [.text(Audience.user(user).text), .text(sender)])
    }
  }
}

extension ScheduledSend {
  /// The values of the columns `hub` and `id`.
  fileprivate var key: [Value] { [.hub(send.hub), .id(send.id)] }

  /// Reads the columns `record`, `scheduled_at` and `state`. Throws ``damaged``.
  fileprivate init(_ row: Row, mayBeEnqueued: Bool = false) throws {
    try self.init(
      stored: row.bytes(0), scheduledAt: row.time(1), state: row.text(2), mayBeEnqueued: mayBeEnqueued)
  }
}

extension ScheduledUse {
  private static let count = PreparedStatement(
    """
    SELECT count(*) FILTER (WHERE state <> 'cancelled'), CAST(coalesce(sum(bytes), 0) AS bigint)
    FROM scheduled_sends WHERE hub = ?1 AND sender = ?2 AND state IN ('held', 'paused', 'cancelled')
    """)
  private static let lock = PreparedStatement(
    "SELECT sends, bytes, counted_at FROM scheduled_use WHERE hub = ?1 AND username = ?2 FOR UPDATE")
  private static let insert = PreparedStatement(
    """
    INSERT INTO scheduled_use (hub, username, sends, bytes, counted_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hub, username) DO NOTHING
    """)
  private static let update = PreparedStatement(
    "UPDATE scheduled_use SET sends = ?3, bytes = ?4, counted_at = ?5 WHERE hub = ?1 AND username = ?2")

  /// Counts what a sender's scheduled sends take. `key` has the hub and the sender.
  static func counted(_ key: [Value], in session: Session) throws -> (sends: Int, bytes: Int) {
    try session.first(count, key) { (try $0.int(0), try $0.int(1)) } ?? (0, 0)
  }

  /// See ``add(_:bytes:within:at:recount:)``.
  fileprivate static func add(
    _ sends: Int, bytes: Int, of sender: SenderKey, within limit: ScheduledSendLimit, at now: UnixTime,
    in session: Session
  ) throws -> QuotaName? {
    let key: [Value] = [.hub(sender.hub), .text(sender.name)]
    func locked() throws -> ScheduledUse? {
      try session.first(lock, key) {
        ScheduledUse(sends: try $0.int(0), bytes: try $0.int(1), countedAt: try $0.integer(2))
      }
    }
    var held = try locked()
    if held == nil {
      let counted = try counted(key, in: session)
      try session.run(insert, key + [.int(counted.sends), .int(counted.bytes), .time(now)])
      held = try locked()
    }
    guard var use = held else { throw StoreError.overtaken }
    let refusal = try use.add(sends, bytes: bytes, within: limit, at: now) { try counted(key, in: session) }
    try session.run(update, key + [.int(use.sends), .int(use.bytes), .integer(use.countedAt)])
    return refusal
  }
}
