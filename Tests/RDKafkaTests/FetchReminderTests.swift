import Testing

@testable import RDKafka

struct FetchReminderTests {
  private let start = ContinuousClock.now

  @Test func aPrefetchThatEmptiesAfterItWasFullIsDueOnce() {
    let reminder = Asked(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 900, at: start))
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 300, at: start))
    #expect(reminder.isDue(taken: 100, bytes: 10_000, left: 250, at: start))
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 150, at: start + .seconds(1)))
  }

  @Test func onlyAFullOnePutsTheThreadToSleep() {
    let reminder = Asked(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 400, at: start))
    #expect(!reminder.isDue(taken: 400, bytes: 40_000, left: 0, at: start))
  }

  @Test func largeRecordsFillItByTheirBytes() {
    let reminder = Asked(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 10, bytes: 1 << 20, left: 6, at: start))
    #expect(!reminder.isDue(taken: 3, bytes: 3 << 17, left: 3, at: start))
    #expect(reminder.isDue(taken: 1, bytes: 1 << 17, left: 2, at: start))
  }

  @Test func remindersKeepTheirDistance() {
    let reminder = Asked(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start))
    #expect(reminder.isDue(taken: 1, bytes: 100, left: 0, at: start))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start + .milliseconds(1)))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 0, at: start + .milliseconds(2)))
    #expect(reminder.isDue(taken: 1, bytes: 100, left: 0, at: start + .milliseconds(20)))
  }

  @Test func aLibraryThatLooksByItselfNeedsNone() {
    let reminder = Asked(isNeeded: false, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 0, at: start))
  }

  /// A reminder that can be asked in the middle of an expectation.
  private final class Asked {
    private var reminder: FetchReminder

    init(isNeeded: Bool, records: Int, bytes: Int) {
      reminder = FetchReminder(isNeeded: isNeeded, records: records, bytes: bytes)
    }

    func isDue(taken: Int, bytes: Int, left: Int, at now: ContinuousClock.Instant) -> Bool {
      reminder.isDue(taken: taken, bytes: bytes, left: left, at: now)
    }
  }
}
