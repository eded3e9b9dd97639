import DequeModule

/// Pushes that wait for room at one sender. Two lanes, so that nobody's single send waits behind a broadcast to
/// millions: of `share` pushes that are taken while both lanes wait, one is a broadcast's. A pure value.
struct PushQueue: Sendable {
  /// Of so many pushes that are taken while both lanes wait, one is a broadcast's.
  static let share = 8

  private var single: Deque<Ticket> = []
  private var bulk: Deque<Ticket> = []
  /// How many of the single lane were taken in a row while the other waited.
  private var run = 0

  var count: Int { single.count + bulk.count }
  var isEmpty: Bool { single.isEmpty && bulk.isEmpty }
  /// How many of them are not of broadcasts.
  var singles: Int { single.count }
  /// Whether pushes of broadcasts wait.
  var hasBulk: Bool { !bulk.isEmpty }

  /// Those that wait, each lane in its order.
  var tickets: [Ticket] { Array(single) + bulk }

  mutating func append(_ ticket: Ticket) {
    if ticket.isBulk { bulk.append(ticket) } else { single.append(ticket) }
  }

  mutating func prepend(_ ticket: Ticket) {
    if ticket.isBulk { bulk.prepend(ticket) } else { single.prepend(ticket) }
  }

  /// Takes out the next; nil when none waits, or only broadcasts do and `mayTakeBulk` says that they have all the room
  /// they may have.
  mutating func popFirst(mayTakeBulk: Bool) -> Ticket? {
    guard mayTakeBulk, let first = bulk.first else { return single.popFirst() }
    guard !single.isEmpty, run < Self.share - 1 else {
      run = 0
      bulk.removeFirst()
      return first
    }
    run += 1
    return single.removeFirst()
  }

  /// Takes out all, each lane in its order.
  mutating func removeAll() -> [Ticket] {
    defer {
      single.removeAll(keepingCapacity: true)
      bulk.removeAll(keepingCapacity: true)
    }
    return tickets
  }
}
