import Support
import Testing

@testable import Worker

struct DeadlineQueueTests {
  @Test(arguments: 0..<20) func dueElementsComeOutByDeadlineInOrder(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var queue = DeadlineQueue<Int>()
    let deadlines = (0..<500).map { _ in Int64.random(in: 0..<100, using: &random) }
    for (index, due) in deadlines.enumerated() { queue.insert(index, due: due) }
    var popped: [Int] = []
    for time in stride(from: Int64(0), to: 120, by: 10) {
      while let index = queue.popDue(at: time) {
        #expect(deadlines[index] <= time)
        popped.append(index)
      }
      #expect(queue.next.map { $0 > time } ?? true)
    }
    #expect(queue.count == 0)
    #expect(popped == deadlines.indices.sorted { (deadlines[$0], $0) < (deadlines[$1], $1) })
  }
}
