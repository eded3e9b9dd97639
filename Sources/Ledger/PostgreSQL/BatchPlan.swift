import FanfareCore

/// A batch grouped by send, in an order that is the same for every ledger.
struct BatchPlan: Sendable {
  /// The primary key of a send's row.
  struct Key: Hashable, Sendable {
    let hub: HubName
    let id: SendID
    /// The day of acceptance, in days since 1970. A partitioned table's unique key has to include it. All records of a
    /// send that Fanfare wrote have the same day. An id that another backend posts again with another day's time, or
    /// without a time, is a second send; so is a send without a time that is redriven on another day.
    let day: Int32
  }

  /// The records of one send in the batch.
  struct Send: Sendable {
    let key: Key
    /// From the sends topic; nil when the batch has only status records.
    var acceptance: LedgerEntry.Acceptance?
    /// The status records in their order.
    var settlements: [LedgerEntry.Settlement] = []

    /// The record that settles the send, provided that it has one item and is open.
    var end: LedgerEntry.Settlement? { settlements.allSatisfy { $0.parts == 1 } ? settlements.first : nil }

    var acceptedAt: UnixTime {
      acceptance?.acceptedAt ?? settlements.first?.acceptedAt ?? UnixTime(milliseconds: 0)
    }

    var storedSender: String? { (acceptance == nil ? settlements.first?.sender : acceptance?.sender).map(Self.text) }

    var storedAudience: String { Self.text(acceptance?.audience ?? settlements.first?.audience ?? "") }

    var hubKey: Int64 { ListKey.hub(key.hub) }
    var senderKey: Int64? { storedSender.map { ListKey.sender($0, hub: key.hub) } }
    var audienceKey: Int64 { ListKey.audience(storedAudience, hub: key.hub) }

    /// Replaces U+0000, the only character that PostgreSQL cannot store.
    private static func text(_ text: String) -> String {
      text.utf8.contains(0) ? text.replacing("\0", with: "\u{FFFD}") : text
    }

    /// The records left once the acceptance and `end` are written; nil when there are none.
    var rest: Send? {
      let others = settlements.dropFirst(end == nil ? 0 : 1)
      guard !others.isEmpty else { return nil }
      var rest = self
      rest.settlements = Array(others)
      return rest
    }
  }

  /// The sends in the order in which their rows are locked.
  private(set) var sends: [Send] = []
  /// The latest time in the batch's records; nil for an empty batch.
  let newest: UnixTime?

  init(_ batch: LedgerBatch) {
    newest = batch.entries.lazy.map(\.time).max()
    var order = batch.entries.enumerated().map { place, entry in (id: entry.send, place: place) }
    order.sort { $0.id == $1.id ? $0.place < $1.place : $0.id < $1.id }
    sends.reserveCapacity(order.count)
    // The first send of the current id: several hubs or days may have sends of the same id.
    var first = 0
    for (id, place) in order {
      if first < sends.count, sends[first].key.id != id { first = sends.count }
      add(batch.entries[place], from: first)
    }
  }

  private mutating func add(_ entry: LedgerEntry, from first: Int) {
    let key = Key(hub: entry.hub, id: entry.send, day: Self.day(of: entry.acceptedAt))
    var position = first
    while position < sends.count, sends[position].key != key { position += 1 }
    let isNew = position == sends.count
    if isNew { sends.append(Send(key: key)) }
    switch entry {
    case .accepted(let acceptance): if sends[position].acceptance == nil { sends[position].acceptance = acceptance }
    case .settled(let settlement): sends[position].settlements.append(settlement)
    }
    if isNew, position > first {
      sends[first...].sort { ($0.key.hub.rawValue, $0.key.day) < ($1.key.hub.rawValue, $1.key.day) }
    }
  }

  var days: Set<Int32> {
    var days: Set<Int32> = []
    var last: Int32?
    for send in sends where send.key.day != last {
      last = send.key.day
      days.insert(send.key.day)
    }
    return days
  }

  /// The day of a time, in days since 1970.
  static func day(of time: UnixTime) -> Int32 {
    let (quotient, remainder) = time.milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    return Int32(clamping: remainder < 0 ? quotient - 1 : quotient)
  }
}
