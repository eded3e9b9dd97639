import FanfareCore

/// How the devices of an audience are found page by page: where its candidates come from, in the order of their ids,
/// and what has still to be asked of each. A pure value, the same for every store.
struct AudiencePlan: Hashable, Sendable {
  /// What is walked.
  enum Source: Hashable, Sendable {
    /// Every registration of the hub: for an audience that no tag leads to.
    case registrations
    /// The registrations that carry at least one of the tags. No tags: nobody.
    case tags([String])
    /// The one registration of that id.
    case registration(RegistrationID)
    /// The one registration that holds the handle, in its normal form, on the platform.
    case handle(Platform, String)
  }

  /// Where the candidates come from.
  let source: Source
  /// What must hold for a candidate's tags; nil when each is of the audience.
  let condition: TagExpression?

  /// A plan for the audience. `weight` says about how many devices carry a tag; it is asked only where there is a
  /// choice.
  init(_ audience: Audience, weight: (String) throws -> Int) rethrows {
    switch audience {
    case .user(let name): self.init(source: .tags([Tag.username(name)]), condition: nil)
    case .tag(let tag): self.init(source: .tags([tag]), condition: nil)
    case .tags(let tags): self.init(source: .tags(tags), condition: nil)
    case .everyone: self.init(source: .registrations, condition: nil)
    case .registration(let id): self.init(source: .registration(id), condition: nil)
    case .device(let platform, let handle):
      self.init(source: .handle(platform, DeviceHandle.normalized(handle, platform: platform)), condition: nil)
    case .expression(let expression):
      let driver = try Driver(expression, weight: weight)
      self.init(
        source: driver.map { .tags($0.tags) } ?? .registrations, condition: driver.map(\.condition) ?? expression)
    }
  }

  /// A plan for the query's audience by the weights that are known, and by those that `estimate` gives for the others;
  /// see `TagWeights`.
  init(_ query: AudienceQuery, weights: TagWeights, estimate: ([String]) throws -> [Int]) rethrows {
    let weights = try weights.weights(of: Self.tagsToWeigh(for: query.audience), hub: query.hub, estimate: estimate)
    self.init(query.audience) { weights[$0] ?? 0 }
  }

  private init(source: Source, condition: TagExpression?) {
    self.source = source
    self.condition = condition
  }

  /// The tags whose weights a plan for the audience may depend on, whatever they are, so that a store can ask for all
  /// of them at once.
  static func tagsToWeigh(for audience: Audience) -> Set<String> {
    var tags: Set<String> = []
    _ = AudiencePlan(audience) { tag in
      tags.insert(tag)
      return 0
    }
    return tags
  }
}

/// Tags of which every device that an expression holds for carries at least one.
private struct Driver {
  /// Each once.
  let tags: [String]
  /// What of the expression does not follow from carrying one of the tags; nil when all of it does.
  let condition: TagExpression?

  private init(tags: [String], condition: TagExpression?) {
    self.tags = tags
    self.condition = condition
  }

  /// The cheapest driver; nil when a device without any tag may be meant.
  init?(_ expression: TagExpression, weight: (String) throws -> Int) rethrows {
    switch expression {
    case .tag(let tag): self.init(tags: [tag], condition: nil)
    case .not: return nil
    case .any(let operands):
      var tags: [String] = []
      var isWhole = true
      for operand in operands {
        guard let driver = try Driver(operand, weight: weight) else { return nil }
        isWhole = isWhole && driver.condition == nil
        for tag in driver.tags where !tags.contains(where: { $0.hasSameBytes(as: tag) }) { tags.append(tag) }
      }
      self.init(tags: tags, condition: isWhole ? nil : expression)
    case .all(let operands):
      let drivers = try operands.enumerated().compactMap { index, operand in
        try Driver(operand, weight: weight).map { (index: index, driver: $0) }
      }
      guard var best = drivers.first else { return nil }
      if drivers.count > 1 {
        var least = Int.max
        for candidate in drivers {
          let weight = try candidate.driver.tags.reduce(0) { try $0 + weight($1) }
          if weight < least { (best, least) = (candidate, weight) }
        }
      }
      let rest = operands.enumerated().compactMap { $0.offset == best.index ? best.driver.condition : $0.element }
      self.init(tags: best.driver.tags, condition: rest.count > 1 ? .all(rest) : rest.first)
    }
  }
}
