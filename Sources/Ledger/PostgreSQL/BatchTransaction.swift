import FanfareCore
import PostgreSQL
import RDKafka

/// Puts one batch into the tables, inside one transaction.
///
/// The usual way of a send costs no more than its share of one statement, which enters all sends of the batch or adds to them what is new. That
/// statement also locks every one of them, in the same order in every ledger: what comes after it for the few that are not usual meets nobody.
struct BatchTransaction {
  private let connection: PostgreSQLConnection
  private let slot: Int16
  private let maximumDevices: Int
  private var deltas: [HubName: HubDelta] = [:]

  init(_ connection: PostgreSQLConnection, slot: Int16, maximumDevices: Int) {
    self.connection = connection
    self.slot = slot
    self.maximumDevices = maximumDevices
  }

  /// Puts the batch in. Returns how many records have turned out not to count.
  mutating func write(_ plan: BatchPlan) throws -> Int {
    let left = try enter(plan)
    if !left.isEmpty { try writeOutOfOrder(left) }
    try account(plan)
    return deltas.values.reduce(0) { $0 + $1.duplicates }
  }

  // MARK: - The usual way

  /// Whether the statement ends a send of one item that is open.
  private static let ends = "excluded.settled_parts = 1 AND s.known_parts = 1 AND s.settled_parts = 0"
  private static let announces = "excluded.is_announced AND NOT s.is_announced"
  private static let endColumns = ["settled_parts", "state", "settled_at", "digest", "counts", "devices"]

  /// `change` says of a row what this statement did to it: 0 entered it, 1 announced it, 2 ended it, 3 both. Rows to which it did nothing
  /// are locked and not returned.
  private static let entering = PreparedStatement(
    """
    INSERT INTO ledger_sends AS s (hub, id, day, accepted_at, is_announced, sender, audience, \(endColumns.joined(separator: ", ")))
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (hub, id, day) DO UPDATE SET
      change = CASE WHEN \(announces) THEN 1 ELSE 0 END + CASE WHEN \(ends) THEN 2 ELSE 0 END,
      is_announced = s.is_announced OR excluded.is_announced,
      \(endColumns.map { "\($0) = CASE WHEN \(ends) THEN excluded.\($0) ELSE s.\($0) END" }.joined(separator: ",\n  "))
    WHERE (\(announces)) OR (\(ends))
    RETURNING hub, id, day, change
    """)

  /// Enters the batch's sends, or adds to them what is new. Returns those of which something is left to be said.
  private mutating func enter(_ plan: BatchPlan) throws -> [BatchPlan.Send] {
    let sends = plan.sends
    guard !sends.isEmpty else { return [] }
    let ends = sends.map(\.end)
    let times: [Int64?] = sends.map { Self.acceptedAt($0).milliseconds }
    let senders: [String?] = sends.map { send in
      Self.text(send.acceptance == nil ? send.settlements.first?.sender : send.acceptance?.sender)
    }
    let audiences: [String?] = sends.map { Self.text($0.acceptance?.audience ?? $0.settlements.first?.audience ?? "") }
    let parts: [Int64?] = ends.map { $0 == nil ? 0 : 1 }
    let states: [Int16?] = ends.map { end in end.map { Int16(StoredCode.code($0.state)) } }
    let endTimes: [Int64?] = ends.map { $0?.settledAt.milliseconds }
    let digests: [Int64?] = ends.map { $0?.digest }
    let counts: [[UInt8]?] = ends.map { end in
      guard let end, end.devices == nil else { return nil }
      return [UInt8](end.tally.stored)
    }
    let devices: [[UInt8]?] = ends.map { end in
      guard let devices = end?.devices else { return nil }
      return [UInt8](StoredDevices.encode(devices))
    }
    let hubs: [String?] = sends.map { $0.key.hub.rawValue }
    let ids = sends.map { (high: $0.key.id.high, low: $0.key.id.low) }
    let days: [Int32?] = sends.map { $0.key.day }
    let changed = try connection.query(
      Self.entering,
      [
        .texts(hubs), .uuids(ids), .int4s(days), .int8s(times), .bools(sends.map { $0.acceptance != nil }), .texts(senders),
        .texts(audiences), .int8s(parts), .int2s(states), .int8s(endTimes), .int8s(digests), .byteas(counts), .byteas(devices),
      ])
    var hasEnded = Array(repeating: false, count: sends.count)
    for row in 0..<changed.count {
      let (high, low) = try changed.uuid(row, 1)
      guard let hub = HubName(try changed.text(row, 0)),
        let position = plan.index[.init(hub: hub, id: SendID(high: high, low: low), day: Int32(try changed.integer(row, 2)))]
      else { throw SendRow.damaged }
      let change = try changed.integer(row, 3)
      var delta = deltas[hub, default: HubDelta()]
      if change == 0 {
        delta.accepted += 1
        if sends[position].acceptance == nil { delta.unannounced += 1 }
      }
      if change & 1 != 0 { delta.unannounced -= 1 }
      if change == 0 || change & 2 != 0, let end = ends[position] {
        hasEnded[position] = true
        delta.count(end.state)
        delta.devices.add(end.tally)
      }
      deltas[hub] = delta
    }
    return zip(sends, hasEnded).compactMap { send, hasEnded in
      var send = send
      if hasEnded { send.settlements.removeFirst() }
      return send.settlements.isEmpty ? nil : send
    }
  }

