import Testing

@testable import RDKafka

struct FetchWakeUpTests {
  /// Records taken and their bytes, records left, and the time in milliseconds.
  private typealias Taken = (taken: Int, bytes: Int, left: Int, milliseconds: Int)

  @Test func queueThatEmptiesAfterBeingFullNeedsOneWakeUp() {
    #expect(
      due([(100, 10_000, 900, 0), (100, 10_000, 300, 0), (100, 10_000, 250, 0), (100, 10_000, 150, 1000)]) == [2])
  }

  @Test func onlyAFullQueueNeedsAWakeUp() {
    #expect(due([(100, 10_000, 300, 0), (300, 30_000, 0, 0)]) == [])
  }

  @Test func queueEmptiedAtOnceCountsAsFull() {
    #expect(due([(1000, 10_000, 0, 0)]) == [0])
    #expect(due([(10, 1 << 20, 0, 0)]) == [0])
  }

  @Test func largeRecordsFillTheQueueByBytes() {
    #expect(due([(10, 1 << 20, 6, 0), (3, 3 << 17, 3, 0), (1, 1 << 17, 2, 0)]) == [2])
  }

  @Test func wakeUpsKeepTheirInterval() {
    #expect(due([(1, 100, 1000, 0), (1, 100, 0, 0), (1, 100, 1000, 1), (1, 100, 0, 2), (1, 100, 0, 20)]) == [1, 4])
  }

  @Test func fixedLibraryNeedsNoWakeUp() {
    #expect(due([(1, 100, 1000, 0), (1, 100, 0, 0)], isNeeded: false) == [])
  }

  /// The steps at which a wake-up is due, for a queue of 1,000 records and 1 MiB.
  private func due(_ steps: [Taken], isNeeded: Bool = true) -> [Int] {
    var wakeUp = FetchWakeUp(isNeeded: isNeeded, records: 1000, bytes: 1 << 20)
    let start = ContinuousClock.now
    return steps.indices.filter { index in
      let step = steps[index]
      return wakeUp.isDue(
        taken: step.taken, bytes: step.bytes, left: step.left, at: start + .milliseconds(step.milliseconds))
    }
  }
}
