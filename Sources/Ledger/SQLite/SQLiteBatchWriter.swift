import FanfareCore
import RDKafka
import Store

/// Writes one batch to the SQLite file, inside one transaction.
///
/// A send of one item whose two records come in order costs one statement for each. All other records are applied to a
/// `SendRow`.
struct SQLiteBatchWriter {
  private let session: Session
  private let maximumDevices: Int
  private var hubs: [HubName: Int64] = [:]
  private var deltas: [Int64: HubDelta] = [:]

  init(_ session: Session, maximumDevices: Int) { (self.session, self.maximumDevices) = (session, maximumDevices) }

  private static let accept = PreparedStatement(
    """
    INSERT INTO sends (hub, id, accepted_at, is_announced, sender, audience) VALUES (?1, ?2, ?3, 1, ?4, ?5)
    ON CONFLICT DO NOTHING
    """)
  private static let announce = PreparedStatement(
    "UPDATE sends SET is_announced = 1 WHERE hub = ?1 AND id = ?2 AND is_announced = 0")
  /// Settles a send of one item that is accepted and open.
  private static let settle = PreparedStatement(
    """
    UPDATE sends SET settled_parts = 1, state = ?3, settled_at = ?4, digest = ?5, counts = ?6, devices = ?7,
      failures = ?8, times = ?9
    WHERE hub = ?1 AND id = ?2 AND known_parts = 1 AND settled_parts = 0
    """)
  private static let select = PreparedStatement(
    "SELECT \(SendRow.columns) FROM sends AS s WHERE s.hub = ?1 AND s.id = ?2")
  private static let insert = PreparedStatement(
    """
    INSERT INTO sends (hub, id, known_parts, settled_parts, digest, \(ItemSum.columns), accepted_at, is_announced,
      sender, audience)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13, ?14)
    """)
  private static let update = PreparedStatement(
    """
    UPDATE sends SET known_parts = ?3, settled_parts = ?4, digest = ?5, state = ?6, settled_at = ?7, counts = ?8,
      devices = ?9, failures = ?10, times = ?11
    WHERE hub = ?1 AND id = ?2
    """)
  private static let addTotals = PreparedStatement(
    """
    UPDATE totals SET
      accepted = accepted + ?2, settled = settled + ?3, no_target = no_target + ?4, expired = expired + ?5,
      dead_lettered = dead_lettered + ?6, unannounced = unannounced + ?7, duplicates = duplicates + ?8,
      cancelled = cancelled + ?9
    WHERE hub = ?1
    """)
  private static let addDevices = PreparedStatement(
    """
    INSERT INTO device_totals (hub, platform, outcome, devices) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET devices = devices + excluded.devices
    """)
  private static let insertHub = PreparedStatement("INSERT INTO hubs (name) VALUES (?1) ON CONFLICT DO NOTHING")
  private static let selectHub = PreparedStatement("SELECT id FROM hubs WHERE name = ?1")
  private static let insertTotals = PreparedStatement("INSERT INTO totals (hub) VALUES (?1) ON CONFLICT DO NOTHING")

  /// Writes the batch. Returns the number of duplicates.
  mutating func write(_ batch: LedgerBatch) throws -> Int {
    for entry in batch.entries {
      switch entry {
      case .accepted(let acceptance): try write(acceptance)
      case .settled(let settlement): try write(settlement)
      }
    }
    for (hub, delta) in deltas { try write(delta, hub: hub) }
    try LedgerQueries(session).reach(batch.positions)
    return deltas.values.reduce(0) { $0 + $1.duplicates }
  }

  private mutating func write(_ acceptance: LedgerEntry.Acceptance) throws {
    let hub = try number(of: acceptance.hub)
    let key: [Value] = [.integer(hub), .id(acceptance.send)]
    let isNew = try session.run(
      Self.accept, key + [.time(acceptance.acceptedAt), .text(acceptance.sender), .text(acceptance.audience)])
    if isNew == 1 {
      deltas[hub, default: HubDelta()].accepted += 1
    } else if try session.run(Self.announce, key) == 1 {
      deltas[hub, default: HubDelta()].unannounced -= 1
    }
  }

  private mutating func write(_ settlement: LedgerEntry.Settlement) throws {
    let hub = try number(of: settlement.hub)
    let key: [Value] = [.integer(hub), .id(settlement.send)]
    if settlement.parts == 1 {
      let settled = try session.run(
        Self.settle,
        key + [
          .integer(Int64(settlement.storedState)), .time(settlement.settledAt), .integer(settlement.digest),
          .bytes(settlement.storedCounts), .bytes(settlement.storedDevices), .bytes(settlement.storedFailures),
          .bytes(settlement.storedTimes),
        ])
      if settled == 1 {
        deltas[hub, default: HubDelta()].count(settlement.state)
        deltas[hub, default: HubDelta()].devices.add(settlement.tally)
        return
      }
    }
    try writeOutOfOrder(settlement, hub: hub, key)
  }

  /// Writes a record whose send is unknown, has several items, or has already settled.
  private mutating func writeOutOfOrder(_ settlement: LedgerEntry.Settlement, hub: Int64, _ key: [Value]) throws {
    let stored = try session.first(Self.select, key) { try SendRow($0) }
    var row = stored ?? SendRow(settlement)
    var delta = deltas[hub, default: HubDelta()]
    let items = AttemptTable(session, row.key(of: settlement.send, hub: settlement.hub))
    let isChanged = try row.add(settlement, items: items, maximumDevices: maximumDevices, delta: &delta)
    if isChanged {
      let values = key + [.int(row.knownParts), .int(row.sum.items), .integer(row.digest)] + row.sum.values
      if stored == nil {
        delta.accepted += 1
        delta.unannounced += 1
        try session.run(Self.insert, values + [.time(row.acceptedAt), .text(row.sender), .text(row.audience)])
      } else {
        try session.run(Self.update, values)
      }
    }
    deltas[hub] = delta
  }

  private func write(_ delta: HubDelta, hub: Int64) throws {
    let sums = [
      delta.accepted, delta.settled, delta.noTarget, delta.expired, delta.deadLettered, delta.unannounced,
      delta.duplicates, delta.cancelled,
    ]
    try session.run(Self.addTotals, [.integer(hub)] + sums.map { .int($0) })
    for (kind, count) in delta.devices.entries {
      try session.run(
        Self.addDevices,
        [
          .integer(hub), .int(Int(kind.platform.code)), .int(Int(StoredCode.code(kind.outcome))), .int(count),
        ])
    }
  }

  private mutating func number(of hub: HubName) throws -> Int64 {
    if let number = hubs[hub] { return number }
    try session.run(Self.insertHub, [.hub(hub)])
    guard let number = try session.first(Self.selectHub, [.hub(hub)], { try $0.integer(0) }) else {
      throw SendRow.damaged
    }
    try session.run(Self.insertTotals, [.integer(number)])
    hubs[hub] = number
    return number
  }
}
