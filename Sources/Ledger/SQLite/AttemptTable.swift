import FanfareCore
import Foundation
import GRDB

/// The items of one send in the SQLite tables `attempts`, `parts` and `duplicates`.
struct AttemptTable: SendItems {
  private let db: Database
  private let send: [DatabaseValue]

  init(_ db: Database, hub: Int64, send: DatabaseValue) {
    self.db = db
    self.send = [hub.databaseValue, send]
  }

  /// The sum of the open attempt with the most items; nil when there is none.
  static func furthest(_ db: Database, hub: HubName, send: SendID) throws -> ItemSum? {
    let select = try db.cachedStatement(
      sql: """
        SELECT settled_parts, \(ItemSum.columns) FROM attempts
        WHERE hub = (SELECT id FROM hubs WHERE name = ?) AND send = ? ORDER BY settled_parts DESC, attempt LIMIT 1
        """)
    return try Row.fetchOne(select, arguments: [hub.rawValue, Data(send.bytes)]).map {
      try ItemSum(items: $0[0], $0, from: 1)
    }
  }

  /// The row before the item's first one may reach into the item; all others begin in it.
  func stored(_ item: LedgerEntry.Settlement) throws -> [StoredRange] {
    let select = try db.cachedStatement(
      sql: """
        SELECT part, span, digest FROM parts WHERE hub = ?1 AND send = ?2 AND attempt = ?3
          AND part >= coalesce(
            (SELECT max(part) FROM parts WHERE hub = ?1 AND send = ?2 AND attempt = ?3 AND part <= ?4), ?4)
          AND part < ?5 AND part + span > ?4 ORDER BY part
        """)
    let range = item.range
    let arguments = send + [Self.key(of: item), range.lowerBound.databaseValue, range.upperBound.databaseValue]
    return try Row.fetchAll(select, arguments: StatementArguments(arguments)).map { row in
      guard let items = StoredRange.items(row[0], row[1]) else { throw SendRow.damaged }
      return StoredRange(items: items, digest: row[2])
    }
  }

  func add(_ item: LedgerEntry.Settlement, _ ranges: [Range<Int>], maximumDevices: Int) throws -> ItemSum {
    let key = Self.key(of: item)
    let insert = try db.cachedStatement(
      sql: "INSERT INTO parts (hub, send, attempt, part, span, digest) VALUES (?, ?, ?, ?, ?, ?)")
    for range in ranges {
      let values = [range.lowerBound.databaseValue, range.count.databaseValue, item.digest.databaseValue]
      try insert.execute(arguments: StatementArguments(send + [key] + values))
    }
    let select = try db.cachedStatement(
      sql: "SELECT settled_parts, \(ItemSum.columns) FROM attempts WHERE hub = ? AND send = ? AND attempt = ?")
    var sum =
      try Row.fetchOne(select, arguments: StatementArguments(send + [key])).map {
        try ItemSum(items: $0[0], $0, from: 1)
      }
      ?? ItemSum()
    sum.add(item, items: ranges.reduce(0) { $0 + $1.count }, maximumDevices: maximumDevices)
    let put = try db.cachedStatement(
      sql: """
        REPLACE INTO attempts (hub, send, attempt, settled_parts, \(ItemSum.columns))
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """)
    try put.execute(arguments: StatementArguments(send + [key, sum.items.databaseValue] + sum.values))
    return sum
  }

  func noteOthers(than item: LedgerEntry.Settlement) throws -> Int {
    try db.cachedStatement(
      sql: """
        INSERT INTO duplicates (hub, send, part, digest)
        SELECT hub, send, part, digest FROM parts WHERE hub = ? AND send = ? AND attempt <> ? ON CONFLICT DO NOTHING
        """
    ).execute(arguments: StatementArguments(send + [Self.key(of: item)]))
    return db.changesCount
  }

  func close(with item: LedgerEntry.Settlement) throws {
    try db.cachedStatement(sql: "DELETE FROM parts WHERE hub = ? AND send = ? AND attempt <> ?")
      .execute(arguments: StatementArguments(send + [Self.key(of: item)]))
    try db.cachedStatement(sql: "DELETE FROM attempts WHERE hub = ? AND send = ?").execute(
      arguments: StatementArguments(send))
  }

  func redeem(_ item: LedgerEntry.Settlement) throws -> Int {
    try db.cachedStatement(
      sql: """
        DELETE FROM duplicates WHERE hub = ? AND send = ?
          AND digest IN (SELECT digest FROM parts WHERE hub = ? AND send = ? AND attempt = ?)
        """
    ).execute(arguments: StatementArguments(send + send + [Self.key(of: item)]))
    return db.changesCount
  }

  func isDuplicate(_ item: LedgerEntry.Settlement) throws -> Bool {
    let select = try db.cachedStatement(
      sql: "SELECT 1 FROM duplicates WHERE hub = ? AND send = ? AND part = ? AND digest = ?")
    let arguments = send + [item.part.databaseValue, item.digest.databaseValue]
    return try Row.fetchOne(select, arguments: StatementArguments(arguments)) != nil
  }

  func noteDuplicate(_ digest: Int64, part: Int) throws -> Int {
    try db.cachedStatement(
      sql: "INSERT INTO duplicates (hub, send, part, digest) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    ).execute(arguments: StatementArguments(send + [part.databaseValue, digest.databaseValue]))
    return db.changesCount
  }

  private static func key(of item: LedgerEntry.Settlement) -> DatabaseValue { Data(item.attemptKey).databaseValue }
}
