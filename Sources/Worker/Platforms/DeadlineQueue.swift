/// Elements with deadlines, earliest first: a binary heap, so that one coarse timer serves all
/// waits.
///
/// Elements stay when their wait ends early: the user checks whether a wake-up is still relevant.
struct DeadlineQueue<Element: Sendable>: Sendable {
  private struct Entry: Sendable {
    let due: Int64
    /// Keeps equal deadlines in the order of their arrival.
    let number: UInt64
    let element: Element

    func precedes(_ other: Entry) -> Bool { due == other.due ? number < other.number : due < other.due }
  }

  private var heap: [Entry] = []
  private var number: UInt64 = 0

  var count: Int { heap.count }
  /// The earliest deadline, in milliseconds of uptime.
  var next: Int64? { heap.first?.due }

  /// Adds an element that is due at that uptime in milliseconds.
  mutating func insert(_ element: Element, due: Int64) {
    number += 1
    heap.append(Entry(due: due, number: number, element: element))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].precedes(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes out every element that satisfies the condition.
  mutating func remove(where condition: (Element) -> Bool) -> [Element] {
    let removed = heap.filter { condition($0.element) }
    guard !removed.isEmpty else { return [] }
    // A sorted array is a heap.
    heap = heap.filter { !condition($0.element) }.sorted { $0.precedes($1) }
    return removed.map(\.element)
  }

  /// Takes out the earliest element if it is due.
  mutating func popDue(at uptime: Int64) -> Element? {
    guard let first = heap.first, first.due <= uptime else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first.element }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].precedes(heap[least]) {
        least = child
      }
      guard least != parent else { return first.element }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
