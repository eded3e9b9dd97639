import DequeModule
import FanfareCore

/// A readmission slot: one record's share of the room for pages' deferred records.
struct ReadmissionSlot: Sendable {
  /// The number of devices it pushes to now; with a rate, at most a second's.
  let weight: Int
  /// The platforms of those devices. It occupies its weight on each until the whole record is done.
  let platforms: PlatformSet
  /// Its broadcast, if that has a rate: only one record of such a broadcast has a slot at a time.
  let rated: BroadcastID?
}

/// Deferred records that have come back, decoded once, and the decision when each may continue.
///
/// A record is *arriving* (the worker asks for the broadcast's control state, or for permits) → *awaiting devices*
/// (there is no room for its devices) or, if a page deferred it, *awaiting a slot* → *readmitted*: its devices are
/// pushed to, and it holds its slot until the item is vacated. A record may be deferred again at any stage but the
/// last. The records readmitted for one platform never exceed a page, because a crash repeats them.
///
/// Invariants: each kept record belongs to one item that is being resolved; the number and bytes of awaiting records
/// are correct; a platform's weight is the sum of its slots' weights.
struct Readmissions: Sendable {
  struct Record: Sendable {
    fileprivate(set) var retry: RetryRecord
    /// The size of the record as it was consumed.
    let bytes: Int
  }

  /// A page's deferred record that waits for a slot.
  struct Awaiting: Sendable {
    let ticket: Ticket
    let slot: ReadmissionSlot
    let bytes: Int
    /// Uptime at which the wait began.
    let since: Int64
    let expiresAt: UnixTime
  }

  /// By the slot of the item.
  private var records: [Int: Record] = [:]
  private var awaitingDevices: Deque<Ticket> = []
  private(set) var awaitingSlot: Deque<Awaiting> = []
  private(set) var awaitingBytes = 0
  /// Whether a slot may be free: a record has come or gone since the last vain search.
  private(set) var mayAdmit = false
  /// The slots taken, by the slot of the item.
  private var taken: [Int: ReadmissionSlot] = [:]
  /// Broadcasts with a rate that have a record with a slot.
  private(set) var rated: Set<BroadcastID> = []
  /// The weight of the slots taken, by sender's number.
  private(set) var weights: [Int]

  init(senders: Int) {
    weights = Array(repeating: 0, count: senders)
  }

  /// Makes room for the places of the hubs that were appended to the `SenderTable`.
  mutating func extend(senders: Int) {
    weights += Array(repeating: 0, count: senders - weights.count)
  }

  var hasAwaitingDevices: Bool { !awaitingDevices.isEmpty }

  /// Keeps a record that has come back, for its item.
  mutating func keep(_ retry: RetryRecord, bytes: Int, for slot: Int) {
    records[slot] = Record(retry: retry, bytes: bytes)
  }

  /// Takes over the rate of a record's broadcast; nil: the send's own.
  mutating func follow(_ rate: BroadcastRate?, _ slot: Int) {
    if let rate { records[slot]?.retry.follow(rate) }
  }

  /// The record of an item; nil for items without one.
  func record(of slot: Int) -> Record? { records[slot] }

  /// Takes out the record when its devices continue or it is written again.
  mutating func take(_ slot: Int) -> RetryRecord? { records.removeValue(forKey: slot)?.retry }

  // Awaiting devices.

  mutating func awaitDevices(_ ticket: Ticket) { awaitingDevices.append(ticket) }
  mutating func popAwaitingDevices() -> Ticket? { awaitingDevices.popFirst() }

  // Awaiting a slot.

  /// Whether that many further bytes would take the room of everything else.
  func isCrowded(by bytes: Int, limits: WorkerConfiguration.Limits) -> Bool {
    !awaitingSlot.isEmpty && awaitingBytes + bytes > limits.maximumBytes / 4
  }

  mutating func awaitSlot(_ awaiting: Awaiting) {
    awaitingBytes += awaiting.bytes
    awaitingSlot.append(awaiting)
    mayAdmit = true
  }

