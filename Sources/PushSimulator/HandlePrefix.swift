package import FanfareCore

/// A fault by handle: a device whose handle has this prefix always gets the same answer, if nothing else is wrong with
/// the push.
///
/// APNs tokens are hexadecimal, and so are their prefixes; one random token in 6,000 has one of them.
package struct HandlePrefix: Hashable, Sendable {
  package let platform: Platform
  package let prefix: String
  package let action: Fault.Action
  /// The effect, in words.
  package let meaning: String

  package init(_ platform: Platform, _ prefix: String, _ action: Fault.Action, _ meaning: String) {
    self.platform = platform
    self.prefix = prefix
    self.action = action
    self.meaning = meaning
  }

  /// All prefixes. If one is the beginning of another, the longer one comes first.
  package static let table: [HandlePrefix] =
    SimulatedPushServices.all.flatMap { $0.prefixes } + [
      HandlePrefix(
        .apns, "dead00",
        .answer(status: 410, reason: "Unregistered", timestamp: UnixTime(milliseconds: 1_700_000_000_123)),
        "410 Unregistered since November 2023"),
      HandlePrefix(.apns, "dead", .answer(status: 410, reason: "Unregistered"), "410 Unregistered since now"),
      HandlePrefix(.apns, "0410", .answer(status: 410, reason: "ExpiredToken"), "410 ExpiredToken since now"),
      HandlePrefix(.apns, "baad", .answer(status: 400, reason: "BadDeviceToken"), "400 BadDeviceToken"),
      HandlePrefix(.apns, "0400", .answer(status: 400, reason: "DeviceTokenNotForTopic"), "400 DeviceTokenNotForTopic"),
      HandlePrefix(.apns, "0403", .answer(status: 403, reason: "ExpiredProviderToken"), "403 ExpiredProviderToken"),
      HandlePrefix(.apns, "0413", .answer(status: 413, reason: "PayloadTooLarge"), "413 PayloadTooLarge"),
      HandlePrefix(
        .apns, "0429", .answer(status: 429, reason: "TooManyRequests", retryAfter: 1),
        "429 TooManyRequests, Retry-After 1"),
      HandlePrefix(.apns, "0500", .answer(status: 500, reason: "InternalServerError"), "500 InternalServerError"),
      HandlePrefix(
        .apns, "0503", .answer(status: 503, reason: "ServiceUnavailable", retryAfter: 1),
        "503 ServiceUnavailable, Retry-After 1"),
      HandlePrefix(.apns, "deaf", .silence, "never answered"),
      HandlePrefix(.apns, "fade", .dropConnection, "connection dropped"),

      HandlePrefix(.fcm, "dead-", .answer(status: 404, reason: "UNREGISTERED"), "404 UNREGISTERED"),
      HandlePrefix(
        .fcm, "invalid-", .answer(status: 400, reason: "INVALID_ARGUMENT"),
        "400 INVALID_ARGUMENT, violation of message.token"),
      HandlePrefix(.fcm, "mismatch-", .answer(status: 403, reason: "SENDER_ID_MISMATCH"), "403 SENDER_ID_MISMATCH"),
      HandlePrefix(
        .fcm, "thirdparty-", .answer(status: 401, reason: "THIRD_PARTY_AUTH_ERROR"), "401 THIRD_PARTY_AUTH_ERROR"),
      HandlePrefix(
        .fcm, "quota-", .answer(status: 429, reason: "QUOTA_EXCEEDED", retryAfter: 1),
        "429 QUOTA_EXCEEDED, Retry-After 1"
      ),
      HandlePrefix(.fcm, "error-", .answer(status: 500, reason: "INTERNAL"), "500 INTERNAL"),
      HandlePrefix(.fcm, "gateway-", .answer(status: 502), "502 with an HTML body"),
      HandlePrefix(
        .fcm, "unavailable-", .answer(status: 503, reason: "UNAVAILABLE", retryAfter: 1),
        "503 UNAVAILABLE, Retry-After 1"
      ),
      HandlePrefix(.fcm, "silent-", .silence, "never answered"),
      HandlePrefix(.fcm, "hangup-", .dropConnection, "connection dropped"),

      HandlePrefix(.wns, "dead", .answer(status: 410), "410 Gone: the channel has expired"),
      HandlePrefix(.wns, "unknown", .answer(status: 404), "404: no such channel"),
      HandlePrefix(.wns, "foreign", .answer(status: 403), "403: the channel belongs to another app"),
      HandlePrefix(.wns, "blocked", .answer(status: 410, reason: "Domain Blocked"), "410 Domain Blocked"),
      HandlePrefix(.wns, "dropped", .answer(status: 200, reason: "dropped"), "200, X-WNS-Status: dropped"),
      HandlePrefix(
        .wns, "channelthrottled", .answer(status: 200, reason: "channelthrottled"),
        "200, X-WNS-Status: channelthrottled"),
      HandlePrefix(.wns, "throttled", .answer(status: 406, retryAfter: 1), "406, Retry-After 1"),
      HandlePrefix(.wns, "error", .answer(status: 500), "500"),
      HandlePrefix(.wns, "unavailable", .answer(status: 503, retryAfter: 1), "503, Retry-After 1"),
      HandlePrefix(.wns, "silent", .silence, "never answered"),
      HandlePrefix(.wns, "hangup", .dropConnection, "connection dropped"),
    ]

  /// The table by platform and first letter, so that nearly every handle is decided by one look.
  private static let index: [[[HandlePrefix]]] = Platform.allCases.map { platform in
    var index = [[HandlePrefix]](repeating: [], count: 256)
    for entry in table where entry.platform == platform {
      if let first = entry.prefix.utf8.first { index[Int(first)].append(entry) }
    }
    return index
  }

  /// The fault of a handle, if it has one.
  static func action(for handle: String, platform: Platform) -> Fault.Action? {
    guard let first = handle.utf8.first else { return nil }
    return index[platform.ordinal][Int(first)].first { handle.hasPrefix($0.prefix) }?.action
  }
}
