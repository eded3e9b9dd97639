/// A push service that devices are reached through.
package enum Platform: String, CaseIterable, Sendable, CustomStringConvertible {
  /// Apple Push Notification service.
  case apns
  /// Firebase Cloud Messaging; older apps call it GCM.
  case fcm
  /// Windows Push Notification Services.
  case wns

  /// Reads a name in any letter case; `gcm` is `fcm`. Nil for anything else.
  package init?(name: String) {
    switch name.lowercased() {
    case "gcm": self = .fcm
    case let name: self.init(rawValue: name)
    }
  }

  package var description: String { rawValue }

  /// The most bytes one payload may have, as the services document it.
  package var payloadLimit: Int {
    switch self {
    case .apns, .fcm: 4096
    case .wns: 5000
    }
  }
}
