/// A push service.
package enum Platform: String, CaseIterable, Sendable, CustomStringConvertible {
  /// Apple Push Notification service.
  case apns
  /// Firebase Cloud Messaging; older apps call it GCM.
  case fcm
  /// Windows Push Notification Services.
  case wns

  /// Parses a name in any letter case; `gcm` is `fcm`. Nil for anything else.
  package init?(name: String) {
    switch name.lowercased() {
    case "gcm": self = .fcm
    case let name: self.init(rawValue: name)
    }
  }

  package var description: String { rawValue }

  /// The most bytes in a payload, as documented by the services.
  package var payloadLimit: Int {
    switch self {
    case .apns, .fcm: 4096
    case .wns: 5000
    }
  }
}

/// A set of platforms in one byte.
package struct PlatformSet: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The set with one platform.
  package init(_ platform: Platform) {
    rawValue =
      switch platform {
      case .apns: 1
      case .fcm: 2
      case .wns: 4
      }
  }

  /// All platforms.
  package static let all = Platform.allCases.reduce(into: PlatformSet()) { $0.formUnion(PlatformSet($1)) }

  package func contains(_ platform: Platform) -> Bool { contains(PlatformSet(platform)) }

  /// The platforms in a fixed order.
  package var platforms: [Platform] { Platform.allCases.filter(contains) }
}
