/// What waits for its turn, first come first served.
struct WNSLine<Element: Sendable>: Sendable {
  private var elements: [Element] = []
  private var head = 0

  /// Whether nothing waits.
  var isEmpty: Bool { head == elements.count }

  /// All that waits.
  var waiting: ArraySlice<Element> { elements[head...] }

  /// Adds one behind all others.
  mutating func append(_ element: Element) { elements.append(element) }

  /// Takes the one that has waited longest; nil if there is none.
  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    defer {
      head += 1
      if isEmpty {
        elements.removeAll(keepingCapacity: true)
        head = 0
      } else if head > 1024, head * 2 > elements.count {
        elements.removeFirst(head)
        head = 0
      }
    }
    return elements[head]
  }
}
