/// A native payload for FCM: a v1 `message` without a target, or a body of the legacy GCM and FCM HTTP API.
package enum FCMPayload: Sendable {
  case current(NativeFCMMessage)
  case legacy(LegacyMessage)

  /// The member of `data` that holds the push's id.
  package static let idKey = "pushId"
  /// The most bytes of keys and values together, without the push's id: its key and a UUID.
  package static let limit = FCM.payloadLimit - idKey.utf8.count - 36
  /// The most bytes of the JSON of a native payload. With every character escaped, and with parts for Apple devices and
  /// browsers, none that FCM takes is longer.
  package static let jsonLimit = 65_536
  /// The longest time to live that FCM allows, in seconds: four weeks.
  package static let maximumTimeToLive: Int64 = 2_419_200

  /// Reads a native payload. Throws if FCM would refuse it for every device.
  ///
  /// A whole v1 request `{"message":{…}}` is read as its message. It may have nothing else: with `validate_only`, for
  /// example, FCM sends nothing.
  package init(_ json: [UInt8]) throws(ContentFault) {
    guard json.count <= Self.jsonLimit else { throw .tooLarge("native.fcm", limit: Self.jsonLimit, of: "FCM") }
    let form: Form
    do throws(JSONError) { form = try Form(json[...]) } catch { throw ContentFault(error, in: "native.fcm") }
    let (field, message) = form.message.map { ("native.fcm.message", $0) } ?? ("native.fcm", json[...])
    do throws(JSONError) {
      var isLegacy = form.isLegacy
      if form.message != nil { isLegacy = try Form(message).isLegacy }
      self = isLegacy ? .legacy(try LegacyMessage(message)) : .current(try NativeFCMMessage(message))
    } catch {
      throw ContentFault(error, in: field)
    }
    switch self {
    case .current(let message): try message.check()
    case .legacy(let message): try message.check()
    }
  }

  /// The portable message of a content, which becomes `notification` and `data`. Throws if FCM would refuse it for
  /// every device.
  package static func message(of content: Content) throws(ContentFault) -> Message {
    guard let message = content.message, !message.isEmpty else { throw .empty("message") }
    try checkKeys(of: message)
    var size = 0
    if let title = message.title { size += "title".utf8.count + title.utf8.count }
    if let body = message.body { size += "body".utf8.count + body.utf8.count }
    for (key, value) in message.data { size += key.utf8.count + value.utf8.count }
    guard size <= limit else { throw .tooLarge("message", limit: limit, of: "FCM, keys counted") }
    return message
  }

  /// Throws if FCM reserves a key of the data.
  static func checkKeys(of message: Message) throws(ContentFault) {
    for key in message.data.keys where isReserved(key) { throw .reserved("message.data.\(key)", by: "FCM") }
  }

  /// Whether FCM reserves the key, or Fanfare uses it for the push's id.
  static func isReserved(_ key: String) -> Bool {
    key.isEmpty || key == idKey || key == "from" || key == "message_type" || key.hasPrefix("google.")
      || key.hasPrefix("gcm.notification.")
  }

  /// The whole seconds of a protobuf duration (`3600s`, `3.5s`), within FCM's limit; nil for any other text.
  static func seconds(ofDuration text: String) -> Int64? {
    guard text.utf8.last == UInt8(ascii: "s") else { return nil }
    let parts = text.utf8.dropLast().split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(\.isDigit) }) else {
      return nil
    }
    return seconds(Substring(parts[0]))
  }

  /// A number of seconds within FCM's limit; nil for any other text.
  static func seconds(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
    return min(Int64(text) ?? maximumTimeToLive, maximumTimeToLive)
  }
}

extension FCMPayload {
  /// The form of a native payload.
  struct Form {
    /// Whether it has a member that only the legacy form has, or uses `data` or `notification` in a way that v1 does
    /// not (values other than strings, presentation in `notification`).
    let isLegacy: Bool
    /// The message, if it is a whole v1 request.
    let message: ArraySlice<UInt8>?

    /// Throws if it is no JSON object, or has something beside the message of a request.
    init(_ json: ArraySlice<UInt8>) throws(JSONError) {
      var (hasLegacyMember, hasCurrentMember, hasLegacyValue) = (false, false, false)
      var members = 0
      var message: ArraySlice<UInt8>?
      var reader = try JSONReader(json)
      try reader.readObject { (key, reader) throws(JSONError) in
        if try reader.nextKind() == .null { return try reader.skipValue() }
        members += 1
        switch key.text {
        case "message":
          guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
          message = try reader.readRaw()
        case "to", "registration_ids", "collapse_key", "time_to_live", "priority", "delay_while_idle",
          "content_available", "mutable_content", "restricted_package_name", "dry_run", "message_id",
          "delivery_receipt_requested":
          hasLegacyMember = true
          try reader.skipValue()
        case "android", "android_v2", "androidV2", "apns", "webpush", "fcm_options", "fcmOptions":
          hasCurrentMember = true
          try reader.skipValue()
        case "data" where try reader.nextKind() == .object:
          try reader.readObject { (_, reader) throws(JSONError) in
            if try reader.nextKind() != .string { hasLegacyValue = true }
            try reader.skipValue()
          }
        case "notification" where try reader.nextKind() == .object:
          try reader.readObject { (key, reader) throws(JSONError) in
            if !["title", "body", "image"].contains(key.text) { hasLegacyValue = true }
            try reader.skipValue()
          }
        default: try reader.skipValue()
        }
      }
      try reader.finish()
      guard message == nil || members == 1 else {
        throw JSONError(field: "", problem: "must have nothing beside message")
      }
      self.message = message
      isLegacy = !hasCurrentMember && (hasLegacyMember || hasLegacyValue)
    }
  }

  /// The JSON of a text.
  package static func json(_ text: String) -> ArraySlice<UInt8> {
    var json: [UInt8] = []
    json.reserveCapacity(text.utf8.count + 2)
    json.appendJSON(text)
    return json[...]
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }
}
