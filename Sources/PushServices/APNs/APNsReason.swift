import FanfareCore

/// The reasons that APNs gives, in its own spelling ("Handling notification responses from APNs").
enum APNsReason: String, CaseIterable, Sendable {
  case badCollapseID = "BadCollapseId"
  case badDeviceToken = "BadDeviceToken"
  case badExpirationDate = "BadExpirationDate"
  case badMessageID = "BadMessageId"
  case badPriority = "BadPriority"
  case badTopic = "BadTopic"
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  case duplicateHeaders = "DuplicateHeaders"
  case idleTimeout = "IdleTimeout"
  case invalidPushType = "InvalidPushType"
  case missingDeviceToken = "MissingDeviceToken"
  case missingTopic = "MissingTopic"
  case payloadEmpty = "PayloadEmpty"
  case topicDisallowed = "TopicDisallowed"
  case badCertificate = "BadCertificate"
  case badCertificateEnvironment = "BadCertificateEnvironment"
  case expiredProviderToken = "ExpiredProviderToken"
  case forbidden = "Forbidden"
  case invalidProviderToken = "InvalidProviderToken"
  case missingProviderToken = "MissingProviderToken"
  case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
  case badEnvironmentKeyIDInToken = "BadEnvironmentKeyIdInToken"
  /// A second spelling of the one above, seen in the field.
  case badEnvironmentKeyInToken = "BadEnvironmentKeyInToken"
  case badPath = "BadPath"
  case methodNotAllowed = "MethodNotAllowed"
  case unregistered = "Unregistered"
  case expiredToken = "ExpiredToken"
  case payloadTooLarge = "PayloadTooLarge"
  case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
  case tooManyRequests = "TooManyRequests"
  case internalServerError = "InternalServerError"
  case serviceUnavailable = "ServiceUnavailable"
  case shutdown = "Shutdown"

  /// What the reason means for the push.
  ///
  /// `BadDeviceToken` may also be a token of the other environment, which one push cannot tell: the worker's guard
  /// against mass removal does. `UnrelatedKeyIdInToken` needs another connection and nothing else.
  /// `DeviceTokenNotForTopic` does not condemn the token, which is good for the app that it belongs to.
  var verdict: PushOutcome.Verdict {
    switch self {
    case .badDeviceToken, .unregistered, .expiredToken: .deviceGone
    case .badCollapseID, .deviceTokenNotForTopic, .payloadEmpty, .payloadTooLarge: .rejected
    case .badExpirationDate, .badMessageID, .badPriority, .duplicateHeaders, .invalidPushType, .missingDeviceToken,
      .badPath,
      .methodNotAllowed:
      .malformed
    case .badTopic, .missingTopic, .topicDisallowed, .badCertificate, .badCertificateEnvironment, .forbidden,
      .invalidProviderToken, .missingProviderToken, .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
      .configurationError
    case .expiredProviderToken: .reauthenticate
    case .idleTimeout, .unrelatedKeyIDInToken: .retryHere
    case .tooManyProviderTokenUpdates, .tooManyRequests, .internalServerError, .serviceUnavailable, .shutdown:
      .retryLater
    }
  }
}
