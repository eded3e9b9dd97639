import FanfareCore
import Support
import Testing

@testable import Registry

@Suite struct AudiencePlanTests {
  private static let weights = ["huge": 1_000_000, "big": 1000, "small": 10, "tiny": 1]

  private func plan(_ expression: String) throws -> AudiencePlan {
    AudiencePlan(.expression(try TagExpression(expression))) { Self.weights[$0] ?? 100 }
  }

  @Test(
    arguments: [
      ("a", ["a"], nil), ("a || b", ["a", "b"], nil), ("a || b || a", ["a", "b"], nil), ("!a", nil, "!a"),
      ("a || !b", nil, "a || !b"),
      ("a && !b", ["a"], "!b"), ("!b && a", ["a"], "!b"), ("big && small", ["small"], "big"),
      ("small && big", ["small"], "big"),
      ("big && small && tiny && !huge", ["tiny"], "big && small && !huge"),
      ("(small || tiny) && big", ["small", "tiny"], "big"),
      ("(small || huge) && big", ["big"], "small || huge"), ("(a && b) || c", ["a", "c"], "a && b || c"),
      ("(a || b) && (c || !d)", ["a", "b"], "c || !d"),
      ("((big && small) || tiny) && huge", ["small", "tiny"], "(big && small || tiny) && huge"),
      ("!(a && b) && big", ["big"], "!(a && b)"), ("!!a", nil, "!!a"),
    ] as [(String, [String]?, String?)])
  func cheapestTagsAreTheSource(expression: String, tags: [String]?, condition: String?) throws {
    let plan = try plan(expression)
    #expect(plan.source == (tags.map { .tags($0) } ?? .registrations))
    #expect(plan.condition?.description == condition)
  }

  @Test func otherAudiencesHaveNoCondition() {
    let id = RegistrationID.random()
    for (audience, source) in [
      (.user("bob"), .tags(["username:bob"])), (.tag("news"), .tags(["news"])),
      (.tags(["a", "b"]), .tags(["a", "b"])),
      (.everyone, .registrations), (.registration(id), .registration(id)),
      (.device(.apns, handle: "AB"), .handle(.apns, "ab")),
    ] as [(Audience, AudiencePlan.Source)] {
      let plan = AudiencePlan(audience) { _ in
        Issue.record("there is no choice")
        return 0
      }
      #expect(plan.source == source && plan.condition == nil)
    }
  }

  @Test func tagsAreWeighedOnlyForAChoice() throws {
    for (text, tags) in [
      ("a", []), ("a || b", []), ("a && !b", []), ("a && b", ["a", "b"]), ("(a && b) || c", ["a", "b"]),
      ("((a && b) || c) && d", ["a", "b", "c", "d"]),
    ] as [(String, Set<String>)] {
      #expect(AudiencePlan.tagsToWeigh(for: .expression(try TagExpression(text))) == tags)
    }
  }

  /// For any weights: a device that matches the expression carries a tag of the source, and for devices that do, the
  /// condition equals the expression.
  @Test(arguments: UInt64(1)...3) func plansSelectExactlyTheAudience(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let names = ["a", "b", "c", "d"]
    for _ in 0..<300 {
      let expression = try TagExpression(AudienceWords.expression(over: names, depth: 3, using: &random))
      let weights = names.map { ($0, Int.random(in: 0..<3, using: &random)) }
      let plan = AudiencePlan(.expression(expression)) { tag in weights.first { $0.0 == tag }?.1 ?? 0 }
      for subset in 0..<16 {
        let carried = names.enumerated().filter { subset & 1 << $0.offset != 0 }.map(\.element)
        let isCandidate = if case .tags(let tags) = plan.source { tags.contains(where: carried.contains) } else { true }
        let isFound = isCandidate && plan.condition?.holds(where: carried.contains) ?? true
        #expect(isFound == expression.holds(where: carried.contains), "\(expression) for \(carried)")
      }
    }
  }

  @Test func weightIsEstimatedFromTheSampledIDs() {
    #expect(TagWeights.estimate(sampleUpTo: RegistrationID(high: .max, low: .max)) == TagWeights.sample)
    #expect(TagWeights.estimate(sampleUpTo: RegistrationID(high: .max / 1000, low: 0)) == 1000 * TagWeights.sample)
    #expect(TagWeights.estimate(sampleUpTo: RegistrationID(high: 0, low: 0)) > 0)
  }

  @Test func weightIsCachedPerHub() throws {
    let weights = TagWeights()
    let other = try #require(HubName("other"))
    #expect(weights.weights(of: ["a"], hub: .default) { _ in [1] } == ["a": 1])
    #expect(weights.weights(of: ["a"], hub: .default) { _ in [2] } == ["a": 1])
    #expect(weights.weights(of: ["a"], hub: other) { _ in [3] } == ["a": 3])
  }

  @Test func missingWeightsAreEstimatedTogether() throws {
    let weights = TagWeights()
    var asked: [[String]] = []
    func plan(_ expression: String) throws -> AudiencePlan {
      AudiencePlan(query(.expression(try TagExpression(expression))), weights: weights) { tags in
        asked.append(tags)
        return tags.map { Self.weights[$0] ?? 100 }
      }
    }
    #expect(try plan("(big || c) && (small || tiny)").source == .tags(["small", "tiny"]))
    #expect(try plan("big && huge && c").source == .tags(["c"]))
    #expect(try plan("big && c").source == .tags(["c"]))
    #expect(try plan("a || !b").source == .registrations)
    #expect(asked == [["big", "c", "small", "tiny"], ["huge"]])
  }
}