  private static func acceptedAt(_ send: BatchPlan.Send) -> UnixTime {
    send.acceptance?.acceptedAt ?? send.settlements.first?.acceptedAt ?? UnixTime(milliseconds: 0)
  }

  /// PostgreSQL stores every character but one.
  private static func text(_ text: String?) -> String? {
    guard let text, text.utf8.contains(0) else { return text }
    return text.replacing("\0", with: "\u{FFFD}")
  }

  // MARK: - Everything else

  /// Records of sends that have several items, or have ended already.
  private mutating func writeOutOfOrder(_ sends: [BatchPlan.Send]) throws {
    let rows = try SendTable.rows(of: sends.map(\.key), on: connection)
    var changed: [(key: BatchPlan.Key, row: SendRow)] = []
    for (send, row) in zip(sends, rows) {
      var (row, isChanged) = (row, false)
      let items = PostgreSQLAttemptTable(connection, send: send.key)
      for settlement in send.settlements {
        let hasChanged = try row.take(
          settlement, items: items, maximumDevices: maximumDevices, delta: &deltas[send.key.hub, default: HubDelta()])
        isChanged = isChanged || hasChanged
      }
      if isChanged { changed.append((send.key, row)) }
    }
    if !changed.isEmpty { try SendTable.update(changed, on: connection) }
  }

  // MARK: - Sums

  private static let accounting = PreparedStatement(
    """
    WITH sends AS (
      INSERT INTO ledger_totals AS t
        (hub, slot, accepted, settled, no_target, expired, dead_lettered, cancelled, unannounced, duplicates)
      SELECT hub, $1, accepted, settled, no_target, expired, dead_lettered, cancelled, unannounced, duplicates
      FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10)
        AS u (hub, accepted, settled, no_target, expired, dead_lettered, cancelled, unannounced, duplicates)
      ON CONFLICT (hub, slot) DO UPDATE SET
        accepted = t.accepted + excluded.accepted, settled = t.settled + excluded.settled,
        no_target = t.no_target + excluded.no_target, expired = t.expired + excluded.expired,
        dead_lettered = t.dead_lettered + excluded.dead_lettered, cancelled = t.cancelled + excluded.cancelled,
        unannounced = t.unannounced + excluded.unannounced, duplicates = t.duplicates + excluded.duplicates
    ), devices AS (
      INSERT INTO ledger_device_totals AS t (hub, platform, outcome, slot, devices)
      SELECT hub, platform, outcome, $1, devices FROM unnest($11, $12, $13, $14) AS u (hub, platform, outcome, devices)
      ON CONFLICT (hub, platform, outcome, slot) DO UPDATE SET devices = t.devices + excluded.devices
    )
    INSERT INTO ledger_positions (topic, part, next_offset) SELECT * FROM unnest($15, $16, $17)
    ON CONFLICT (topic, part) DO UPDATE SET next_offset = excluded.next_offset
    """)

  private func account(_ plan: BatchPlan) throws {
    let sums = deltas.sorted { $0.key.rawValue < $1.key.rawValue }
    let hubs: [String?] = sums.map { $0.key.rawValue }
    func column(_ value: KeyPath<HubDelta, Int>) -> Parameter {
      let column: [Int64?] = sums.map { Int64($0.value[keyPath: value]) }
      return .int8s(column)
    }
    var devices: (hubs: [String?], platforms: [Int16?], outcomes: [Int16?], counts: [Int64?]) = ([], [], [], [])
    for (hub, delta) in sums {
      for (kind, count) in delta.devices.entries {
        devices.hubs.append(hub.rawValue)
        devices.platforms.append(Int16(StoredCode.code(kind.platform)))
        devices.outcomes.append(Int16(StoredCode.code(kind.outcome)))
        devices.counts.append(Int64(count))
      }
    }
    let topics: [String?] = plan.positions.map { $0.key.topic }
    let partitions: [Int32?] = plan.positions.map { $0.key.partition }
    let offsets: [Int64?] = plan.positions.map { $0.value }
    try connection.query(
      Self.accounting,
      [
        .int2(slot), .texts(hubs), column(\.accepted), column(\.settled), column(\.noTarget), column(\.expired),
        column(\.deadLettered), column(\.cancelled), column(\.unannounced), column(\.duplicates), .texts(devices.hubs),
        .int2s(devices.platforms), .int2s(devices.outcomes), .int8s(devices.counts), .texts(topics), .int4s(partitions),
        .int8s(offsets),
      ])
  }
}
