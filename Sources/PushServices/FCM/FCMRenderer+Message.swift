import FanfareCore

extension FCMRenderer {
  /// The most that fits `notification_count`, an int32.
  private static let maximumCount = Int(Int32.max)

  /// Renders a portable message: `notification` where there is a title or a text, `data`, the rest under `android` and
  /// `apns`, and for every kind of device how long it lives.
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

  /// Appends `apns` with the moment when the push's life ends, in seconds since 1970. FCM would say 30 days by itself
  /// (its reference of `ApnsConfig`). Badge and sound are said there: FCM's `notification` has no word for them.
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

  /// Appends the headers of a push that shows nothing. With `content-available`, they are the only form in which Apple
  /// takes one; of another FCM says that the device's token is no token.
  static func appendBackgroundHeaders(to writer: inout FCMMessageWriter) {
    writer.append("apns-priority", "5")
    writer.append("apns-push-type", "background")
  }

  /// Appends `webpush` with the seconds that the push still has (RFC 8030 section 5.2), none after `end`. FCM would say
  /// four weeks by itself.
  static func appendWebTimeToLive(until end: UnixTime? = nil, to writer: inout FCMMessageWriter) {
    writer.append("webpush") { writer in
      writer.append("headers") { $0.append("TTL", mark: .timeToLive, until: end) }
    }
  }

  /// A string as JSON.
  static func json(_ text: String) -> ArraySlice<UInt8> {
    var json: [UInt8] = []
    json.reserveCapacity(text.utf8.count + 2)
    json.appendJSON(text)
    return json[...]
  }

  /// Appends priority and collapse key as the send has them.
  static func appendCommon(of send: SendRequest, to writer: inout FCMMessageWriter) {
    writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL")
    if let key = send.collapseKey, !key.isEmpty { writer.append("collapse_key", key) }
  }
}
