import Testing

@testable import RDKafka

struct FetchReminderTests {
  /// Records taken and their bytes, what is left, and when, in milliseconds.
  private typealias Taken = (taken: Int, bytes: Int, left: Int, milliseconds: Int)

  @Test func aPrefetchThatEmptiesAfterItWasFullIsDueOnce() {
    #expect(
      due([(100, 10_000, 900, 0), (100, 10_000, 300, 0), (100, 10_000, 250, 0), (100, 10_000, 150, 1000)]) == [2])
  }

  @Test func onlyAFullOnePutsTheThreadToSleep() {
    #expect(due([(100, 10_000, 300, 0), (300, 30_000, 0, 0)]) == [])
  }

  @Test func oneThatIsTakenAtOnceWasFullBefore() {
    #expect(due([(1000, 10_000, 0, 0)]) == [0])
    #expect(due([(10, 1 << 20, 0, 0)]) == [0])
  }

  @Test func largeRecordsFillItByTheirBytes() {
    #expect(due([(10, 1 << 20, 6, 0), (3, 3 << 17, 3, 0), (1, 1 << 17, 2, 0)]) == [2])
  }

  @Test func remindersKeepTheirDistance() {
    #expect(due([(1, 100, 1000, 0), (1, 100, 0, 0), (1, 100, 1000, 1), (1, 100, 0, 2), (1, 100, 0, 20)]) == [1, 4])
  }

  @Test func aLibraryThatLooksByItselfNeedsNone() {
    #expect(due([(1, 100, 1000, 0), (1, 100, 0, 0)], isNeeded: false) == [])
  }

  /// At which of the steps a reminder that allows 1,000 records and 1 MiB is due.
  private func due(_ steps: [Taken], isNeeded: Bool = true) -> [Int] {
    var reminder = FetchReminder(isNeeded: isNeeded, records: 1000, bytes: 1 << 20)
    let start = ContinuousClock.now
    return steps.indices.filter { index in
      let step = steps[index]
      return reminder.isDue(
        taken: step.taken, bytes: step.bytes, left: step.left, at: start + .milliseconds(step.milliseconds))
    }
  }
}
