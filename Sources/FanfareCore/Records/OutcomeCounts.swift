/// The number of devices per platform and outcome.
///
/// It stands for devices that a record does not list one by one.
package struct OutcomeCounts: Hashable, Sendable {
  /// A platform and an outcome.
  package struct Kind: Hashable, Sendable {
    package let platform: Platform
    package let outcome: DeviceResult.Outcome

    package init(_ platform: Platform, _ outcome: DeviceResult.Outcome) {
      self.platform = platform
      self.outcome = outcome
    }

    /// The kind's position in the order in which counts are written.
    fileprivate var ordinal: Int {
      let outcomes = DeviceResult.Outcome.allCases
      return platform.ordinal * outcomes.count + (outcomes.firstIndex(of: outcome) ?? 0)
    }
  }

  /// The counted kinds in a fixed order, each once; no count is 0.
  package private(set) var entries: [(kind: Kind, count: Int)] = []

  package init() {}

  package init(_ devices: some Sequence<DeviceResult>) {
    for device in devices { add(1, to: Kind(device.platform, device.outcome)) }
  }

  package var isEmpty: Bool { entries.isEmpty }

  package var total: Int { entries.lazy.map(\.count).clampedSum() }

  package subscript(_ platform: Platform, _ outcome: DeviceResult.Outcome) -> Int {
    entries.first { $0.kind == Kind(platform, outcome) }?.count ?? 0
  }

  /// The number of devices with the outcome on all platforms.
  package subscript(_ outcome: DeviceResult.Outcome) -> Int {
    entries.lazy.filter { $0.kind.outcome == outcome }.map(\.count).clampedSum()
  }

  /// Adds to the count of a kind. A linear search: of the 18 kinds a send rarely has more than two.
  package mutating func add(_ count: Int, to kind: Kind) {
    guard count > 0 else { return }
    if let index = entries.firstIndex(where: { $0.kind == kind }) {
      entries[index].count.addClamped(count)
    } else {
      let index = entries.firstIndex { $0.kind.ordinal > kind.ordinal } ?? entries.endIndex
      entries.insert((kind, count), at: index)
    }
  }

  /// Removes the counts of the kinds that match.
  mutating func remove(where matches: (Kind) -> Bool) {
    entries.removeAll { matches($0.kind) }
  }

  package mutating func add(_ other: OutcomeCounts) {
    for (kind, count) in other.entries { add(count, to: kind) }
  }

  /// The counts as dictionaries.
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
