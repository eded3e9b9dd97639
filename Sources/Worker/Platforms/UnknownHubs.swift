import FanfareCore
import RDKafka

/// Records of hubs that are not in the `SenderTable`, until the registry says whether it has devices of them.
///
/// Each belongs to an item that is being resolved, so that it counts against the limits. *Waiting* → *asked* → begun or
/// dead-lettered. At most one question is open.
struct UnknownHubs: Sendable {
  struct Held: Sendable {
    let record: ConsumedRecord
    let hub: HubName
    let ticket: Ticket
  }

  /// In the order of arrival.
  private var held: [Held] = []
  /// How many of them arrived before the open question; nil: none is open.
  private var asked: Int?

  mutating func hold(_ record: ConsumedRecord, of hub: HubName, _ ticket: Ticket) {
    var record = record
    // Not slices of the whole batch: the registry may be away for long.
    record.key = record.key.map { Array($0)[...] }
    record.value = Array(record.value)[...]
    held.append(Held(record: record, hub: hub, ticket: ticket))
  }

  /// Begins a question if one is needed and none is open. Returns whether it did.
  mutating func ask() -> Bool {
    guard asked == nil, !held.isEmpty else { return false }
    asked = held.count
    return true
  }

  /// Ends the question. Takes out the records about which it was asked, and later ones of known hubs, which must not be
  /// overtaken.
  mutating func take(knowing hubs: Set<HubName>) -> [Held] {
    let asked = asked ?? 0
    let later = held[asked...].filter { !hubs.contains($0.hub) }
    let taken = held[..<asked] + held[asked...].filter { hubs.contains($0.hub) }
    (held, self.asked) = (Array(later), nil)
    return Array(taken)
  }

  /// Forgets the records whose items were given up.
  mutating func forgetGivenUp(items: ItemTable) {
    guard !held.isEmpty else { return }
    if let asked { self.asked = held[..<asked].count { items.isCurrent($0.ticket) } }
    held.removeAll { !items.isCurrent($0.ticket) }
  }

  func checkInvariants(items: ItemTable) -> [String] {
    var violations: [String] = []
    for record in held where !items.isResolving(record.ticket) {
      violations.append("slot \(record.ticket.slot) holds no record of the unknown hub \(record.hub)")
    }
    if asked ?? 0 > held.count { violations.append("asked about \(asked ?? 0) of \(held.count) records") }
    return violations
  }
}
