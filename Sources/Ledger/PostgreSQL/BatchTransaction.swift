import FanfareCore
import Store

/// Writes sends and their results to PostgreSQL, inside one transaction.
///
/// Three statements write most sends: `copy` inserts new ones, `SendTable.settle` settles open ones, and `upserting`
/// inserts or updates any. The last one also locks all its rows, so that sends of several items and records out of
/// order can then be read and written one by one. Every ledger locks the sends of a day in the same order. Two ledgers
/// that go through several days in different orders can deadlock: the server aborts one transaction, which is retried.
struct BatchTransaction {
  private let connection: PostgreSQLConnection
  private let slot: Int16
  private let maximumDevices: Int
  private var deltas: [HubName: HubDelta] = [:]

  private static let lockingDays = PreparedStatement("SELECT 1 FROM ledger_days WHERE day = ANY ($1) FOR SHARE")

  /// Starts in a transaction that has just begun on the connection. `days` may be old enough to be dropped: their
  /// partitions are locked until the transaction ends. `slot` selects the rows of the totals.
  init(_ connection: PostgreSQLConnection, keeping days: [Int32], slot: Int16, maximumDevices: Int) throws {
    // Dropping a day first selects the sends that stay, without a lock, and would lose sends inserted after that. A
    // transaction that waits here holds no lock that the drop needs; afterwards its sends go to the default partition.
    if !days.isEmpty { try connection.query(Self.lockingDays, [.int4s(days)]) }
    self.connection = connection
    self.slot = slot
    self.maximumDevices = maximumDevices
  }

  /// Inserts accepted sends by `COPY`, with their `end` if they have one. Throws 23505 when one of them exists.
  mutating func copy(_ sends: [BatchPlan.Send]) throws {
    try SendCopy.copy(sends, on: connection)
    for send in sends {
      deltas[send.key.hub, default: HubDelta()].accepted += 1
      if let end = send.end { count(end) }
    }
    try updateTotals()
  }

  /// Writes any sends. Open sends are settled by one statement per day that has at least `fewest` of them. Returns the
  /// number of duplicates.
  mutating func write(_ sends: [BatchPlan.Send], settlingAtLeast fewest: Int) throws -> Int {
    let left = try upsert(try settle(sends, atLeast: fewest))
    if !left.isEmpty { try writeOutOfOrder(left) }
    try updateTotals()
    return deltas.values.reduce(0) { $0 + $1.duplicates }
  }

  private mutating func count(_ end: LedgerEntry.Settlement) {
    deltas[end.hub, default: HubDelta()].count(end.state)
    deltas[end.hub, default: HubDelta()].devices.add(end.tally)
  }

  /// Settles open sends of days that have at least `fewest` of them. Returns the records left.
  private mutating func settle(_ sends: [BatchPlan.Send], atLeast fewest: Int) throws -> [BatchPlan.Send] {
    let candidates = sends.indices.filter { sends[$0].acceptance == nil && sends[$0].end != nil }
    var ended: Set<Int> = []
    for (day, places) in Dictionary(grouping: candidates, by: { sends[$0].key.day }).sorted(by: { $0.key < $1.key }) {
      guard places.count >= fewest else { continue }
      let ends = places.compactMap { place in sends[place].end.map { (sends[place].key, $0) } }
      for (number, wasOpen) in try SendTable.settle(ends, of: day, on: connection).enumerated() where wasOpen {
        ended.insert(places[number])
        count(ends[number].1)
      }
    }
    guard !ended.isEmpty else { return sends }
    return sends.indices.compactMap { ended.contains($0) ? sends[$0].rest : sends[$0] }
  }

  // MARK: - Any send

  /// SQL condition: whether the statement settles an open send of one item.
  private static let ends = "excluded.settled_parts = 1 AND s.known_parts = 1 AND s.settled_parts = 0"
  private static let announces = "excluded.is_announced AND NOT s.is_announced"
  private static let endColumns = [
    "settled_parts", "state", "settled_at", "digest", "counts", "devices", "failures", "times",
  ]

  /// The column `change` is what the statement did to a row: 0 inserted, 1 announced, 2 settled, 3 both. Rows that it
  /// did not change are locked and not returned.
  private static let upserting = PreparedStatement(
    """
    INSERT INTO ledger_sends AS s
      (hub, id, day, accepted_at, is_announced, sender, audience, \(endColumns.joined(separator: ", ")),
      hub_key, sender_key, audience_key)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
    ON CONFLICT (hub, id, day) DO UPDATE SET
      change = CASE WHEN \(announces) THEN 1 ELSE 0 END + CASE WHEN \(ends) THEN 2 ELSE 0 END,
      is_announced = s.is_announced OR excluded.is_announced,
      \(endColumns.map { "\($0) = CASE WHEN \(ends) THEN excluded.\($0) ELSE s.\($0) END" }.joined(separator: ",\n  "))
    WHERE (\(announces)) OR (\(ends))
    RETURNING hub, id, day, change
    """)

