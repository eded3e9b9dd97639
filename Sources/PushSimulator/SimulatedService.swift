package import FanfareCore

/// A service that the simulator plays; faults and counts are per service.
package enum SimulatedService: String, CaseIterable, Sendable, Codable {
  /// Apple Push Notification service.
  case apns
  /// Firebase Cloud Messaging.
  case fcm
  /// Windows Push Notification Services.
  case wns
  /// Google's OAuth 2 token endpoint.
  case googleToken = "google-token"
  /// Microsoft's two OAuth 2 token endpoints.
  case microsoftToken = "microsoft-token"

  /// The platform of the service; nil for a token endpoint.
  package var platform: Platform? {
    switch self {
    case .apns: .apns
    case .fcm: .fcm
    case .wns: .wns
    case .googleToken, .microsoftToken: nil
    }
  }

  /// The service of a platform.
  package init(_ platform: Platform) {
    switch platform {
    case .apns: self = .apns
    case .fcm: self = .fcm
    case .wns: self = .wns
    }
  }
}
