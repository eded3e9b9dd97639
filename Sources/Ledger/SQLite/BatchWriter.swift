import FanfareCore
import Foundation
import GRDB
import RDKafka
import Store

/// Writes one batch to the SQLite file, inside one transaction.
///
/// A send of one item whose two records come in order costs one statement for each. All other records are applied to a
/// `SendRow`.
struct BatchWriter {
  private let db: Database
  private let maximumDevices: Int
  private let accept: Statement
  private let announce: Statement
  private let settle: Statement
  private var hubs: [HubName: Int64] = [:]
  private var deltas: [Int64: HubDelta] = [:]

  init(_ db: Database, maximumDevices: Int) throws {
    self.db = db
    self.maximumDevices = maximumDevices
    accept = try db.cachedStatement(
      sql: """
        INSERT INTO sends (hub, id, accepted_at, is_announced, sender, audience) VALUES (?, ?, ?, 1, ?, ?)
        ON CONFLICT DO NOTHING
        """)
    announce = try db.cachedStatement(
      sql: "UPDATE sends SET is_announced = 1 WHERE hub = ? AND id = ? AND is_announced = 0")
    // Settles a send of one item that is accepted and open.
    settle = try db.cachedStatement(
      sql: """
        UPDATE sends SET settled_parts = 1, state = ?, settled_at = ?, digest = ?, counts = ?, devices = ?,
          failures = ?, times = ?
        WHERE hub = ? AND id = ? AND known_parts = 1 AND settled_parts = 0
        """)
  }

  /// Writes the batch. Returns the number of duplicates.
  mutating func write(_ batch: LedgerBatch) throws -> Int {
    for entry in batch.entries {
      switch entry {
      case .accepted(let acceptance): try write(acceptance)
      case .settled(let settlement): try write(settlement)
      }
    }
    for (hub, delta) in deltas { try write(delta, hub: hub) }
    try LedgerQueries(Session(.sqlite(db))).reach(batch.positions)
    return deltas.values.reduce(0) { $0 + $1.duplicates }
  }

  private mutating func write(_ acceptance: LedgerEntry.Acceptance) throws {
    let hub = try number(of: acceptance.hub)
    let id = Data(acceptance.send.bytes).databaseValue
    try run(
      accept,
      [
        hub.databaseValue, id, acceptance.acceptedAt.milliseconds.databaseValue,
        acceptance.sender.databaseValue, acceptance.audience.databaseValue,
      ])
    if db.changesCount == 1 {
      deltas[hub, default: HubDelta()].accepted += 1
      return
    }
    try run(announce, [hub.databaseValue, id])
    if db.changesCount == 1 { deltas[hub, default: HubDelta()].unannounced -= 1 }
  }

  private mutating func write(_ settlement: LedgerEntry.Settlement) throws {
    let hub = try number(of: settlement.hub)
    let id = Data(settlement.send.bytes).databaseValue
    if settlement.parts == 1 {
      try run(
        settle,
        [
          Int64(StoredCode.code(settlement.state)).databaseValue, settlement.settledAt.milliseconds.databaseValue,
          settlement.digest.databaseValue, settlement.devices == nil ? settlement.tally.stored.databaseValue : .null,
          settlement.devices.map { StoredDevices.encode($0).databaseValue } ?? .null,
          settlement.storedFailures.map { Data($0) }.databaseValue,
          settlement.storedTimes.map { Data($0) }.databaseValue, hub.databaseValue, id,
        ])
      if db.changesCount == 1 {
        deltas[hub, default: HubDelta()].count(settlement.state)
        deltas[hub, default: HubDelta()].devices.add(settlement.tally)
        return
      }
    }
    try writeOutOfOrder(settlement, hub: hub, id: id)
  }

  /// Writes a record whose send is unknown, has several items, or has already settled.
  private mutating func writeOutOfOrder(_ settlement: LedgerEntry.Settlement, hub: Int64, id: DatabaseValue) throws {
    let select = try db.cachedStatement(sql: "SELECT \(SendRow.columns) FROM sends AS s WHERE s.hub = ? AND s.id = ?")
    let rows = try GRDB.Row.fetchCursor(select, arguments: [hub, id])
    defer { withExtendedLifetime(rows) {} }
    let stored = try rows.next() == nil ? nil : SendRow(StoreRow(of: select))
    var row = stored ?? SendRow(settlement)
    var delta = deltas[hub, default: HubDelta()]
    let items = AttemptTable(Session(.sqlite(db)), row.key(of: settlement.send, hub: settlement.hub))
    let isChanged = try row.add(settlement, items: items, maximumDevices: maximumDevices, delta: &delta)
    if isChanged {
      if stored == nil {
        delta.accepted += 1
        delta.unannounced += 1
      }
      try put(row, isNew: stored == nil, hub: hub, id: id)
    }
    deltas[hub] = delta
  }

