public import DequeModule

/// How often the bulk lane has its turn.
@usableFromInline package enum BulkLane {
  /// While both lanes wait, one of this many elements taken is bulk.
  @inlinable package static var period: Int { 8 }
}

/// A queue with one lane for single sends and one for bulk, so that no single send waits behind a broadcast.
///
/// Each lane is first in, first out. While both wait, every eighth element taken is bulk (`BulkLane.period`), so that
/// neither lane starves.
///
/// Type and members are `@usableFromInline` and `@inlinable`, so that each module specialises them for its own element;
/// the compiler ignores `@inlinable` members of a type that is only `package` (Swift 6.3).
@usableFromInline package struct TwoLaneQueue<Element> {
  @usableFromInline package var single: Deque<Element> = []
  @usableFromInline package var bulk: Deque<Element> = []
  /// Elements of the single lane taken in a row while the bulk lane waited, at most `BulkLane.period - 1`.
  @usableFromInline package var run = 0

  @inlinable package init() {}

  @inlinable package var count: Int { single.count + bulk.count }
  @inlinable package var isEmpty: Bool { single.isEmpty && bulk.isEmpty }
  @inlinable package var singleCount: Int { single.count }
  @inlinable package var hasBulk: Bool { !bulk.isEmpty }
  @inlinable package var firstSingle: Element? { single.first }
  @inlinable package var firstBulk: Element? { bulk.first }

  /// The waiting elements: single first, then bulk, each lane in its order.
  @inlinable package var elements: [Element] { Array(single) + bulk }

  /// Adds an element at the end of its lane.
  @inlinable package mutating func append(_ element: Element, isBulk: Bool) {
    if isBulk { bulk.append(element) } else { single.append(element) }
  }

  /// Adds an element at the front of its lane.
  @inlinable package mutating func prepend(_ element: Element, isBulk: Bool) {
    if isBulk { bulk.prepend(element) } else { single.prepend(element) }
  }

  /// Removes and returns the next element; nil if none waits, or only bulk does while `mayTakeBulk` is false.
  @inlinable package mutating func popFirst(mayTakeBulk: Bool = true) -> Element? {
    guard let turn = turn(mayTakeBulk: mayTakeBulk) else { return nil }
    advance(turn, by: 1)
    return turn.isBulk ? bulk.popFirst() : single.popFirst()
  }

  /// Takes up to `limit` units off the next element; nil if none waits.
  ///
  /// For elements that count as several units. `split` receives the element and the most units that it may take now; it
  /// returns the part taken, its units, and whether the rest of the element, if any, stays at the front of its lane.
  @inlinable package mutating func takeFirst<Part>(
    _ limit: Int, split: (inout Element, Int) -> (part: Part, units: Int, isEmpty: Bool)
  ) -> Part? {
    guard let turn = turn(mayTakeBulk: true) else { return nil }
    let units = min(limit, turn.length)
    let taken = turn.isBulk ? Self.take(units, from: &bulk, split) : Self.take(units, from: &single, split)
    advance(turn, by: taken.units)
    return taken.part
  }

  /// Updates every element in place, and removes those for which `isKept` returns false.
  @inlinable package mutating func updateAll(_ isKept: (inout Element) -> Bool) {
    Self.update(&single, isKept)
    Self.update(&bulk, isKept)
  }

  /// Removes and returns all elements: single first, then bulk, each lane in its order.
  @inlinable package mutating func removeAll() -> [Element] {
    defer {
      single.removeAll(keepingCapacity: true)
      bulk.removeAll(keepingCapacity: true)
    }
    return elements
  }

  /// The lane whose turn it is, and how many units may be taken from it in a row; nil if nothing may be taken.
  @usableFromInline package typealias Turn = (isBulk: Bool, length: Int, countsRun: Bool)

  @inlinable package func turn(mayTakeBulk: Bool) -> Turn? {
    guard mayTakeBulk, !bulk.isEmpty else { return single.isEmpty ? nil : (false, .max, false) }
    guard !single.isEmpty else { return (true, .max, true) }
    return run < BulkLane.period - 1 ? (false, BulkLane.period - 1 - run, true) : (true, 1, true)
  }

  @inlinable package mutating func advance(_ turn: Turn, by units: Int) {
    if turn.isBulk { run = 0 } else if turn.countsRun { run += units }
  }

  @inlinable static func take<Part>(
    _ limit: Int, from lane: inout Deque<Element>,
    _ split: (inout Element, Int) -> (part: Part, units: Int, isEmpty: Bool)
  ) -> (part: Part, units: Int) {
    let taken = split(&lane[0], limit)
    if taken.isEmpty { lane.removeFirst() }
    return (taken.part, taken.units)
  }

  @inlinable static func update(_ lane: inout Deque<Element>, _ isKept: (inout Element) -> Bool) {
    var kept = 0
    for index in lane.indices where isKept(&lane[index]) {
      if kept != index { lane.swapAt(kept, index) }
      kept += 1
    }
    lane.removeSubrange(kept...)
  }
}

extension TwoLaneQueue: Sendable where Element: Sendable {}
