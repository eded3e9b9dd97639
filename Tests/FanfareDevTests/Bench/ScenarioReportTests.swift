import Testing

@testable import fanfare_dev

struct ScenarioReportTests {
  /// Whoever has reached what is shown has reached the goal.
  @Test func aGoalIsShownAsItIsJudged() {
    func verdict(share: Double, goal: Double) -> (goal: String, isReached: Bool?) {
      var report = ScenarioReport(scenario: "a", unit: "sends", sink: "b", goals: [.share(goal)])
      let product = Measurement(count: Int(share * 1000), seconds: 1)
      report.pairs = [MeasuredPair(ceiling: Measurement(count: 1000, seconds: 1), product: product)]
      return report.verdicts[0]
    }
    #expect(verdict(share: 0.765, goal: 1 / 1.3) == ("≥ 76.9 % of the ceiling", false))
    #expect(verdict(share: 0.3, goal: 0.3) == ("≥ 30 % of the ceiling", true))
  }
}
