/// A payload for Apple devices: its bytes, and whether it is a background push.
///
/// A portable message becomes `aps` with `alert`, `badge` and `sound`; its data become siblings of `aps`. A message
/// with data only is a background push. A native payload stays as it is.
package struct APNsPayload: Sendable {
  package let body: [UInt8]
  /// Whether it wakes the app without showing anything.
  package let isBackground: Bool

  private static let limit = APNs.payloadLimit

  /// Makes the payload of a content. Throws if APNs would refuse it for every device.
  package init(_ content: Content) throws(ContentFault) {
    if case .json(let native) = content.native[.apns] {
      guard native.count <= Self.limit else { throw .tooLarge("native.apns", limit: Self.limit, of: "APNs") }
      do {
        isBackground = try Self.isBackground(native)
      } catch {
        throw ContentFault(error, in: "native.apns")
      }
      body = native
    } else if let message = content.message, !message.isEmpty {
      try Self.checkKeys(of: message)
      isBackground = message.title == nil && message.body == nil && message.badge == nil && message.sound == nil
      body = Self.body(of: message, isBackground: isBackground)
      guard body.count <= Self.limit else { throw .tooLarge("message", limit: Self.limit, of: "APNs") }
    } else {
      throw .empty("message")
    }
  }

  /// Throws for a key that would replace what the message shows.
  static func checkKeys(of message: Message) throws(ContentFault) {
    guard message.data["aps"] == nil else { throw .reserved("message.data.aps", by: "APNs") }
  }

  private static func body(of message: Message, isBackground: Bool) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(256)
    body.append(contentsOf: (isBackground ? "{\"aps\":{\"content-available\":1" : "{\"aps\":{").utf8)
    var needsComma = false
    func begin(_ key: String) {
      if needsComma { body.append(UInt8(ascii: ",")) }
      needsComma = true
      body.append(contentsOf: key.utf8)
    }
    if message.title != nil || message.body != nil {
      begin("\"alert\":{")
      if let title = message.title {
        body.append(contentsOf: "\"title\":".utf8)
        body.appendJSON(title)
      }
      if let text = message.body {
        body.append(contentsOf: (message.title == nil ? "\"body\":" : ",\"body\":").utf8)
        body.appendJSON(text)
      }
      body.append(UInt8(ascii: "}"))
    }
    if let badge = message.badge {
      begin("\"badge\":")
      body.appendJSON(badge)
    }
    if let sound = message.sound {
      begin("\"sound\":")
      body.appendJSON(sound)
    }
    body.append(UInt8(ascii: "}"))
    for (key, value) in message.sortedData {
      body.append(UInt8(ascii: ","))
      body.appendJSON(key)
      body.append(UInt8(ascii: ":"))
      body.appendJSON(value)
    }
    body.append(UInt8(ascii: "}"))
    return body
  }

  /// Whether a native payload is a background push: `content-available` is set, and there is no alert, badge or sound.
  ///
  /// Apple documents the number 1; devices read `true` and `"1"` in the same way, and `null` as nothing.
  private static func isBackground(_ payload: [UInt8]) throws(JSONError) -> Bool {
    var isContentAvailable = false
    var showsSomething = false
    var reader = try JSONReader(payload[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      guard case "aps" = key, try reader.nextKind() == .object else { return try reader.skipValue() }
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "content-available": isContentAvailable = try isSet(&reader)
        case "alert", "badge", "sound":
          if try reader.nextKind() != .null { showsSomething = true }
          try reader.skipValue()
        default: try reader.skipValue()
        }
      }
    }
    try reader.finish()
    return isContentAvailable && !showsSomething
  }

  private static func isSet(_ reader: inout JSONReader) throws(JSONError) -> Bool {
    switch try reader.nextKind() {
    case .boolean: return try reader.readBoolean()
    case .string: return try ["1", "true"].contains(reader.readString())
    case .number: return Double(String(decoding: try reader.readRaw(), as: UTF8.self)) == 1
    case .null, .object, .array:
      try reader.skipValue()
      return false
    }
  }
}

/// The header fields of a push for Apple devices that depend on the send.
package struct APNsFields: Sendable {
  /// The push types that are sent. Others have topics or credentials of their own.
  package enum PushType: String, CaseIterable, Sendable { case alert, background }

  /// The values of `apns-priority`: at once, when it suits the device, and when nothing else needs the battery.
  package enum Urgency: String, CaseIterable, Sendable {
    case now = "10"
    case convenient = "5"
    case low = "1"
  }

  /// The most bytes of `apns-collapse-id`.
  package static let maximumCollapseLength = 64

  /// The caller's; nil: by the payload.
  package let pushType: PushType?
  /// The caller's; nil: by the send's priority.
  package let urgency: Urgency?
  /// The caller's `apns-expiration`; nil: the push's expiry.
  package let keptUntil: UnixTime?
  /// The caller's `apns-collapse-id`, or else the send's collapse key.
  package let collapseID: String?

  /// Reads the caller's header fields. Throws if APNs would refuse one.
  package init(_ headers: [String: String], collapseKey: String?) throws(ContentFault) {
    pushType = try headers["apns-push-type"].map { (text) throws(ContentFault) in
      guard let type = PushType(rawValue: text) else {
        throw .badHeader("apns-push-type", "must be alert or background; other types are not supported")
      }
      return type
    }
    urgency = try headers["apns-priority"].map { (text) throws(ContentFault) in
      guard let urgency = Urgency(rawValue: text) else { throw .badHeader("apns-priority", "must be 10, 5 or 1") }
      return urgency
    }
    keptUntil = try headers["apns-expiration"].map { (text) throws(ContentFault) in
      guard let moment = Self.expiration(text) ?? UnixTime(text), moment.milliseconds >= 0 else {
        throw .badHeader("apns-expiration", "must be seconds since 1970 or an RFC 3339 date-time")
      }
      return moment
    }
    let own = headers["apns-collapse-id"]
    guard let key = own ?? collapseKey, !key.isEmpty else {
      collapseID = nil
      return
    }
    guard Self.isCollapseID(key) else {
      throw ContentFault(
        own == nil ? "collapseKey" : "native.headers.apns-collapse-id", Self.collapseRule, .badCollapseID)
    }
    collapseID = key
  }

  static let collapseRule = "must have 1 to \(maximumCollapseLength) bytes and no control characters for APNs"

  /// Whether the text can be an `apns-collapse-id`.
  package static func isCollapseID(_ text: String) -> Bool {
    text.utf8.count <= maximumCollapseLength && PushHeader.isTransmissible(text)
  }

  /// The moment of an `apns-expiration` in seconds since 1970 (0: APNs does not keep the push).
  static func expiration(_ text: String) -> UnixTime? {
    UInt32(text).map { UnixTime(milliseconds: Int64($0) * 1000) }
  }
}
