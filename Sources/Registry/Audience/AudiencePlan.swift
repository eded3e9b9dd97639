import FanfareCore
import Synchronization

/// The plan for reading an audience page by page: the source of its candidates, and the condition that each must meet.
///
/// Candidates are read in the order of their ids. A pure value, the same for every store.
struct AudiencePlan: Hashable, Sendable {
  /// The set of candidates.
  enum Source: Hashable, Sendable {
    /// Every registration of the hub, for an audience that no tag implies.
    case registrations
    /// The registrations that carry at least one of the tags; none without tags.
    case tags([String])
    /// The registration with the id.
    case registration(RegistrationID)
    /// The registration that holds the handle, in normal form, on the platform.
    case handle(Platform, String)
  }

  let source: Source
  /// The condition on a candidate's tags; nil when every candidate is of the audience.
  let condition: TagExpression?

  /// A plan for the audience. `weight` estimates the number of devices that carry a tag; it is only called to choose
  /// between tags.
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

  /// A plan for the query's audience with cached weights; `estimate` provides the missing ones.
  init(_ query: AudienceQuery, weights: TagWeights, estimate: ([String]) throws -> [Int]) rethrows {
    let weights = try weights.weights(of: Self.tagsToWeigh(for: query.audience), hub: query.hub, estimate: estimate)
    self.init(query.audience) { weights[$0] ?? 0 }
  }

  private init(source: Source, condition: TagExpression?) {
    self.source = source
    self.condition = condition
  }

  /// All tags whose weights a plan for the audience may depend on, so that a store can estimate them at once.
  static func tagsToWeigh(for audience: Audience) -> Set<String> {
    var tags: Set<String> = []
    _ = AudiencePlan(audience) { tag in
      tags.insert(tag)
      return 0
    }
    return tags
  }
}

/// A set of tags such that every device that matches an expression carries at least one of them.
private struct Driver {
  /// Without duplicates.
  let tags: [String]
  /// The part of the expression that does not follow from carrying one of the tags; nil when all of it does.
  let condition: TagExpression?

  private init(tags: [String], condition: TagExpression?) {
    self.tags = tags
    self.condition = condition
  }

  /// The driver with the least weight; nil when a device without tags may match.
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

/// A cache of estimates of how many devices carry a tag: a broadcast of a thousand pages needs them for each page.
final class TagWeights: Sendable {
  /// The number of rows of a tag that are read to estimate its weight.
  static let sample = 1000
  private static let lifetime: Duration = .seconds(60)
  /// The maximum number of cached tags. Beyond it the cache is emptied: a caller with so many tags rarely repeats one.
  private static let capacity = 10_000

  private struct Key: Hashable {
    let hub: HubName
    let tag: String
  }

  private let known = Mutex<[Key: (weight: Int, until: ContinuousClock.Instant)]>([:])

  /// The weights of the tags. `estimate` is called at most once, with all tags that are missing or too old, and returns
  /// their weights in the same order.
  func weights(of tags: Set<String>, hub: HubName, estimate: ([String]) throws -> [Int]) rethrows -> [String: Int] {
    guard !tags.isEmpty else { return [:] }
    let now = ContinuousClock.now
    var weights = known.withLock { known in
      tags.reduce(into: [String: Int]()) { weights, tag in
        if let entry = known[Key(hub: hub, tag: tag)], entry.until > now { weights[tag] = entry.weight }
      }
    }
    let missing = tags.filter { weights[$0] == nil }.sorted()
    guard !missing.isEmpty else { return weights }
    let estimates = zip(missing, try estimate(missing))
    known.withLock { known in
      if known.count >= Self.capacity { known.removeAll(keepingCapacity: true) }
      for (tag, weight) in estimates { known[Key(hub: hub, tag: tag)] = (weight, now + Self.lifetime) }
    }
    for (tag, weight) in estimates { weights[tag] = weight }
    return weights
  }

  /// Estimates the weight of a tag whose `sample` lowest ids reach up to the id. Ids are uniformly distributed.
  static func estimate(sampleUpTo id: RegistrationID) -> Int {
    Int(clamping: min(Double(sample) / RegistrationSlice.whole.share(upTo: id), 1e15))
  }
}
