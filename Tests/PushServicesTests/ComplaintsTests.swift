import Testing

@testable import PushServices

@Suite struct ComplaintsTests {
  private let complaints = Complaints()
  private let start = ContinuousClock.now

  @Test func aConnectionIsComplainedOfForAMinuteAfterTheLastFailure() {
    for seconds in [0, 30, 60] { complaints.set(.connection, "no connection", at: start + .seconds(seconds)) }
    #expect(complaints.worst(at: start + .seconds(119)) == "no connection")
    #expect(complaints.worst(at: start + .seconds(120)) == nil)
  }

  @Test func anythingElseStaysUntilItIsOver() {
    complaints.set(.answer, "refused", at: start)
    complaints.set(.connection, "no connection", at: start)
    #expect(complaints.worst(at: start + .seconds(86_400)) == "refused")
    complaints.clear(.answer, .connection)
    #expect(complaints.worst(at: start) == nil)
  }

  @Test func itIsNewsWhenItWasNotKnown() {
    for (seconds, isNews) in [(0, true), (30, false), (89, false), (149, true)] {
      let found = complaints.set(.connection, "no connection", at: start + .seconds(seconds))
      #expect(found == isNews)
    }
    let isOther = complaints.set(.connection, "no other", at: start + .seconds(150))
    #expect(isOther)
  }
}
