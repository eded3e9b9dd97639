import DequeModule
import FanfareCore

/// The sends this worker has lately met: recognises one that its producer, or a redelivery, has put on the topic twice.
///
/// Exact for what is being worked on; of what has settled, the last `capacity` are remembered. A send with one key
/// always lies in one partition and so meets the same worker, except across a rebalance, where the ledger of the status
/// topic is the judge. A pure value.
struct RecentSends: Sendable {
  /// A send's id within its hub: nothing one hub does may make another's send look like a duplicate.
  struct Key: Hashable, Sendable {
    let id: SendID
    let hub: Int32

    func hash(into hasher: inout Hasher) {
      // Ids alone tell sends apart all but always.
      hasher.combine(id)
    }
  }

  private let capacity: Int
  /// The ticket of the item that a send is worked on as, or was: one that is not current any more says that the send
  /// has settled. So nothing is looked for when it does.
  private var known: [Key: Ticket] = [:]
  private var settled: Deque<Key> = []

  /// Remembers at most so many settled sends.
  init(capacity: Int) {
    self.capacity = capacity
    // It is going to be full, and growing on the way would copy what is remembered once for each doubling.
    known.reserveCapacity(capacity)
  }

  /// Takes note that the send is worked on as that item, unless it is known already: then gives the item that it is, or
  /// was, worked on as.
  mutating func open(_ key: Key, as ticket: Ticket) -> Ticket? {
    // One search for a new send, which nearly every send is; a known one pays for a second.
    guard let former = known.updateValue(ticket, forKey: key) else { return nil }
    known[key] = former
    return former
  }

  /// The status record of an open send is acknowledged, and its item ends.
  mutating func settle(_ key: Key) {
    settled.append(key)
    if settled.count > capacity { known.removeValue(forKey: settled.removeFirst()) }
  }

  /// An open send was given up unsettled: when it comes again it is new.
  mutating func forget(_ key: Key) { known.removeValue(forKey: key) }
}