  /// Takes out the records to be deferred again: those waiting since before `oldest`, or all of
  /// them. Records that would expire before they are `back` stay.
  mutating func takeOverdue(items: ItemTable, since oldest: Int64, all: Bool, back: UnixTime) -> [Awaiting] {
    // Records of items given up meanwhile must go too, with the next look.
    mayAdmit = true
    func isOverdue(_ next: Awaiting) -> Bool {
      (all || next.since < oldest) && back < next.expiresAt && items.isResolving(next.ticket)
    }
    let leaving = awaitingSlot.filter(isOverdue)
    guard !leaving.isEmpty else { return [] }
    awaitingSlot.removeAll(where: isOverdue)
    awaitingBytes -= leaving.reduce(0) { $0 + $1.bytes }
    return Array(leaving)
  }

  /// Takes out the next record that can have a slot, or whose item was given up.
  /// For each platform the record that has waited longest goes first, except while another record of the same rated
  /// broadcast has a slot.
  mutating func nextAdmission(items: ItemTable, hubs: Int, most: Int) -> Awaiting? {
    guard mayAdmit else { return nil }
    var full = [PlatformSet](repeating: [], count: hubs)
    for (index, next) in awaitingSlot.enumerated() {
      if items.isResolving(next.ticket) {
        if let broadcast = next.slot.rated, rated.contains(broadcast) { continue }
        let hub = items[next.ticket.slot].hub
        guard full[hub].isDisjoint(with: next.slot.platforms), hasRoom(for: next.slot, of: hub, most: most) else {
          full[hub].formUnion(next.slot.platforms)
          continue
        }
      }
      awaitingBytes -= next.bytes
      return awaitingSlot.remove(at: index)
    }
    mayAdmit = false
    return nil
  }

  private func hasRoom(for slot: ReadmissionSlot, of hub: Int, most: Int) -> Bool {
    slot.platforms.platforms.allSatisfy { platform in
      let weight = weights[SenderTable.place(hub: hub, platform: platform)]
      return weight == 0 || weight + slot.weight <= most
    }
  }

  // Slots.

  /// Gives the item a slot until it is vacated.
  mutating func occupy(_ slot: ReadmissionSlot, for item: Int, of hub: Int) {
    taken[item] = slot
    if let broadcast = slot.rated { rated.insert(broadcast) }
    for platform in slot.platforms.platforms {
      weights[SenderTable.place(hub: hub, platform: platform)] += slot.weight
    }
  }

  /// Frees the slot of a vacated item and forgets its record.
  mutating func release(_ item: Int, of hub: Int) {
    if !records.isEmpty { records[item] = nil }
    guard !taken.isEmpty, let slot = taken.removeValue(forKey: item) else { return }
    mayAdmit = true
    if let broadcast = slot.rated { rated.remove(broadcast) }
    for platform in slot.platforms.platforms {
      weights[SenderTable.place(hub: hub, platform: platform)] -= slot.weight
    }
  }

  func checkInvariants(items: ItemTable) -> [String] {
    var violations: [String] = []
    for slot in records.keys where items[slot].phase != .resolving {
      violations.append("slot \(slot) keeps a deferred record while \(items[slot].phase)")
    }
    if awaitingSlot.reduce(0, { $0 + $1.bytes }) != awaitingBytes {
      violations.append("\(awaitingBytes) bytes counted that await a slot")
    }
    var found = Array(repeating: 0, count: weights.count)
    for (item, slot) in taken {
      if items[item].kind != .readmitted { violations.append("slot \(item) was never readmitted") }
      for platform in slot.platforms.platforms {
        found[SenderTable.place(hub: items[item].hub, platform: platform)] += slot.weight
      }
    }
    if found != weights { violations.append("readmitted weights \(weights) counted, \(found) found") }
    if Set(taken.values.compactMap(\.rated)) != rated { violations.append("rated broadcasts \(rated) counted") }
    return violations
  }
}
