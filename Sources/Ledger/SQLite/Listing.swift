import FanfareCore
import Foundation
import GRDB

/// Answers a `SendQuery` from SQLite: reads one index, or merges two, from the newest send on until the page is full.
struct Listing {
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
    var page = PageBuilder(query)
    while let entry = heads.compactMap(\.self).max(by: { $1.isNewer(than: $0) }) {
      guard !page.isFull else { return page.full }
      for index in heads.indices where heads[index]?.position == entry.position {
        heads[index] = try cursors[index].next()
      }
      try page.add(entry.row, at: entry.position) {
        try AttemptTable.furthest(db, hub: query.hub, send: entry.position.send)
      }
    }
    return page.last
  }

  private func cursors() throws -> [MapCursor<RowCursor, Entry>] {
    let bySender = { try cursor("AND sender = ?", $0) }
    let byRecipient = { try cursor("AND audience = ?", Audience.user($0).text) }
    return switch query.index {
    case .all: [try cursor(query.kind == .broadcast ? "AND \(LedgerTables.mayBeBroadcast)" : "", nil)]
    case .sender(let name): [try bySender(name)]
    case .recipient(let name): [try byRecipient(name)]
    case .senderOrRecipient(let name): [try bySender(name), try byRecipient(name)]
    }
  }

  private func cursor(_ condition: String, _ value: String?) throws -> MapCursor<RowCursor, Entry> {
    var arguments: StatementArguments = [
      query.hub.rawValue, query.start.acceptedAt.milliseconds, Data(query.start.send.bytes),
      query.from?.milliseconds ?? .min,
    ]
    if let value { arguments += [value] }
    // Not cached: both cursors of a query can use the same SQL at the same time.
    let select = try db.makeStatement(
      sql: """
        SELECT \(SendRow.columns), id FROM sends
        WHERE hub = (SELECT id FROM hubs WHERE name = ?) AND (accepted_at, id) < (?, ?)
          AND accepted_at >= ? \(condition)
        ORDER BY accepted_at DESC, id DESC
        """)
    return try Row.fetchCursor(select, arguments: arguments).map(Entry.init)
  }
}