  /// Inserts or updates sends. Returns those with records left.
  private mutating func upsert(_ sends: [BatchPlan.Send]) throws -> [BatchPlan.Send] {
    guard !sends.isEmpty else { return [] }
    let ends = sends.map(\.end)
    let times: [Int64?] = sends.map { $0.acceptedAt.milliseconds }
    let senders: [String?] = sends.map(\.storedSender)
    let audiences: [String?] = sends.map(\.storedAudience)
    let parts: [Int64?] = ends.map { $0 == nil ? 0 : 1 }
    let changed = try connection.query(
      Self.upserting,
      SendTable.parameters(sends.map(\.key)) + [
        .int8s(times), .bools(sends.map { $0.acceptance != nil }), .texts(senders), .texts(audiences), .int8s(parts),
      ] + SendTable.parameters(ends: ends) + [
        .int8s(sends.map { $0.hubKey }), .int8s(sends.map { $0.senderKey }), .int8s(sends.map { $0.audienceKey }),
      ])
    var hasEnded = Array(repeating: false, count: sends.count)
    let index = Dictionary(zip(sends.lazy.map(\.key), sends.indices)) { first, _ in first }
    for row in 0..<changed.count {
      let (high, low) = try changed.uuid(row, 1)
      guard let hub = HubName(try changed.text(row, 0)),
        let position = index[.init(hub: hub, id: SendID(high: high, low: low), day: Int32(try changed.integer(row, 2)))]
      else { throw SendRow.damaged }
      let change = try changed.integer(row, 3)
      if change == 0 {
        deltas[hub, default: HubDelta()].accepted += 1
        if sends[position].acceptance == nil { deltas[hub, default: HubDelta()].unannounced += 1 }
      }
      if change & 1 != 0 { deltas[hub, default: HubDelta()].unannounced -= 1 }
      if change == 0 || change & 2 != 0, let end = ends[position] {
        hasEnded[position] = true
        count(end)
      }
    }
    return zip(sends, hasEnded).compactMap { send, hasEnded in
      hasEnded ? send.rest : send.settlements.isEmpty ? nil : send
    }
  }

  // MARK: - Everything else

  /// Writes records of sends that have several items or have already settled.
  private mutating func writeOutOfOrder(_ sends: [BatchPlan.Send]) throws {
    let rows = try SendTable.rows(of: sends.map(\.key), on: connection)
    var changed: [(key: BatchPlan.Key, row: SendRow)] = []
    for (send, row) in zip(sends, rows) {
      var (row, isChanged) = (row, false)
      let items = AttemptTable(Session(.postgreSQL(connection)), send.key)
      for settlement in send.settlements {
        let hasChanged = try row.add(
          settlement, items: items, maximumDevices: maximumDevices, delta: &deltas[send.key.hub, default: HubDelta()])
        isChanged = isChanged || hasChanged
      }
      if isChanged { changed.append((send.key, row)) }
    }
    if !changed.isEmpty { try SendTable.update(changed, on: connection) }
  }

  // MARK: - Sums

  private static let updatingTotals = PreparedStatement(
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
    )
    INSERT INTO ledger_device_totals AS t (hub, platform, outcome, slot, devices)
    SELECT hub, platform, outcome, $1, devices FROM unnest($11, $12, $13, $14) AS u (hub, platform, outcome, devices)
    ON CONFLICT (hub, platform, outcome, slot) DO UPDATE SET devices = t.devices + excluded.devices
    """)

  private func updateTotals() throws {
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
        devices.platforms.append(Int16(kind.platform.code))
        devices.outcomes.append(Int16(StoredCode.code(kind.outcome)))
        devices.counts.append(Int64(count))
      }
    }
    try connection.query(
      Self.updatingTotals,
      [
        .int2(slot), .texts(hubs), column(\.accepted), column(\.settled), column(\.noTarget), column(\.expired),
        column(\.deadLettered), column(\.cancelled), column(\.unannounced), column(\.duplicates), .texts(devices.hubs),
        .int2s(devices.platforms), .int2s(devices.outcomes), .int8s(devices.counts),
      ])
  }
}
