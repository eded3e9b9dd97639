import FanfareCore

/// Estimates how many registrations the workers examine for audiences.
enum AudienceCosts {
  /// Stands for all registrations of a hub among the tags; no tag is empty.
  private static let everyone = ""

  /// Thrown by `cached` for a weight that is not known.
  private struct Unknown: Error {}

  /// The costs, if all weights are cached.
  static func cached(_ audiences: [Audience], hub: HubName, weights: TagWeights) -> [Int]? {
    do { return try estimate(audiences, hub: hub, weights: weights) { _ in throw Unknown() } } catch { return nil }
  }

  /// The costs, with the missing weights from a table.
  static func estimate(_ audiences: [Audience], weights: TagWeights, in table: RegistrationTable) throws -> [Int] {
    try estimate(audiences, hub: table.hub, weights: weights) { missing in
      let tags = missing.filter { $0 != everyone }
      var known = try tags.isEmpty ? [] : table.weights(of: tags)
      // The missing ones are sorted: the empty text is the first.
      if missing.first == everyone { known.insert(try table.size(), at: 0) }
      return known
    }
  }

  private static func estimate(
    _ audiences: [Audience], hub: HubName, weights: TagWeights, _ estimate: ([String]) throws -> [Int]
  ) throws -> [Int] {
    let wanted = audiences.reduce(into: Set<String>()) { wanted, audience in
      wanted.formUnion(AudiencePlan.tagsToWeigh(for: audience))
      wanted.formUnion(keys(of: AudiencePlan(audience) { _ in 0 }))
    }
    let known = try weights.weights(of: wanted, hub: hub, estimate: estimate)
    return audiences.map { audience in
      let keys = keys(of: AudiencePlan(audience) { known[$0] ?? 0 })
      return keys.isEmpty ? 1 : keys.map { known[$0] ?? 0 }.clampedSum()
    }
  }

  private static func keys(of plan: AudiencePlan) -> [String] {
    switch plan.source {
    case .registrations: [everyone]
    case .tags(let tags): tags
    case .registration, .handle: []
    }
  }
}
