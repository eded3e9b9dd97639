import Testing

@testable import RDKafka

struct FetchReminderTests {
  private let start = ContinuousClock.now

  @Test func aPrefetchThatEmptiesAfterItWasFullIsDueOnce() {
    var reminder = FetchReminder(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 900, at: start))
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 300, at: start))
    #expect(reminder.isDue(taken: 100, bytes: 10_000, left: 250, at: start))
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 150, at: start + .seconds(1)))
  }

  @Test func onlyAFullOnePutsTheThreadToSleep() {
    var reminder = FetchReminder(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 100, bytes: 10_000, left: 400, at: start))
    #expect(!reminder.isDue(taken: 400, bytes: 40_000, left: 0, at: start))
  }

  @Test func largeRecordsFillItByTheirBytes() {
    var reminder = FetchReminder(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 10, bytes: 1 << 20, left: 6, at: start))
    #expect(!reminder.isDue(taken: 3, bytes: 3 << 17, left: 3, at: start))
    #expect(reminder.isDue(taken: 1, bytes: 1 << 17, left: 2, at: start))
  }

  @Test func remindersKeepTheirDistance() {
    var reminder = FetchReminder(isNeeded: true, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start))
    #expect(reminder.isDue(taken: 1, bytes: 100, left: 0, at: start))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start + .milliseconds(1)))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 0, at: start + .milliseconds(2)))
    #expect(reminder.isDue(taken: 1, bytes: 100, left: 0, at: start + .milliseconds(20)))
  }

  @Test func aLibraryThatLooksByItselfNeedsNone() {
    var reminder = FetchReminder(isNeeded: false, records: 1000, bytes: 1 << 20)
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 1000, at: start))
    #expect(!reminder.isDue(taken: 1, bytes: 100, left: 0, at: start))
  }
}
