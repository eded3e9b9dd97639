package import FanfareCore

/// Renders a send for FCM: the body of `messages:send` without the parts of each device, which `FCMBody` adds.
///
/// A native payload is a v1 `message` without a target, or a legacy GCM body, which is mapped to v1. Where a v1 message
/// does not set priority, collapse key or time to live, those of the send are added; its own values win. FCM has no
/// common field for the time to live, so it is set for Android, Apple devices and browsers separately.
package enum FCMRenderer {
  /// The most bytes of keys and values together, without the push's id.
  static let payloadLimit = Platform.fcm.payloadLimit - FCMBody.idSize

  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    if let native = send.content.fcm { return try render(native, for: send) }
    guard let message = send.content.message, !message.isEmpty else { throw .payloadEmpty }
    return try render(message, for: send)
  }

  private static func render(_ native: [UInt8], for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    switch try parse(native) {
    case .current(let message): try render(message, for: send)
    case .legacy(let message): try render(message, for: send)
    }
  }

  private enum Native {
    case current(NativeFCMMessage)
    case legacy(LegacyMessage)
  }

  private static func parse(_ native: [UInt8]) throws(PushOutcome) -> Native {
    do {
      return try LegacyMessage.isLegacy(native) ? .legacy(LegacyMessage(native)) : .current(NativeFCMMessage(native))
    } catch {
      throw .badPayload
    }
  }

  /// Whether FCM reserves the key, or Fanfare uses it for the push's id.
  static func isReserved(_ key: String) -> Bool {
    key == FCMBody.idKey || key == "from" || key == "message_type" || key.hasPrefix("google.")
      || key.hasPrefix("gcm.notification.")
  }
}

extension FCMRenderer {
  /// The largest `notification_count`, an int32.
  private static let maximumCount = Int(Int32.max)

  /// Renders a portable message: `notification` if there is a title or a text, `data`, the rest under `android` and
  /// `apns`, and the time to live for every kind of device.
  static func render(_ message: Message, for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    var size = (message.title?.utf8.count ?? 0) + (message.body?.utf8.count ?? 0)
    var writer = FCMMessageWriter()
    if message.title != nil || message.body != nil {
      writer.append("notification") { writer in
        writer.append("title", message.title)
        writer.append("body", message.body)
      }
    }
    var data: [(key: String, value: ArraySlice<UInt8>)] = []
    for (key, value) in message.sortedData {
      guard !isReserved(key) else { throw .reservedDataKey }
      size += key.utf8.count + value.utf8.count
      data.append((key, json(value)))
    }
    guard size <= payloadLimit else { throw .payloadTooLarge }
    return writer.finish(data: data) { writer in
      let hasText = message.title != nil || message.body != nil
      appendApple(showsNothing: !hasText && message.badge == nil && message.sound == nil, of: message, to: &writer)
      appendWebTimeToLive(to: &writer)
      writer.append("android") { writer in
        writer.append("ttl", mark: .timeToLive, unit: "s")
        appendCommon(of: send, to: &writer)
        guard message.badge != nil || message.sound != nil else { return }
        writer.append("notification") { writer in
          if let badge = message.badge {
            writer.append("notification_count", number: Int64(min(max(badge, 0), maximumCount)))
          }
          writer.append("sound", message.sound)
        }
      }
    }
  }

  /// Appends `apns` with the push's expiry; FCM's default would be 30 days (its reference of `ApnsConfig`). Badge and
  /// sound belong here, because FCM's `notification` has no fields for them.
  static func appendApple(showsNothing: Bool, of message: Message? = nil, to writer: inout FCMMessageWriter) {
    writer.append("apns") { writer in
      writer.append("headers") { writer in
        if showsNothing { appendBackgroundHeaders(to: &writer) }
        writer.append("apns-expiration", mark: .expiry)
      }
      guard showsNothing || message?.badge != nil || message?.sound != nil else { return }
      writer.append("payload") { writer in
        writer.append("aps") { writer in
          if showsNothing { writer.append("content-available", number: 1) }
          if let badge = message?.badge { writer.append("badge", number: Int64(badge)) }
          writer.append("sound", message?.sound)
        }
      }
    }
  }

  /// Appends the headers of a push that shows nothing. Apple accepts such a push only with these and
  /// `content-available`; otherwise FCM reports the device's token as invalid.
  static func appendBackgroundHeaders(to writer: inout FCMMessageWriter) {
    writer.append("apns-priority", "5")
    writer.append("apns-push-type", "background")
  }

  /// Appends `webpush` with the remaining seconds (RFC 8030 §5.2), limited to `end`. FCM's default would be four weeks.
  static func appendWebTimeToLive(until end: UnixTime? = nil, to writer: inout FCMMessageWriter) {
    writer.append("webpush") { writer in
      writer.append("headers") { $0.append("TTL", mark: .timeToLive, until: end) }
    }
  }

  static func json(_ text: String) -> ArraySlice<UInt8> {
    var json: [UInt8] = []
    json.reserveCapacity(text.utf8.count + 2)
    json.appendJSON(text)
    return json[...]
  }

  /// Appends the send's priority and collapse key.
  static func appendCommon(of send: SendRequest, to writer: inout FCMMessageWriter) {
    writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL")
    if let key = send.collapseKey, !key.isEmpty { writer.append("collapse_key", key) }
  }
}

