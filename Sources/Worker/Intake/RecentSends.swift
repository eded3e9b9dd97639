import DequeModule
import FanfareCore

/// The sends this worker has lately met: recognises one that its producer, or a redelivery, has put on the topic twice.
///
/// Exact for what is being worked on; of what has settled, the last `capacity` are remembered. A send with one key always lies in one partition
/// and so meets the same worker, except across a rebalance, where the ledger of the status topic is the judge. A pure value.
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

  /// What is known of a send.
  enum Knowledge: Equatable, Sendable {
    /// It was never met, or forgotten.
    case unknown
    /// It is being worked on, as the item in that slot.
    case open(slot: Int)
    /// Its status record is acknowledged.
    case settled
  }

  private static let settledMark: Int32 = -1
  private let capacity: Int
  /// The item's slot, or the mark that it has settled.
  private var known: [Key: Int32] = [:]
  private var settled: Deque<Key> = []

  /// Remembers at most so many settled sends.
  init(capacity: Int) {
    self.capacity = capacity
    // It is going to be full, and growing on the way would copy what is remembered once for each doubling.
    known.reserveCapacity(capacity)
  }

  /// Takes note that the send is worked on as the item in that slot, unless it is known already; returns what was known of it.
  mutating func open(_ key: Key, slot: Int) -> Knowledge {
    // One search for a new send, which nearly every send is; a known one pays for a second.
    guard let former = known.updateValue(Int32(slot), forKey: key) else { return .unknown }
    known[key] = former
    return former == Self.settledMark ? .settled : .open(slot: Int(former))
  }

  /// The send's status record is acknowledged.
  mutating func settle(_ key: Key) {
    guard known.updateValue(Self.settledMark, forKey: key) != Self.settledMark else { return }
    settled.append(key)
    if settled.count > capacity { known.removeValue(forKey: settled.removeFirst()) }
  }

  /// The send was given up unsettled: when it comes again it is new.
  mutating func forget(_ key: Key) {
    if let slot = known[key], slot != Self.settledMark { known.removeValue(forKey: key) }
  }
}
