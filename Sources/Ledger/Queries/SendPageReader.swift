import FanfareCore
import Store

/// Answers a `SendQuery`: reads one index, or merges two, from the newest send on until the page is full.
struct SendPageReader {
  /// The rows read at a time where rows are filtered.
  private static let stride = 1000

  private let session: Session
  private let query: SendQuery

  init(_ session: Session, _ query: SendQuery) {
    self.session = session
    self.query = query
  }

  /// The conditions on the indexes: in SQLite by name, in PostgreSQL by the hash of the name and then by the name.
  private static let ofHub = statement(sqlite: "", postgreSQL: "AND s.hub_key = ?8")
  private static let broadcasts = statement(
    sqlite: "AND \(LedgerTables.mayBeBroadcast)",
    postgreSQL: "AND s.hub_key = ?8 AND \(LedgerTables.mayBeBroadcastInPostgreSQL)")
  private static let ofSender = statement(
    sqlite: "AND s.sender = ?9", postgreSQL: "AND s.sender_key = ?8 AND s.sender = ?9")
  private static let ofRecipient = statement(
    sqlite: "AND s.audience = ?9", postgreSQL: "AND s.audience_key = ?8 AND s.audience = ?9")
  private static let ofUser = PreparedStatement(
    sqlite: union(sqlite("AND s.sender = ?9"), sqlite("AND s.audience = ?11")),
    postgreSQL: union(
      postgreSQL("AND s.sender_key = ?8 AND s.sender = ?9"), postgreSQL("AND s.audience_key = ?10 AND s.audience = ?11")
    ))

  private static func statement(sqlite condition: String, postgreSQL other: String) -> PreparedStatement {
    PreparedStatement(sqlite: sqlite(condition), postgreSQL: postgreSQL(other))
  }

  private static func sqlite(_ condition: String) -> String {
    """
    SELECT \(SendRow.columns), s.id FROM sends AS s
    WHERE s.hub = (SELECT id FROM hubs WHERE name = ?1) AND (s.accepted_at, s.id) < (?2, ?3) AND s.accepted_at >= ?6
      \(condition)
    ORDER BY s.accepted_at DESC, s.id DESC LIMIT ?5
    """
  }

  private static func postgreSQL(_ condition: String) -> String {
    """
    SELECT \(SendRow.columns), s.id FROM ledger_sends AS s
    WHERE s.hub = ?1 AND (s.accepted_at, s.id) < (?2, ?3) AND s.day <= ?4 AND s.accepted_at >= ?6 AND s.day >= ?7
      \(condition)
    ORDER BY s.accepted_at DESC, s.id DESC LIMIT ?5
    """
  }

  /// UNION returns a send that both branches find once, because all its columns are equal.
  private static func union(_ one: String, _ other: String) -> String {
    "SELECT * FROM (\(one)) AS a UNION SELECT * FROM (\(other)) AS b ORDER BY accepted_at DESC, id DESC LIMIT ?5"
  }

  func page() throws -> SendPage {
    // Scheduled sends are not in the topics yet.
    guard query.state != .scheduled else { return SendPage(sends: [], next: nil) }
    var page = PageBuilder(query)
    while true {
      let limit = page.rowsToRead(stride: Self.stride)
      let rows = try next(limit, after: page.position)
      for (row, send) in rows {
        guard !page.isFull else { return page.full }
        try page.add(row, at: SendQuery.Position(acceptedAt: row.acceptedAt, send: send)) {
          try AttemptTable(session, row.key(of: send, hub: query.hub)).furthest()
        }
      }
      if rows.count < limit { return page.last }
    }
  }

  private func next(_ limit: Int, after last: SendQuery.Position) throws -> [(row: SendRow, send: SendID)] {
    let (statement, names) = selection
    let page: [Value] = [
      .hub(query.hub), .time(last.acceptedAt), .id(last.send), .integer(Int64(BatchPlan.day(of: last.acceptedAt))),
      .int(limit), .integer(query.from?.milliseconds ?? .min),
      .integer(Int64(query.from.map(BatchPlan.day) ?? .min)),
    ]
    return try session.all(statement, page + names) { (try SendRow($0), try $0.id(SendRow.columnCount)) }
  }

  private var selection: (statement: PreparedStatement, names: [Value]) {
    func sender(_ name: String) -> [Value] { [.integer(ListKey.sender(name, hub: query.hub)), .text(name)] }
    func recipient(_ name: String) -> [Value] {
      let audience = Audience.user(name).text
      return [.integer(ListKey.audience(audience, hub: query.hub)), .text(audience)]
    }
    return switch query.index {
    case .all: (query.kind == .broadcast ? Self.broadcasts : Self.ofHub, [.integer(ListKey.hub(query.hub))])
    case .sender(let name): (Self.ofSender, sender(name))
    case .recipient(let name): (Self.ofRecipient, recipient(name))
    case .senderOrRecipient(let name): (Self.ofUser, sender(name) + recipient(name))
    }
  }
}
