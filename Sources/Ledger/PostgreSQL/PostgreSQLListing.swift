import FanfareCore
import Store

/// Answers a `SendQuery` from PostgreSQL, as `Listing` does from SQLite.
struct PostgreSQLListing {
  /// The rows read at a time where rows are filtered.
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
      WHERE s.hub = $1 AND (s.accepted_at, s.id) < ($2, $3) AND s.day <= $4 AND s.accepted_at >= $6 AND s.day >= $7
        \(condition)
      ORDER BY s.accepted_at DESC, s.id DESC LIMIT $5)
      """
    }
    // UNION returns a send that both branches find once, because all its columns are equal.
    return PreparedStatement(
      branches.count == 1
        ? branches[0] : branches.joined(separator: "\nUNION\n") + "\nORDER BY accepted_at DESC, id DESC LIMIT $5")
  }

  private static let ofHub = statement("AND s.hub_key = $8")
  private static let broadcasts = statement("AND s.hub_key = $8 AND \(LedgerTables.mayBeBroadcastInPostgreSQL)")
  private static let ofSender = statement("AND s.sender_key = $8 AND s.sender = $9")
  private static let ofRecipient = statement("AND s.audience_key = $8 AND s.audience = $9")
  private static let ofUser = statement(
    "AND s.sender_key = $8 AND s.sender = $9", "AND s.audience_key = $10 AND s.audience = $11")

  func page() throws -> SendPage {
    // Scheduled sends are not in the topics yet.
    guard query.state != .scheduled else { return SendPage(sends: [], next: nil) }
    var page = PageBuilder(query)
    while true {
      let limit = page.rowsToRead(stride: Self.stride)
      let rows = try next(limit, after: page.position)
      for number in 0..<rows.count {
        guard !page.isFull else { return page.full }
        let row = try SendTable.row(rows, number, from: 0)
        let (high, low) = try rows.uuid(number, SendTable.columnCount)
        let send = SendID(high: high, low: low)
        try page.add(row, at: SendQuery.Position(acceptedAt: row.acceptedAt, send: send)) {
          let day = Int32(try rows.integer(number, SendTable.columnCount + 1))
          return try PostgreSQLLookup(connection).furthest(send, hub: query.hub, day: day)
        }
      }
      if rows.count < limit { return page.last }
    }
  }

  private func next(_ limit: Int, after last: SendQuery.Position) throws -> ResultRows {
    let parameters: [Parameter] = [
      .text(query.hub.rawValue), .int8(last.acceptedAt.milliseconds), .uuid(high: last.send.high, low: last.send.low),
      .int4(BatchPlan.day(of: last.acceptedAt)), .int8(Int64(limit)), .int8(query.from?.milliseconds ?? .min),
      .int4(query.from.map(BatchPlan.day) ?? .min),
    ]
    func sender(_ name: String) -> [Parameter] { [.int8(ListKey.sender(name, hub: query.hub)), .text(name)] }
    func recipient(_ name: String) -> [Parameter] {
      let audience = Audience.user(name).text
      return [.int8(ListKey.audience(audience, hub: query.hub)), .text(audience)]
    }
    switch query.index {
    case .all:
      return try connection.query(
        query.kind == .broadcast ? Self.broadcasts : Self.ofHub, parameters + [.int8(ListKey.hub(query.hub))])
    case .sender(let name): return try connection.query(Self.ofSender, parameters + sender(name))
    case .recipient(let name): return try connection.query(Self.ofRecipient, parameters + recipient(name))
    case .senderOrRecipient(let name):
      return try connection.query(Self.ofUser, parameters + sender(name) + recipient(name))
    }
  }
}

/// 64-bit hashes of names for the indexes of lists, which take less than half the space of indexes on the names.
///
/// Names may collide, so queries compare the names, too. Stored: the hash must never change.
enum ListKey {
  static func hub(_ hub: HubName) -> Int64 { key(hub, "", 0) }

  static func sender(_ sender: String, hub: HubName) -> Int64 { key(hub, sender, 1) }

  static func audience(_ audience: String, hub: HubName) -> Int64 { key(hub, audience, 2) }

  /// FNV-1a of hub, kind and name. A hub's name never contains the byte of the kind.
  private static func key(_ hub: HubName, _ name: String, _ kind: UInt8) -> Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in hub.rawValue.utf8 { mix(byte) }
    mix(kind)
    for byte in name.utf8 { mix(byte) }
    return Int64(bitPattern: hash)
  }
}
