import FanfareCore
import Synchronization

/// About how many devices carry a tag, remembered for a while: a broadcast of a thousand pages asks once a minute, not once a page.
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

  /// The weight of the tag, from `estimate` when it is not known or no longer.
  func weight(of tag: String, hub: HubName, estimate: () throws -> Int) rethrows -> Int {
    let (key, now) = (Key(hub: hub, tag: tag), ContinuousClock.now)
    if let entry = known.withLock({ $0[key] }), entry.until > now { return entry.weight }
    let weight = try estimate()
    known.withLock { known in
      if known.count >= Self.capacity { known.removeAll(keepingCapacity: true) }
      known[key] = (weight, now + Self.lifetime)
    }
    return weight
  }

  /// About how many devices carry a tag of which the lowest ids, `sample` of them, reach up to that id: ids are spread evenly.
  static func estimate(sampleUpTo id: RegistrationID) -> Int {
    Int(min(Double(sample) / RegistrationSlice.whole.share(upTo: id), 1e15))
  }
}
