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
