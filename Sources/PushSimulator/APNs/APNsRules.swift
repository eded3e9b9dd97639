import FanfareCore

/// The rules of APNs for header fields and payloads.
struct APNsRules: Sendable {
  /// The allowed topics by push type, prepared so that a check builds no strings.
  private let topics: [APNsPushType: [String]]
  private let bundleIDs: [String]

  init(bundleIDs: [String]) {
    self.bundleIDs = bundleIDs
    topics = Dictionary(
      uniqueKeysWithValues: APNsPushType.allCases.map { type in (type, bundleIDs.map { $0 + type.topicSuffix }) })
  }

  /// Why the push is refused; nil if it is valid. `refusal(ofDeviceToken:)` checks the device token.
  func refusal(of request: APNsRequest) -> APNsReason? {
    if request.hasDuplicates { return .duplicateHeaders }
    // Only the canonical lower-case form, as in Apple's examples.
    if let id = request.id, !Self.isCanonicalUUID(id) { return .badMessageID }
    guard let topic = request.topic, !topic.isEmpty else { return .missingTopic }
    var type = APNsPushType.alert
    if let name = request.pushType {
      guard let known = APNsPushType(rawValue: name) else { return .invalidPushType }
      type = known
    }
    if let reason = refusal(ofTopic: topic, type: type, isTyped: request.pushType != nil) { return reason }
    if let reason = refusal(ofPriority: request.priority, type: type) { return reason }
    if let expiration = request.expiration, !Self.isUnixTime(expiration) { return .badExpirationDate }
    if let collapseID = request.collapseID, collapseID.isEmpty || collapseID.utf8.count > 64 { return .badCollapseID }
    return refusal(ofPayload: request.body, type: type)
  }

  /// Why the text is no device token: an even number of 2…400 hexadecimal digits.
  func refusal(ofDeviceToken token: String) -> APNsReason? {
    if token.isEmpty { return .missingDeviceToken }
    let length = token.utf8.count
    return length % 2 == 0 && length <= 400 && token.utf8.allSatisfy { Hexadecimal.value(of: $0) != nil }
      ? nil : .badDeviceToken
  }

  private func refusal(ofTopic topic: String, type: APNsPushType, isTyped: Bool) -> APNsReason? {
    // An MDM topic belongs to the push certificate, not to an app; Apple gives all of them this prefix.
    if type == .mdm { return topic.hasPrefix("com.apple.mgmt.") ? nil : .badTopic }
    if topics[type]?.contains(topic) == true { return nil }
    let belongs = bundleIDs.contains { topic == $0 || topic.hasPrefix($0 + ".") }
    guard belongs else { return .topicDisallowed }
    // Without a push type, the topic alone gives the type.
    return !isTyped && topics.values.contains { $0.contains(topic) } ? nil : .badTopic
  }

  private func refusal(ofPriority priority: String?, type: APNsPushType) -> APNsReason? {
    switch priority {
    case "5": nil
    // Apple on background pushes: "Always use priority 5. Using priority 10 is an error." A missing priority means 10.
    case nil, "10": type == .background ? .badPriority : nil
    case "1": type == .background ? .badPriority : nil
    default: .badPriority
    }
  }

  private func refusal(ofPayload body: [UInt8], type: APNsPushType) -> APNsReason? {
    guard !body.isEmpty else { return .payloadEmpty }
    guard body.count <= type.payloadLimit else { return .payloadTooLarge }
    do {
      var reader = try JSONReader(body[...])
      let isBackground = try Self.readsAsBackground(&reader)
      try reader.finish()
      return type == .background && !isBackground ? .invalidPushType : nil
    } catch {
      // Apple has no reason for a body that is no JSON dictionary.
      return .payloadEmpty
    }
  }

  /// Whether the payload is a background push: `content-available` is 1, and there is no alert, badge or sound. For a
  /// mismatch with the push type Apple documents an error, a delay or a silent loss; here it is an error.
  private static func readsAsBackground(_ reader: inout JSONReader) throws(JSONError) -> Bool {
    var isAvailable = false
    var showsSomething = false
    try reader.readObject { (key, reader) throws(JSONError) in
      guard case "aps" = key, try reader.nextKind() == .object else { return try reader.skipValue() }
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        // Devices read `true` and `"1"` as the documented 1, and null as nothing.
        case "content-available":
          let value = String(decoding: try reader.readRaw(), as: UTF8.self)
          isAvailable = ["1", "true", "\"1\"", "\"true\""].contains(value) || Double(value) == 1
        case "alert", "badge", "sound":
          if try reader.nextKind() != .null { showsSomething = true }
          try reader.skipValue()
        default: try reader.skipValue()
        }
      }
    }
    return isAvailable && !showsSomething
  }

  private static func isCanonicalUUID(_ text: String) -> Bool {
    var count = 0
    for byte in text.utf8 {
      switch count {
      case 8, 13, 18, 23: guard byte == UInt8(ascii: "-") else { return false }
      default: guard isDigit(byte) || (byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "f")) else { return false }
      }
      count += 1
    }
    return count == 36
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  private static func isUnixTime(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(isDigit) && Int64(text) != nil
  }
}

/// The reasons of a refusal (Apple, "Handling notification responses from APNs", table "Response error strings").
enum APNsReason: String, CaseIterable, Sendable {
  case badCollapseID = "BadCollapseId"
  case badDeviceToken = "BadDeviceToken"
  case badExpirationDate = "BadExpirationDate"
  case badMessageID = "BadMessageId"
  case badPriority = "BadPriority"
  case badTopic = "BadTopic"
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  case duplicateHeaders = "DuplicateHeaders"
  case invalidPushType = "InvalidPushType"
  case missingDeviceToken = "MissingDeviceToken"
  case missingTopic = "MissingTopic"
  case payloadEmpty = "PayloadEmpty"
  case topicDisallowed = "TopicDisallowed"
  case expiredProviderToken = "ExpiredProviderToken"
  case forbidden = "Forbidden"
  case invalidProviderToken = "InvalidProviderToken"
  case missingProviderToken = "MissingProviderToken"
  case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
  case badPath = "BadPath"
  case methodNotAllowed = "MethodNotAllowed"
  case expiredToken = "ExpiredToken"
  case unregistered = "Unregistered"
  case payloadTooLarge = "PayloadTooLarge"
  case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
  case tooManyRequests = "TooManyRequests"
  case internalServerError = "InternalServerError"
  case serviceUnavailable = "ServiceUnavailable"
  case shutdown = "Shutdown"

  var status: Int {
    switch self {
    case .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
      .deviceTokenNotForTopic,
      .duplicateHeaders, .invalidPushType, .missingDeviceToken, .missingTopic, .payloadEmpty, .topicDisallowed:
      400
    case .expiredProviderToken, .forbidden, .invalidProviderToken, .missingProviderToken, .unrelatedKeyIDInToken: 403
    case .badPath: 404
    case .methodNotAllowed: 405
    case .expiredToken, .unregistered: 410
    case .payloadTooLarge: 413
    case .tooManyProviderTokenUpdates, .tooManyRequests: 429
    case .internalServerError: 500
    case .serviceUnavailable, .shutdown: 503
    }
  }

  /// The usual reason of a status, for a fault that gives only the status.
  init(status: Int) {
    switch status {
    case 403: self = .forbidden
    case 404: self = .badPath
    case 405: self = .methodNotAllowed
    case 410: self = .unregistered
    case 413: self = .payloadTooLarge
    case 429: self = .tooManyRequests
    case 503: self = .serviceUnavailable
    case 400..<500: self = .badDeviceToken
    default: self = .internalServerError
    }
  }
}
