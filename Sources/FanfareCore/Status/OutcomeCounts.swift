/// How many devices ended how, by platform: all that is kept of devices that are not listed one by one. A pure value.
package struct OutcomeCounts: Hashable, Sendable {
  /// One of the ways a device can end.
  package struct Kind: Hashable, Sendable {
    package let platform: Platform
    package let outcome: DeviceResult.Outcome

    package init(_ platform: Platform, _ outcome: DeviceResult.Outcome) {
      self.platform = platform
      self.outcome = outcome
    }

    /// The kind's place among all kinds, in the order in which counts are written.
    fileprivate var ordinal: Int {
      let platforms = Platform.allCases
      let outcomes = DeviceResult.Outcome.allCases
      return (platforms.firstIndex(of: platform) ?? 0) * outcomes.count + (outcomes.firstIndex(of: outcome) ?? 0)
    }
  }

  /// The kinds that were counted, each once, in a fixed order, and how many of each; none is 0.
  package private(set) var entries: [(kind: Kind, count: Int)] = []

  /// Nothing is counted yet.
  package init() {}

  /// Counts the devices.
  package init(_ devices: some Sequence<DeviceResult>) {
    for device in devices { add(1, to: Kind(device.platform, device.outcome)) }
  }

  /// Whether nothing was counted.
  package var isEmpty: Bool { entries.isEmpty }

  /// How many devices were counted.
  package var total: Int { entries.reduce(0) { $0 + $1.count } }

  /// How many devices ended so.
  package subscript(_ platform: Platform, _ outcome: DeviceResult.Outcome) -> Int {
    entries.first { $0.kind == Kind(platform, outcome) }?.count ?? 0
  }

  /// How many devices ended so, whatever their platform.
  package subscript(_ outcome: DeviceResult.Outcome) -> Int {
    entries.reduce(0) { $0 + ($1.kind.outcome == outcome ? $1.count : 0) }
  }

  /// Counts more of a kind. A linear search: there are eighteen kinds, and a send seldom has more than two.
  package mutating func add(_ count: Int, to kind: Kind) {
    guard count > 0 else { return }
    if let index = entries.firstIndex(where: { $0.kind == kind }) {
      entries[index].count += count
    } else {
      let index = entries.firstIndex { $0.kind.ordinal > kind.ordinal } ?? entries.endIndex
      entries.insert((kind, count), at: index)
    }
  }

  /// Forgets what was counted of these kinds.
  mutating func forget(_ isMeant: (Kind) -> Bool) {
    entries.removeAll { isMeant($0.kind) }
  }

  /// Counts what the other has counted.
  package mutating func add(_ other: OutcomeCounts) {
    for (kind, count) in other.entries { add(count, to: kind) }
  }

  /// The numbers by platform and outcome.
  package var byPlatform: [Platform: [DeviceResult.Outcome: Int]] {
    entries.reduce(into: [:]) { $0[$1.kind.platform, default: [:]][$1.kind.outcome] = $1.count }
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.entries.elementsEqual(right.entries) { $0.kind == $1.kind && $0.count == $1.count }
  }

  package func hash(into hasher: inout Hasher) {
    for (kind, count) in entries {
      hasher.combine(kind)
      hasher.combine(count)
    }
  }
}
