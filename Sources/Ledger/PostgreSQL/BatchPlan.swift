import FanfareCore
import RDKafka

/// A batch by sends: what it says of each, in an order that is the same for every ledger.
struct BatchPlan: Sendable {
  /// Which row a send is.
  struct Key: Hashable, Sendable {
    let hub: HubName
    let id: SendID
    /// The day of its acceptance, counted from 1970: all its records say the same.
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
  }

  /// The batch's sends, in the order in which their rows are locked.
  private(set) var sends: [Send] = []
  /// Where each is among them.
  let index: [Key: Int]
  /// How far the log has been read.
  let positions: [(key: TopicPartition, value: Int64)]
  /// The latest time that a record speaks of; nil for an empty batch.
  let newest: UnixTime?

  init(_ batch: LedgerBatch) {
    var index: [Key: Int] = [:]
    index.reserveCapacity(batch.entries.count)
    var sends: [Send] = []
    sends.reserveCapacity(batch.entries.count)
    func place(_ hub: HubName, _ id: SendID, _ acceptedAt: UnixTime) -> Int {
      let key = Key(hub: hub, id: id, day: Self.day(of: acceptedAt))
      if let position = index[key] { return position }
      index[key] = sends.count
      sends.append(Send(key: key))
      return sends.count - 1
    }
    for entry in batch.entries {
      switch entry {
      case .accepted(let acceptance):
        let position = place(acceptance.hub, acceptance.send, acceptance.acceptedAt)
        if sends[position].acceptance == nil { sends[position].acceptance = acceptance }
      case .settled(let settlement):
        let position = place(settlement.hub, settlement.send, settlement.acceptedAt)
        sends[position].settlements.append(settlement)
      }
    }
    sends.sort { one, other in
      if one.key.id != other.key.id { return one.key.id < other.key.id }
      if one.key.hub != other.key.hub { return one.key.hub.rawValue < other.key.hub.rawValue }
      return one.key.day < other.key.day
    }
    for (position, send) in sends.enumerated() { index[send.key] = position }
    self.sends = sends
    self.index = index
    positions = batch.positions.sorted { ($0.key.topic, $0.key.partition) < ($1.key.topic, $1.key.partition) }
    newest = batch.entries.map(\.time).max()
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
