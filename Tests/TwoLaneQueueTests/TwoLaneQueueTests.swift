import Testing
import TwoLaneQueue

@Suite struct TwoLaneQueueTests {
  private var queue = TwoLaneQueue<Int>()

  /// Adds numbers: negative ones are bulk.
  private mutating func append(_ numbers: some Sequence<Int>) {
    for number in numbers { queue.append(number, isBulk: number < 0) }
  }

  private mutating func take(_ count: Int, mayTakeBulk: Bool = true) -> [Int] {
    (0..<count).compactMap { _ in queue.popFirst(mayTakeBulk: mayTakeBulk) }
  }

  @Test mutating func everyEighthElementIsBulkWhileBothLanesWait() {
    append(1...100)
    append((1...100).map { -$0 })
    let taken = take(80)
    #expect(taken.indices.filter { taken[$0] < 0 } == Array(stride(from: 7, to: 80, by: BulkLane.period)))
    #expect(taken.filter { $0 > 0 } == Array(1...70))
    #expect(queue.count == 120 && queue.singleCount == 30 && queue.firstSingle == 71 && queue.firstBulk == -11)
  }

  @Test mutating func bulkThatMayNotBeTakenStaysAndKeepsItsTurn() {
    append([1, 2, 3, -1, -2])
    #expect(take(9, mayTakeBulk: false) == [1, 2, 3])
    #expect(queue.hasBulk && take(9) == [-1, -2])
    append(1...7)
    append([-1, 8])
    #expect(take(7) == Array(1...7))
    #expect(take(2) == [-1, 8])
    #expect(queue.isEmpty && queue.popFirst() == nil)
  }

  @Test mutating func prependedElementsComeFirstInTheirLane() {
    append([2, -2])
    queue.prepend(1, isBulk: false)
    queue.prepend(-1, isBulk: true)
    #expect(queue.elements == [1, 2, -1, -2])
    #expect(queue.removeAll() == [1, 2, -1, -2])
    #expect(queue.isEmpty)
  }

  @Test mutating func elementsOfSeveralUnitsAreSplitAtTheEndOfATurn() {
    append([10, -10])
    var parts: [Int] = []
    while let part = queue.takeFirst(
      6,
      split: { element, limit in
        let units = min(abs(element), limit)
        let part = element.signum() * units
        element -= part
        return (part, units, element == 0)
      })
    { parts.append(part) }
    #expect(parts == [6, 1, -1, 3, -6, -3])
  }

  @Test mutating func updatedElementsKeepTheirOrder() {
    append([1, 2, 3, 4, -1, -2, -3])
    queue.updateAll { element in
      element *= 10
      return element % 20 != 0
    }
    #expect(queue.elements == [10, 30, -10, -30])
    queue.updateAll { _ in false }
    #expect(queue.isEmpty)
  }
}
