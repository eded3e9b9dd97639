import FanfareCore

/// A batch by sends: what it says of each, in an order that is the same for every ledger.
struct BatchPlan: Sendable {
  /// Which row a send is.
  struct Key: Hashable, Sendable {
    let hub: HubName
    let id: SendID
    /// The day of its acceptance, counted from 1970: the partition, without which a row cannot be unique. All records
    /// of a send say the same, as far as it is a program of ours that wrote them: where another backend posts an id
    /// again with the time of another day, or none, those are two sends, and one without a time that is put back from
    /// the dead letters on another day is, too.
    let day: Int32
  }

  /// What the batch says of one send.
  struct Send: Sendable {
    let key: Key
    /// From the sends topic; nil where the batch has only its end.
    var acceptance: LedgerEntry.Acceptance?
    /// Its work items' records in the order in which they came, each once.
    var settlements: [LedgerEntry.Settlement] = []

    /// The record that is its end if it is one item and open.
    var end: LedgerEntry.Settlement? { settlements.allSatisfy { $0.parts == 1 } ? settlements.first : nil }

    /// When it was accepted.
    var acceptedAt: UnixTime {
      acceptance?.acceptedAt ?? settlements.first?.acceptedAt ?? UnixTime(milliseconds: 0)
    }

    /// The column `sender`.
    var storedSender: String? { (acceptance == nil ? settlements.first?.sender : acceptance?.sender).map(Self.text) }

    /// The column `audience`.
    var storedAudience: String { Self.text(acceptance?.audience ?? settlements.first?.audience ?? "") }

    /// The columns of the same names.
    var hubKey: Int64 { ListKey.hub(key.hub) }
    var senderKey: Int64? { storedSender.map { ListKey.sender($0, hub: key.hub) } }
    var audienceKey: Int64 { ListKey.audience(storedAudience, hub: key.hub) }

    /// PostgreSQL stores every character but one.
    private static func text(_ text: String) -> String {
      text.utf8.contains(0) ? text.replacing("\0", with: "\u{FFFD}") : text
    }

    /// What is left to be said of it when its row has its acceptance and its end; nil when that is all.
    var rest: Send? {
      let others = settlements.dropFirst(end == nil ? 0 : 1)
      guard !others.isEmpty else { return nil }
      var rest = self
      rest.settlements = Array(others)
      return rest
    }
  }

  /// The batch's sends, in the order in which their rows are locked.
  private(set) var sends: [Send] = []
  /// The latest time that a record speaks of; nil for an empty batch.
  let newest: UnixTime?

  init(_ batch: LedgerBatch) {
    newest = batch.entries.lazy.map(\.time).max()
    var order = batch.entries.enumerated().map { place, entry in (id: entry.send, place: place) }
    order.sort { $0.id == $1.id ? $0.place < $1.place : $0.id < $1.id }
    sends.reserveCapacity(order.count)
    // Where the sends of the present id begin: more than one only where an id is that of several hubs' or days' sends.
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

  /// The days of the batch's sends.
  var days: Set<Int32> {
    var days: Set<Int32> = []
    var last: Int32?
    for send in sends where send.key.day != last {
      last = send.key.day
      days.insert(send.key.day)
    }
    return days
  }

  /// The day of a moment, counted from 1970.
  static func day(of time: UnixTime) -> Int32 {
    let (quotient, remainder) = time.milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    return Int32(clamping: remainder < 0 ? quotient - 1 : quotient)
  }
}
