import FanfareCore
import Synchronization

/// About how many devices carry a tag, remembered for a while: a broadcast of a thousand pages asks once a minute, not
/// once a page.
final class TagWeights: Sendable {
  /// How many rows of a tag are looked at to estimate its weight.
  static let sample = 1000
  private static let lifetime: Duration = .seconds(60)
  /// The most tags remembered; with more all are forgotten, for whatever asks for so many finds little again.
  private static let capacity = 10_000

  private struct Key: Hashable {
    let hub: HubName
    let tag: String
  }

  private let known = Mutex<[Key: (weight: Int, until: ContinuousClock.Instant)]>([:])

  /// The weights of the tags; of those that are not known or no longer `estimate` gives them, asked once and for all of
  /// them in their order.
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

  /// About how many devices carry a tag of which the lowest ids, `sample` of them, reach up to that id: ids are spread
  /// evenly.
  static func estimate(sampleUpTo id: RegistrationID) -> Int {
    Int(min(Double(sample) / RegistrationSlice.whole.share(upTo: id), 1e15))
  }
}
