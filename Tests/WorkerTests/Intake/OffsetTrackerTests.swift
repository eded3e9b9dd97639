import Support
import Testing

@testable import Worker

struct OffsetTrackerTests {
  @Test func `the position is the end of the settled prefix, whatever the order`() {
    var tracker = OffsetTracker()
    let numbers = [5, 6, 9].map { tracker.begin($0) }
    #expect(tracker.position == nil)
    #expect(tracker.settle(numbers[1]) == false)
    #expect(tracker.position == nil)
    #expect(tracker.settle(numbers[0]) == true)
    #expect(tracker.position == 7)
    #expect(tracker.span == 1)
    #expect(tracker.settle(numbers[2]) == true)
    #expect(tracker.position == 10)
    #expect(tracker.span == 0)
    #expect(tracker.unsettled == 0)
  }

  @Test func `settling twice or settling the unknown changes nothing`() {
    var tracker = OffsetTracker()
    let first = tracker.begin(0)
    let second = tracker.begin(1)
    #expect(tracker.settle(first) == true)
    #expect(tracker.settle(first) == false)
    #expect(tracker.settle(second + 1) == false)
    #expect(tracker.settle(-1) == false)
    #expect(tracker.position == 1)
    #expect(tracker.unsettled == 1)
  }

  @Test func `offsets delivered again never take the position back`() {
    var tracker = OffsetTracker()
    let late = tracker.begin(10)
    let again = tracker.begin(4)
    _ = tracker.settle(late)
    _ = tracker.settle(again)
    #expect(tracker.position == 11)
  }

  /// Against a model that keeps everything: never past an unsettled record, always up to it.
  @Test(arguments: 0..<50) func `random interleavings agree with a model`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var tracker = OffsetTracker()
    var begun: [(sequence: Int64, offset: Int64)] = []
    var open: [Int] = []
    var settled: Set<Int> = []
    var offset: Int64 = 0
    for _ in 0..<400 {
      if open.isEmpty || Bool.random(using: &random) {
        // Holes as compaction and transaction markers leave them.
        offset += Int64.random(in: 1...3, using: &random)
        begun.append((tracker.begin(offset), offset))
        open.append(begun.count - 1)
      } else {
        let index = open.remove(at: Int.random(in: open.indices, using: &random))
        settled.insert(index)
        let before = tracker.position
        #expect(tracker.settle(begun[index].sequence) == (tracker.position != before))
      }
      let firstOpen = begun.indices.first { !settled.contains($0) } ?? begun.count
      let expected = firstOpen == 0 ? nil : begun[firstOpen - 1].offset + 1
      guard tracker.position == expected, tracker.unsettled == open.count, tracker.span == begun.count - firstOpen else {
        Issue.record("position \(tracker.position as Int64?) where the model has \(expected as Int64?)")
        return
      }
    }
  }
}
