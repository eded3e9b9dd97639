import Testing

@testable import fanfare_dev

struct LatencyScenarioTests {
  /// Whoever is sent to a second time is found at once.
  @Test(arguments: [(100_000, 100_000), (1_000_000, 2200), (1000, 300)])
  func everyPostGoesToAnotherUser(users: Int, posts: Int) {
    let bodies = (0..<posts).map { LatencyScenario.body(of: $0, users: users, text: "Goal") }
    #expect(Set(bodies).count == posts)
    #expect(bodies.allSatisfy { $0.hasPrefix(#"{"to":{"user":"user-"#) })
  }
}
