/// The number of devices that did not get the push, per platform, outcome and reason.
///
/// At most `maximumKinds`: with so many reasons the devices of further ones have the reason `other`.
package struct FailureCounts: Hashable, Sendable {
  /// A platform, an outcome, and the push service's reason.
  package struct Kind: Hashable, Sendable {
    package let platform: Platform
    package let outcome: DeviceResult.Outcome
    package let reason: String

    package init(_ platform: Platform, _ outcome: DeviceResult.Outcome, reason: String) {
      (self.platform, self.outcome, self.reason) = (platform, outcome, reason)
    }
  }

  package static let maximumKinds = 40
  package static let otherReason = "other"

  private var counts: [Kind: Int] = [:]

  package init() {}

  package init(_ devices: some Sequence<DeviceResult>) {
    for device in devices where device.outcome != .delivered {
      add(1, to: Kind(device.platform, device.outcome, reason: device.reason))
    }
  }

  package var isEmpty: Bool { counts.isEmpty }

  /// The kinds, the most frequent first.
  package var entries: [(kind: Kind, count: Int)] {
    counts.map { (kind: $0.key, count: $0.value) }.sorted {
      ($1.count, $0.kind.platform.name, $0.kind.outcome.rawValue, $0.kind.reason)
        < ($0.count, $1.kind.platform.name, $1.kind.outcome.rawValue, $1.kind.reason)
    }
  }

  package mutating func add(_ count: Int, to kind: Kind) {
    guard count > 0 else { return }
    let isKnown = counts[kind] != nil || counts.count < Self.maximumKinds
    counts[isKnown ? kind : Kind(kind.platform, kind.outcome, reason: Self.otherReason), default: 0].addClamped(count)
  }

  package mutating func add(_ other: FailureCounts) {
    for (kind, count) in other.counts { add(count, to: kind) }
  }
}
