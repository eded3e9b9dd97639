package import FanfareCore
package import RDKafka

/// A ledger's accounting without a database: for the simulation, which checks the counts at every record. Nothing in it
/// expires.
package struct MemoryLedger {
  private struct Key: Hashable {
    let hub: HubName
    let send: SendID
  }

  private let topics: Topics
  private let maximumDevices: Int
  private var rows: [Key: SendRow] = [:]
  private var items: [Key: MemoryItems] = [:]
  private var sums: [HubName: HubDelta] = [:]

  package init(topics: Topics, maximumDevices: Int = 100) {
    (self.topics, self.maximumDevices) = (topics, maximumDevices)
  }

  /// Counts records of the sends and status topics. Throws `LedgerError`.
  package mutating func write(_ records: [ConsumedRecord]) throws {
    for entry in LedgerBatch(records, topics: topics, maximumDevices: maximumDevices).entries {
      let key = Key(hub: entry.hub, send: entry.send)
      switch entry {
      case .accepted(let acceptance): accept(acceptance, key)
      case .settled(let settlement): try settle(settlement, key)
      }
    }
  }

  private mutating func accept(_ acceptance: LedgerEntry.Acceptance, _ key: Key) {
    guard var row = rows[key] else {
      rows[key] = SendRow(
        isAnnounced: true, knownParts: 1, sum: ItemSum(), acceptedAt: acceptance.acceptedAt, sender: acceptance.sender,
        audience: acceptance.audience)
      sums[key.hub, default: HubDelta()].accepted += 1
      return
    }
    guard row.announce() else { return }
    rows[key] = row
    sums[key.hub, default: HubDelta()].unannounced -= 1
  }

  private mutating func settle(_ settlement: LedgerEntry.Settlement, _ key: Key) throws {
    var row = rows[key] ?? SendRow(settlement)
    var sum = sums[key.hub, default: HubDelta()]
    let items = items[key] ?? MemoryItems()
    self.items[key] = items
    if try row.add(settlement, items: items, maximumDevices: maximumDevices, delta: &sum) {
      if rows[key] == nil {
        sum.accepted += 1
        sum.unannounced += 1
      }
      rows[key] = row
    }
    sums[key.hub] = sum
  }

  /// The totals of a hub.
  package func totals(hub: HubName) -> LedgerTotals {
    let sum = sums[hub] ?? HubDelta()
    var totals = LedgerTotals()
    (totals.accepted, totals.settled, totals.noTarget) = (sum.accepted, sum.settled, sum.noTarget)
    (totals.expired, totals.deadLettered, totals.cancelled) = (sum.expired, sum.deadLettered, sum.cancelled)
    (totals.unannounced, totals.duplicates) = (sum.unannounced, sum.duplicates)
    totals.devices = sum.devices.byPlatform
    return totals
  }
}

/// The work items of one send, in memory. A reference: the rules change it through a value.
private final class MemoryItems: SendItems {
  private struct Note: Hashable {
    let part: Int
    let digest: Int64
  }

  private var ranges: [[UInt8]: [StoredRange]] = [:]
  private var sums: [[UInt8]: ItemSum] = [:]
  private var duplicates: Set<Note> = []

  func stored(_ item: LedgerEntry.Settlement) -> [StoredRange] {
    (ranges[item.attemptKey] ?? []).filter { $0.items.overlaps(item.range) }
  }

  func add(_ item: LedgerEntry.Settlement, _ added: [Range<Int>], maximumDevices: Int) -> ItemSum {
    let all = (ranges[item.attemptKey] ?? []) + added.map { StoredRange(items: $0, digest: item.digest) }
    ranges[item.attemptKey] = all.sorted { $0.items.lowerBound < $1.items.lowerBound }
    sums[item.attemptKey, default: ItemSum()]
      .add(item, items: added.reduce(0) { $0 + $1.count }, maximumDevices: maximumDevices)
    return sums[item.attemptKey] ?? ItemSum()
  }

  func noteOthers(than item: LedgerEntry.Settlement) -> Int {
    ranges.filter { $0.key != item.attemptKey }.values.joined()
      .reduce(0) { $0 + noteDuplicate($1.digest, part: $1.items.lowerBound) }
  }

  func close(with item: LedgerEntry.Settlement) {
    ranges = ranges.filter { $0.key == item.attemptKey }
    sums = [:]
  }

  func redeem(_ item: LedgerEntry.Settlement) -> Int {
    let digests = Set((ranges[item.attemptKey] ?? []).map(\.digest))
    let redeemed = duplicates.filter { digests.contains($0.digest) }
    duplicates.subtract(redeemed)
    return redeemed.count
  }

  func isDuplicate(_ item: LedgerEntry.Settlement) -> Bool {
    duplicates.contains(Note(part: item.part, digest: item.digest))
  }

  func noteDuplicate(_ digest: Int64, part: Int) -> Int {
    duplicates.insert(Note(part: part, digest: digest)).inserted ? 1 : 0
  }
}