extension FCMRenderer {
  /// Renders a v1 message: its members unchanged, the push's id in every `data` that overrides the message's, the
  /// send's values where `android` sets none, and the time to live for Apple devices and browsers if it has no part for
  /// them.
  static func render(_ message: NativeFCMMessage, for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    guard !message.hasTarget else { throw .targetInPayload }
    guard !message.hasReservedDataKey else { throw .reservedDataKey }
    guard message.payloadSize <= payloadLimit else { throw .payloadTooLarge }
    guard !message.isEmpty else { throw .payloadEmpty }
    var writer = FCMMessageWriter()
    for member in message.members { writer.append(member.key, raw: member.value) }
    return writer.finish(data: message.data, isUniform: !message.speaksToOneKind) { writer in
      if !message.hasAPNs { appendApple(showsNothing: !message.hasNotification, to: &writer) }
      if let webPush = message.webPush {
        writer.append("webpush") { append(webPush, to: &$0) }
      } else {
        appendWebTimeToLive(to: &writer)
      }
      if !message.hasAndroidV2 { writer.append("android") { appendAndroid(message.android, for: send, to: &$0) } }
    }
  }

  private static func appendAndroid(
    _ android: NativeFCMMessage.Part, for send: SendRequest, to writer: inout FCMMessageWriter
  ) {
    func says(_ names: String...) -> Bool { android.members.contains { names.contains($0.key) } }
    if !says("ttl") { writer.append("ttl", mark: .timeToLive, unit: "s") }
    append(android, to: &writer)
    if !says("priority") { writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL") }
    if !says("collapse_key", "collapseKey"), let key = send.collapseKey, !key.isEmpty {
      writer.append("collapse_key", key)
    }
  }

  private static func append(_ part: NativeFCMMessage.Part, to writer: inout FCMMessageWriter) {
    for member in part.members { writer.append(member.key, raw: member.value) }
    guard !part.data.isEmpty else { return }
    writer.append("data") { writer in
      for member in part.data { writer.append(member.key, raw: member.value) }
      writer.append(FCMBody.idKey, raw: [FCMBody.Mark.id.rawValue])
    }
  }
}

/// A v1 `message` from a caller, parsed just far enough to add to it. In proto3 JSON every name has two spellings.
struct NativeFCMMessage {
  /// A member and its value, as JSON.
  typealias Member = (key: String, value: ArraySlice<UInt8>)

  /// The part for one kind of device.
  typealias Part = (members: [Member], data: [Member])

  /// The members except `data`, `android` and `webpush`.
  private(set) var members: [Member] = []
  /// The members of `data`.
  private(set) var data: [Member] = []
  /// `android`: its members except `data`, and the members of its `data`, which replace the message's unless there are
  /// none.
  private(set) var android: Part = ([], [])
  /// `webpush` in the same form; nil if the message has none.
  private(set) var webPush: Part?
  /// Whether it names a target.
  private(set) var hasTarget = false
  /// Whether it has `android_v2`, which excludes `android`.
  private(set) var hasAndroidV2 = false
  /// Whether it has a part for Apple devices.
  private(set) var hasAPNs = false
  /// Whether it has a notification with content for all kinds of devices.
  private(set) var hasNotification = false
  private(set) var hasReservedDataKey = false
  private var notificationSize = 0
  private var largestData = 0

  /// Bytes of the keys and values of `notification` and of the largest `data`, which FCM limits.
  var payloadSize: Int { notificationSize + largestData }

  /// Whether it has a part for one kind of device, which FCM validates for that kind only.
  var speaksToOneKind: Bool {
    hasAPNs || hasAndroidV2 || webPush != nil || !(android.members + android.data).isEmpty
  }

  var isEmpty: Bool { (members + data + android.members + android.data).isEmpty && webPush == nil }

  /// Throws if it is no JSON object, or if `android`, `data`, `notification` or `webpush` has the wrong type.
  init(_ json: [UInt8]) throws(JSONError) {
    var reader = try JSONReader(json[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      // For FCM, null is the same as absent.
      if try reader.nextKind() == .null { return try reader.skipValue() }
      let name = key.text
      switch name {
      case "token", "fid", "topic", "condition":
        hasTarget = true
        try reader.skipValue()
      // If a member is given twice, both are kept: FCM decides which counts.
      case "android":
        let part = try readPart(&reader)
        android.members += part.members
        android.data += part.data
      case "webpush":
        let (former, part) = (webPush ?? ([], []), try readPart(&reader))
        webPush = (former.members + part.members, former.data + part.data)
      case "data": data += try readData(&reader)
      case "notification":
        var value = reader
        try value.readObject { (key, reader) throws(JSONError) in
          if try reader.nextKind() == .null { return try reader.skipValue() }
          hasNotification = true
          notificationSize += key.count + (try reader.readString()).utf8.count
        }
        members.append((name, try reader.readRaw()))
      default:
        switch name {
        case "android_v2", "androidV2": hasAndroidV2 = true
        case "apns": hasAPNs = true
        default: break
        }
        members.append((name, try reader.readRaw()))
      }
    }
    try reader.finish()
    if hasAndroidV2, !(android.members + android.data).isEmpty {
      throw JSONError(field: "android", problem: "excludes android_v2")
    }
  }

  private mutating func readPart(_ reader: inout JSONReader) throws(JSONError) -> Part {
    var part: Part = ([], [])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      if case "data" = key, try reader.nextKind() == .object {
        part.data += try readData(&reader)
      } else {
        part.members.append((key.text, try reader.readRaw()))
      }
    }
    return part
  }

  private mutating func readData(_ reader: inout JSONReader) throws(JSONError) -> [Member] {
    var data: [Member] = []
    var size = 0
    try reader.readObject { (key, reader) throws(JSONError) in
      let (name, text) = (key.text, try reader.readString())
      if FCMRenderer.isReserved(name) { hasReservedDataKey = true }
      size += key.count + text.utf8.count
      data.append((name, FCMRenderer.json(text)))
    }
    largestData = max(largestData, size)
    return data
  }
}
