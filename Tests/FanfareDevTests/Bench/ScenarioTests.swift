import Testing

@testable import fanfare_dev

struct ScenarioReportTests {
  /// A share that equals the displayed, rounded goal reaches the goal.
  @Test func goalIsShownWithItsVerdict() {
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

struct LatencyScenarioTests {
  /// The look-up of a user who was sent to before would be faster.
  @Test(arguments: [(100_000, 100_000), (1_000_000, 2200), (1000, 300)])
  func postsGoToDifferentUsers(users: Int, posts: Int) {
    let bodies = (0..<posts).map { LatencyScenario.body(of: $0, users: users, text: "Goal") }
    #expect(Set(bodies).count == posts)
    #expect(bodies.allSatisfy { $0.hasPrefix(#"{"to":{"user":"user-"#) })
  }
}

struct MixedScenarioTests {
  /// The expected number of deliveries must be exact: one fewer means that a device was missed.
  @Test func expectsPushesToLiveDevicesOnly() {
    func device(_ owner: Int, isDead: Bool = false) -> Population.Device {
      Population.Device(number: 0, owner: owner, handle: "a", isDead: isDead)
    }
    let population = Population(devices: [
      device(0), device(0, isDead: true), device(1), device(1), device(2, isDead: true),
    ])
    // Three sends: one to each of the three users.
    #expect(MixedScenario.liveDevices(of: population, users: 3, sends: 3) == 3)
    #expect(MixedScenario.liveDevices(of: population, users: 3, sends: 6) == 6)
  }

  @Test func someDevicesAreDead() {
    let population = MixedScenario.population(users: 500)
    let dead = population.devices.filter(\.isDead)
    #expect(!dead.isEmpty && dead.count < population.devices.count / 10)
    #expect(dead.allSatisfy { $0.handle.contains("dead") })
  }
}
