import FanfareCore
import Foundation
import GRDB

/// Answers a `SendQuery` from SQLite: reads one index, or merges two, from the newest send on until the page is full.
///
/// Conditions without an index (the state; the sender among one user's sends) filter at most `mostExamined` sends; then
/// the page ends early, and the caller asks for the next one.
struct Listing {
  /// The most sends examined for one page.
  static let mostExamined = 10_000

  private let db: Database
  private let query: SendQuery

  private struct Entry {
    let position: SendQuery.Position
    let row: SendRow

    init(_ row: Row) throws {
      self.row = try SendRow(row)
      guard let send = SendID(bytes: row["id"] as Data) else { throw SendRow.damaged }
      position = SendQuery.Position(acceptedAt: self.row.acceptedAt, send: send)
    }

    func isNewer(than other: Entry) -> Bool {
      (position.acceptedAt, position.send) > (other.position.acceptedAt, other.position.send)
    }
  }

  init(_ db: Database, _ query: SendQuery) {
    self.db = db
    self.query = query
  }

  func page() throws -> SendPage {
    // Scheduled sends are not in the topics yet.
    guard query.state != .scheduled else { return SendPage(sends: [], next: nil) }
    let cursors = try cursors()
    var heads = try cursors.map { try $0.next() }
    var sends: [SendReport] = []
    var last: SendQuery.Position?
    var examined = 0
    while let entry = heads.compactMap(\.self).max(by: { $1.isNewer(than: $0) }) {
      guard sends.count < query.limit, examined < Self.mostExamined else { return SendPage(sends: sends, next: last) }
      examined += 1
      last = entry.position
      for index in heads.indices where heads[index]?.position == entry.position {
        heads[index] = try cursors[index].next()
      }
      guard query.matches(entry.row) else { continue }
      let report = try Lookup.report(db, of: entry.position.send, hub: query.hub, entry.row)
      sends.append(report.withoutDevices)
    }
    return SendPage(sends: sends, next: nil)
  }

  private func cursors() throws -> [MapCursor<RowCursor, Entry>] {
    let bySender = { try cursor("AND sender = ?", $0) }
    let byRecipient = { try cursor("AND audience = ?", Tag.username($0)) }
    return switch (query.sender, query.user) {
    case (nil, nil): [try cursor("", nil)]
    case (let sender?, nil): [try bySender(sender)]
    case (nil, let user?): [try bySender(user), try byRecipient(user)]
    case (let sender?, let user?):
      [try sender.utf8.elementsEqual(user.utf8) ? bySender(sender) : byRecipient(user)]
    }
  }

  private func cursor(_ condition: String, _ value: String?) throws -> MapCursor<RowCursor, Entry> {
    var arguments: StatementArguments = [
      query.hub.rawValue, query.after?.acceptedAt.milliseconds ?? .max,
      Data(query.after?.send.bytes ?? Array(repeating: 0xFF, count: 16)),
    ]
    if let value { arguments += [value] }
    // Not cached: both cursors of a query can use the same SQL at the same time.
    let select = try db.makeStatement(
      sql: """
        SELECT \(SendRow.columns), id FROM sends
        WHERE hub = (SELECT id FROM hubs WHERE name = ?) AND (accepted_at, id) < (?, ?) \(condition)
        ORDER BY accepted_at DESC, id DESC
        """)
    return try Row.fetchCursor(select, arguments: arguments).map(Entry.init)
  }
}

extension SendQuery {
  /// Whether a row has the query's state and sender.
  func matches(_ row: SendRow) -> Bool {
    if let state, row.report != state { return false }
    // Compares bytes: Swift's == treats canonically equivalent names as equal.
    if let sender, row.sender.map({ $0.utf8.elementsEqual(sender.utf8) }) != true { return false }
    return true
  }
}

extension SendReport {
  /// The report as listed in a page.
  var withoutDevices: SendReport {
    SendReport(
      id: id, hub: hub, state: state, sender: sender, audience: audience, isBroadcast: isBroadcast, sendAt: sendAt,
      acceptedAt: acceptedAt, settledAt: settledAt, counts: counts, devices: nil)
  }
}
