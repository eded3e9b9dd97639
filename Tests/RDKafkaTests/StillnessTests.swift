import Testing

@testable import RDKafka

struct StillnessTests {
  private let start = ContinuousClock.now

  @Test func onlyTheEmbeddedClusterNeedsIt() {
    var stillness = Stillness(isNeeded: false)
    stillness.begin(.revoke, isEmpty: false, at: start)
    #expect(!stillness.lasts(at: start))
  }

  @Test func aRevocationIsFollowedByIt() {
    var stillness = Stillness(isNeeded: true)
    #expect(!stillness.lasts(at: start))
    stillness.begin(.revoke, isEmpty: false, at: start)
    #expect(stillness.lasts(at: start + .seconds(2)))
    #expect(!stillness.lasts(at: start + .seconds(3)))
  }

  @Test func aNewcomerThatGetsSomethingAtOnceNeedNotWait() {
    var stillness = Stillness(isNeeded: true)
    stillness.begin(.assign, isEmpty: false, at: start)
    #expect(!stillness.lasts(at: start))
    // The second generation it hears of is one in which others may give back.
    stillness.begin(.assign, isEmpty: true, at: start)
    #expect(stillness.lasts(at: start))
  }

  @Test func aNewcomerThatGetsNothingWaitsForWhoeverGivesItSomething() {
    var stillness = Stillness(isNeeded: true)
    stillness.begin(.assign, isEmpty: true, at: start)
    #expect(stillness.lasts(at: start))
  }
}
