/// A set of platforms in one byte.
package struct PlatformSet: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The set of one.
  package init(_ platform: Platform) {
    rawValue =
      switch platform {
      case .apns: 1
      case .fcm: 2
      case .wns: 4
      }
  }

  /// Every platform there is.
  package static let all = Platform.allCases.reduce(into: PlatformSet()) { $0.formUnion(PlatformSet($1)) }

  /// Whether the platform is in the set.
  package func contains(_ platform: Platform) -> Bool { contains(PlatformSet(platform)) }

  /// The members in a fixed order.
  package var platforms: [Platform] { Platform.allCases.filter(contains) }
}
