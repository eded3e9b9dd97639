import Testing

@testable import PushServices

@Suite struct ReadinessProblemsTests {
  private let problems = ReadinessProblems()
  private let start = ContinuousClock.now

  @Test func connectionProblemLastsAMinuteAfterTheLastFailure() {
    for seconds in [0, 30, 60] { problems.note(.connection, "no connection", at: start + .seconds(seconds)) }
    #expect(problems.worst(at: start + .seconds(119)) == "no connection")
    #expect(problems.worst(at: start + .seconds(120)) == nil)
  }

  @Test func otherProblemsStayUntilTheyAreCleared() {
    problems.note(.answer, "refused", at: start)
    problems.note(.connection, "no connection", at: start)
    #expect(problems.worst(at: start + .seconds(86_400)) == "refused")
    problems.clear(.answer, .connection)
    #expect(problems.worst(at: start) == nil)
  }

  @Test func unknownProblemIsNews() {
    for (seconds, isNews) in [(0, true), (30, false), (89, false), (149, true)] {
      let found = problems.note(.connection, "no connection", at: start + .seconds(seconds))
      #expect(found == isNews)
    }
    let isOther = problems.note(.connection, "no other", at: start + .seconds(150))
    #expect(isOther)
  }
}
