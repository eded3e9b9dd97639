import FanfareCore
import Store

/// Removes sends older than the retention, a limited number in each transaction. Totals are not reduced.
struct Retention: Sendable {
  /// The shortest retention of a send that does not settle: the longest time to live, and a week for its settlement.
  static let open: Duration = .seconds(Int64(SendRequest.maximumTimeToLive) + 7 * 86_400)
  /// The smallest limit of rows that one transaction may remove.
  static let minimum = 500
  /// The rows that one transaction examines for sends that do not settle.
  private static let stride = 200

  private let period: Duration
  /// The latest time in any record so far, at most the present. Age is measured from here and not from the clock: a
  /// ledger rebuilt from an old log must not remove a send before its later records have been read.
  private var newest: UnixTime?
  /// The position of the search for sends that do not settle.
  private var cursor = Self.start
  private static let start = (hub: Int64(0), id: SendID(high: 0, low: 0))

  init(period: Duration) {
    self.period = period
  }

  /// Removes expired sends after a batch: at most twice the batch's entries, or `minimum`.
  mutating func run(_ session: Session, after batch: LedgerBatch, at now: UnixTime) throws {
    let times = batch.entries.map { min($0.time, now) }
    guard let newest = (times + [newest].compactMap { $0 }).max() else { return }
    self.newest = newest
    let limit = max(Self.minimum, 2 * batch.entries.count)
    let oldest = newest + (.zero - period)
    for row in try session.all(Self.selectSettled, [.time(oldest), .int(limit)], { try OldSend($0) }) {
      try row.remove(from: session)
    }
    try removeOpen(session, before: newest + (.zero - max(period, Self.open)))
  }

  private mutating func removeOpen(_ session: Session, before oldest: UnixTime) throws {
    let rows = try session.all(
      Self.selectNext, [.integer(cursor.hub), .id(cursor.id), .int(Self.stride)]
    ) { try OldSend($0) }
    for row in rows where row.acceptedAt < oldest { try row.remove(from: session) }
    cursor = rows.count == Self.stride ? rows.last.map { (hub: $0.hub, id: $0.id) } ?? Self.start : Self.start
  }

  private static let selectSettled = PreparedStatement(
    """
    SELECT \(OldSend.columns) FROM sends
    WHERE is_announced = 1 AND settled_parts >= known_parts AND settled_at < ?1 ORDER BY settled_at LIMIT ?2
    """)
  private static let selectNext = PreparedStatement(
    "SELECT \(OldSend.columns) FROM sends WHERE (hub, id) > (?1, ?2) ORDER BY hub, id LIMIT ?3")
}

/// A row that may be removed.
private struct OldSend {
  let hub: Int64
  let id: SendID
  /// Whether items of the send may be stored. Dead letters have them because they may be redriven.
  let hasItems: Bool
  let acceptedAt: UnixTime
  let hubName: String

  static let columns = """
    hub, id, known_parts > 1 OR state IS \(StoredCode.code(StatusRecord.State.deadLettered)), accepted_at,
    (SELECT name FROM hubs WHERE hubs.id = sends.hub)
    """
  private static let delete = PreparedStatement("DELETE FROM sends WHERE hub = ?1 AND id = ?2")

  init(_ row: Row) throws {
    (hub, id, hasItems) = (try row.integer(0), try row.id(1), try row.bool(2))
    (acceptedAt, hubName) = (try row.time(3), try row.text(4))
  }

  func remove(from session: Session) throws {
    try session.run(Self.delete, [.integer(hub), .id(id)])
    guard let hub = HubName(hubName) else { throw SendRow.damaged }
    let key = BatchPlan.Key(hub: hub, id: id, day: BatchPlan.day(of: acceptedAt))
    try AttemptTable(session, key).remove(hasItems: hasItems)
  }
}
