import FanfareCore
import PostgreSQL

/// The answer to a `SendQuery` from a PostgreSQL database: the sends are read from an index, or two side by side, from
/// the newest on until the page is full. What no index holds is looked at send by send, for at most
/// `Listing.mostExamined` of them.
struct PostgreSQLListing {
  /// The sends that are read at a time.
  private static let stride = 1000

  private let connection: PostgreSQLConnection
  private let query: SendQuery

  init(_ connection: PostgreSQLConnection, _ query: SendQuery) {
    self.connection = connection
    self.query = query
  }

  private static func statement(_ conditions: String...) -> PreparedStatement {
    let branches = conditions.map { condition in
      """
      (SELECT \(SendTable.columns), s.id, s.day FROM ledger_sends AS s
      WHERE s.hub = $1 AND (s.accepted_at, s.id) < ($2, $3) AND s.day <= $4 \(condition)
      ORDER BY s.accepted_at DESC, s.id DESC LIMIT $5)
      """
    }
    // A send that both branches find comes once: all its columns are the same.
    return PreparedStatement(
      branches.count == 1
        ? branches[0] : branches.joined(separator: "\nUNION\n") + "\nORDER BY accepted_at DESC, id DESC LIMIT $5")
  }

  private static let everybodys = statement("AND s.hub_key = $6")
  private static let senders = statement("AND s.sender_key = $6 AND s.sender = $7")
  private static let recipients = statement("AND s.audience_key = $6 AND s.audience = $7")
  private static let users = statement(
    "AND s.sender_key = $6 AND s.sender = $7", "AND s.audience_key = $8 AND s.audience = $9")

  /// The page.
  func page() throws -> SendPage {
    // What is scheduled is not in the topics yet.
    guard query.state != .scheduled else { return SendPage(sends: [], next: nil) }
    var sends: [SendReport] = []
    var last = query.after
    var examined = 0
    while true {
      // A page that takes every send it looks at needs one more, to know whether there is another page.
      let limit = min(isFiltered ? Self.stride : query.limit - sends.count + 1, Listing.mostExamined - examined + 1)
      let rows = try next(limit, after: last)
      for number in 0..<rows.count {
        guard sends.count < query.limit, examined < Listing.mostExamined else {
          return SendPage(sends: sends, next: last)
        }
        examined += 1
        let row = try SendTable.row(rows, number, from: 0)
        let (high, low) = try rows.uuid(number, 11)
        let send = SendID(high: high, low: low)
        last = SendQuery.Position(acceptedAt: row.acceptedAt, send: send)
        guard matches(row) else { continue }
        let day = Int32(try rows.integer(number, 12))
        let report = try row.makeReport(of: send, hub: query.hub) {
          try PostgreSQLLookup(connection).furthest(send, hub: query.hub, day: day)
        }
        sends.append(report.withoutDevices)
      }
      if rows.count < limit { return SendPage(sends: sends, next: nil) }
    }
  }

  private func next(_ limit: Int, after last: SendQuery.Position?) throws -> ResultRows {
    var parameters: [Parameter] = [
      .text(query.hub.rawValue), .int8(last?.acceptedAt.milliseconds ?? .max),
      .uuid(high: last?.send.high ?? .max, low: last?.send.low ?? .max),
      .int4(last.map { BatchPlan.day(of: $0.acceptedAt) } ?? .max), .int8(Int64(limit)),
    ]
    func sender(_ name: String) -> [Parameter] { [.int8(ListKey.sender(name, hub: query.hub)), .text(name)] }
    func audience(_ name: String) -> [Parameter] { [.int8(ListKey.audience(name, hub: query.hub)), .text(name)] }
    switch (query.sender, query.user) {
    case (nil, nil):
      parameters.append(.int8(ListKey.hub(query.hub)))
      return try connection.query(Self.everybodys, parameters)
    case (let name?, nil): return try connection.query(Self.senders, parameters + sender(name))
    case (nil, let user?):
      return try connection.query(Self.users, parameters + sender(user) + audience(Tag.username(user)))
    case (let name?, let user?):
      let isOwn = name.utf8.elementsEqual(user.utf8)
      return isOwn
        ? try connection.query(Self.senders, parameters + sender(name))
        : try connection.query(Self.recipients, parameters + audience(Tag.username(user)))
    }
  }

  /// Whether some of what is read may not be in the answer: an index is read for the sender or for the recipient, not
  /// for both.
  private var isFiltered: Bool {
    if query.state != nil { return true }
    guard let sender = query.sender, let user = query.user else { return false }
    return !sender.utf8.elementsEqual(user.utf8)
  }

  private func matches(_ row: SendRow) -> Bool {
    if let state = query.state, row.report != state { return false }
    // By bytes, as everywhere: names that merely look the same are two users'.
    if let sender = query.sender, row.sender.map({ $0.utf8.elementsEqual(sender.utf8) }) != true { return false }
    return true
  }
}
