import Testing

@testable import RDKafka

struct RebalanceDelayTests {
  private let start = ContinuousClock.now

  @Test func delayIsOffWhereCommitsAreAccepted() {
    var delay = RebalanceDelay(isNeeded: false)
    delay.begin(.revoke, isEmpty: false, at: start)
    #expect(!delay.isActive(at: start))
  }

  @Test func revocationStartsTheDelay() {
    var delay = RebalanceDelay(isNeeded: true)
    #expect(!delay.isActive(at: start))
    delay.begin(.revoke, isEmpty: false, at: start)
    #expect(delay.isActive(at: start + .seconds(2)))
    #expect(!delay.isActive(at: start + .seconds(3)))
  }

  @Test func newMemberWithPartitionsIsNotDelayed() {
    var delay = RebalanceDelay(isNeeded: true)
    delay.begin(.assign, isEmpty: false, at: start)
    #expect(!delay.isActive(at: start))
    // In the second generation that it observes, other members may give partitions back.
    delay.begin(.assign, isEmpty: true, at: start)
    #expect(delay.isActive(at: start))
  }

  @Test func newMemberWithoutPartitionsIsDelayed() {
    var delay = RebalanceDelay(isNeeded: true)
    delay.begin(.assign, isEmpty: true, at: start)
    #expect(delay.isActive(at: start))
  }
}