  private func put(_ row: SendRow, isNew: Bool, hub: Int64, id: DatabaseValue) throws {
    if isNew {
      let insert = try db.cachedStatement(
        sql: """
          INSERT INTO sends (known_parts, settled_parts, digest, \(ItemSum.columns), accepted_at, is_announced,
            sender, audience, hub, id)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)
          """)
      try run(
        insert,
        row.itemValues + [
          row.acceptedAt.milliseconds.databaseValue, row.sender.databaseValue, row.audience.databaseValue,
          hub.databaseValue, id,
        ])
    } else {
      let update = try db.cachedStatement(
        sql: """
          UPDATE sends SET
            known_parts = ?, settled_parts = ?, digest = ?, state = ?, settled_at = ?, counts = ?, devices = ?,
            failures = ?, times = ?
          WHERE hub = ? AND id = ?
          """)
      try run(update, row.itemValues + [hub.databaseValue, id])
    }
  }

  private func write(_ delta: HubDelta, hub: Int64) throws {
    let totals = try db.cachedStatement(
      sql: """
        UPDATE totals SET
          accepted = accepted + ?, settled = settled + ?, no_target = no_target + ?, expired = expired + ?,
          dead_lettered = dead_lettered + ?, unannounced = unannounced + ?, duplicates = duplicates + ?,
          cancelled = cancelled + ?
        WHERE hub = ?
        """)
    try totals.execute(
      arguments: [
        delta.accepted, delta.settled, delta.noTarget, delta.expired, delta.deadLettered, delta.unannounced,
        delta.duplicates, delta.cancelled, hub,
      ])
    let devices = try db.cachedStatement(
      sql: """
        INSERT INTO device_totals (hub, platform, outcome, devices) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET devices = devices + excluded.devices
        """)
    for (kind, count) in delta.devices.entries {
      try devices.execute(arguments: [hub, kind.platform.code, StoredCode.code(kind.outcome), count])
    }
  }

  private mutating func number(of hub: HubName) throws -> Int64 {
    if let number = hubs[hub] { return number }
    try run(
      db.cachedStatement(sql: "INSERT INTO hubs (name) VALUES (?) ON CONFLICT DO NOTHING"), [hub.rawValue.databaseValue]
    )
    let select = try db.cachedStatement(sql: "SELECT id FROM hubs WHERE name = ?")
    guard let number = try Int64.fetchOne(select, arguments: [hub.rawValue]) else { throw SendRow.damaged }
    try run(
      db.cachedStatement(sql: "INSERT INTO totals (hub) VALUES (?) ON CONFLICT DO NOTHING"), [number.databaseValue])
    hubs[hub] = number
    return number
  }

  /// Executes a statement without GRDB's check of the number of arguments, which costs as much as binding them.
  private func run(_ statement: Statement, _ arguments: [DatabaseValue]) throws {
    statement.setUncheckedArguments(StatementArguments(arguments))
    try statement.execute()
  }
}

extension SendRow {
  /// The values of `known_parts`, `settled_parts`, `digest` and the columns of `ItemSum`.
  fileprivate var itemValues: [DatabaseValue] {
    [
      knownParts.databaseValue, sum.items.databaseValue, digest.databaseValue,
      sum.storedState.map { Int64($0) }.databaseValue, (sum.settledAt?.milliseconds).databaseValue,
      sum.storedCounts.map { Data($0) }.databaseValue, sum.storedDevices.map { Data($0) }.databaseValue,
      sum.storedFailures.map { Data($0) }.databaseValue, sum.storedTimes.map { Data($0) }.databaseValue,
    ]
  }
}

extension Optional where Wrapped: DatabaseValueConvertible {
  /// The value, or NULL.
  fileprivate var databaseValue: DatabaseValue { self?.databaseValue ?? .null }
}
