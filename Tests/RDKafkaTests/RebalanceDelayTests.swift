import Testing

@testable import EmbeddedKafka

struct RebalanceDelayTests {
  private let start = ContinuousClock.now

  @Test func revocationStartsTheDelay() {
    var delay = CommonDelay()
    #expect(!delay.isActive(at: start))
    delay.begin(isAssignment: false, isEmpty: false, at: start)
    #expect(delay.isActive(at: start + .seconds(2)))
    #expect(!delay.isActive(at: start + .seconds(3)))
  }

  @Test func newMemberIsDelayedUnlessItGetsPartitions() {
    var (first, second) = (CommonDelay(), CommonDelay())
    second.begin(isAssignment: true, isEmpty: true, at: start)
    #expect(second.isActive(at: start))
    first.begin(isAssignment: true, isEmpty: false, at: start)
    #expect(!first.isActive(at: start))
    // In the second generation that it observes, other members may give partitions back.
    first.begin(isAssignment: true, isEmpty: true, at: start)
    #expect(first.isActive(at: start))
  }
}
