import DequeModule
import FanfareCore

/// Recent sends: detects a send that its producer, or a redelivery, has put on the topic twice.
///
/// Exact for sends in work; of the settled ones it remembers the last `capacity`. All records of a send share a key and
/// so a partition and a worker, except across a rebalance, where the ledger of the status topic removes duplicates.
struct RecentSends: Sendable {
  /// A send's id within its hub, so that no hub can make another hub's send look like a duplicate.
  struct Key: Hashable, Sendable {
    let id: SendID
    let hub: Int32

    func hash(into hasher: inout Hasher) {
      // Ids of different hubs hardly ever collide.
      hasher.combine(id)
    }
  }

  private let capacity: Int
  /// The ticket of the item that works, or worked, on each send.
  /// A ticket that is not current means that the send has settled, so settling needs no search here.
  private var known: [Key: Ticket] = [:]
  private var settled: Deque<Key> = []

  init(capacity: Int) {
    self.capacity = capacity
    // The table will be full. Growing it step by step would copy it at each doubling.
    known.reserveCapacity(capacity)
  }

  /// Remembers the item that works on a send.
  /// Returns the ticket of the item that is, or was, already on it.
  mutating func open(_ key: Key, as ticket: Ticket) -> Ticket? {
    // One search for a new send, as nearly all are; a known one costs a second.
    guard let former = known.updateValue(ticket, forKey: key) else { return nil }
    known[key] = former
    return former
  }

  /// Notes that an open send's status record is acknowledged and its item ends.
  mutating func settle(_ key: Key) {
    settled.append(key)
    if settled.count > capacity { known.removeValue(forKey: settled.removeFirst()) }
  }

  /// Forgets an open send that was given up unsettled: when it returns, it is new.
  mutating func forget(_ key: Key) { known.removeValue(forKey: key) }
}
