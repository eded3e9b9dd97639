package import FanfareCore

/// Renders a send for FCM: the body of `messages:send` without the parts of each device, which `FCMBody` adds.
///
/// A native payload is a v1 `message` without a target, or a legacy GCM body, which is mapped to v1. Where it does not
/// set priority or collapse key, those of the send are added; its own values win. FCM has no common field for the time
/// to live, so it is set for Android, Apple devices and browsers separately, and is nowhere longer than the send's.
package enum FCMRenderer {
  /// See `PushSender.render(_:)`.
  package static func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    do throws(ContentFault) {
      guard case .json(let native) = send.content.native[.fcm] else {
        return render(try FCMPayload.message(of: send.content), for: send)
      }
      return switch try FCMPayload(native) {
      case .current(let message): render(message, for: send)
      case .legacy(let message): render(message, for: send)
      }
    } catch {
      throw error.outcome
    }
  }

  /// The send's collapse key; nil without one.
  static func collapseKey(of send: SendRequest) -> String? { send.collapseKey.flatMap { $0.isEmpty ? nil : $0 } }

  /// The send's collapse key for Apple devices. One that cannot be a header field counts for others only.
  static func collapseID(of send: SendRequest) -> String? {
    collapseKey(of: send).flatMap { APNsFields.isCollapseID($0) ? $0 : nil }
  }
}

// MARK: - Portable messages

extension FCMRenderer {
  /// The largest `notification_count`, an int32.
  private static let maximumCount = Int(Int32.max)

  /// Renders a portable message: `notification` if there is a title or a text, `data`, the rest under `android` and
  /// `apns`, and the time to live for every kind of device.
  private static func render(_ message: Message, for send: SendRequest) -> RenderedPush {
    let hasText = message.title != nil || message.body != nil
    var writer = FCMMessageWriter()
    if hasText {
      writer.append("notification") { writer in
        writer.append("title", message.title)
        writer.append("body", message.body)
      }
    }
    return writer.finish(data: message.sortedData.map { ($0.key, FCMPayload.json($0.value)) }) { writer in
      appendApple(
        showsNothing: !hasText && message.badge == nil && message.sound == nil, of: message, send, to: &writer)
      appendWebTimeToLive(to: &writer)
      writer.append("android") { writer in
        writer.append("ttl", mark: .timeToLive, unit: "s")
        appendCommon(of: send, to: &writer)
        // Android would show a notification without a text as an empty one. It has no way to set a count to 0: FCM
        // reads that as unset, which adds one.
        let count = message.badge.flatMap { $0 > 0 ? Int64(min($0, maximumCount)) : nil }
        let tag = collapseKey(of: send)
        guard hasText, count != nil || message.sound != nil || tag != nil else { return }
        writer.append("notification") { writer in
          writer.append("tag", tag)
          if let count { writer.append("notification_count", number: count) }
          writer.append("sound", message.sound)
        }
      }
    }
  }

  /// Appends `apns` with the push's expiry; FCM's default would be 30 days (its reference of `ApnsConfig`). Badge and
  /// sound belong here, because FCM's `notification` has no fields for them.
  private static func appendApple(
    showsNothing: Bool, of message: Message? = nil, _ send: SendRequest, to writer: inout FCMMessageWriter
  ) {
    writer.append("apns") { writer in
      writer.append("headers") { writer in
        if showsNothing {
          appendBackgroundHeaders(to: &writer)
        } else if send.priority == .normal {
          writer.append("apns-priority", APNsFields.Urgency.convenient.rawValue)
        }
        writer.append("apns-expiration", mark: .expiry)
        writer.append("apns-collapse-id", collapseID(of: send))
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

  /// Appends the send's priority and collapse key.
  private static func appendCommon(of send: SendRequest, to writer: inout FCMMessageWriter) {
    writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL")
    writer.append("collapse_key", collapseKey(of: send))
  }
}

// MARK: - Native messages

extension FCMRenderer {
  /// Renders a v1 message: its members unchanged, the push's id in every `data` that overrides the message's, the
  /// send's values where a part sets none, and the time to live in every part.
  private static func render(_ message: NativeFCMMessage, for send: SendRequest) -> RenderedPush {
    var writer = FCMMessageWriter()
    writer.append(message.members)
    return writer.finish(data: message.data, isUniform: !message.speaksToOneKind) { writer in
      if let part = message.apns {
        writer.append("apns") { append(apple: part, of: send, to: &$0) }
      } else {
        appendApple(showsNothing: !message.hasNotification, send, to: &writer)
      }
      writer.append("webpush") { append(web: message.webPush ?? .init(), of: send, to: &$0) }
      if let part = message.androidV2 {
        writer.append("android_v2") { append(android: part, of: message, send, isV2: true, to: &$0) }
      } else {
        writer.append("android") { append(android: message.android ?? .init(), of: message, send, to: &$0) }
      }
    }
  }

  private static func append(
    apple part: NativeFCMMessage.Part, of send: SendRequest, to writer: inout FCMMessageWriter
  ) {
    writer.append("headers") { writer in
      writer.append(part.headers)
      if send.priority == .normal, !part.hasHeader("apns-priority") {
        writer.append("apns-priority", APNsFields.Urgency.convenient.rawValue)
      }
      writer.append("apns-expiration", mark: .expiry, until: part.keptUntil)
      if !part.hasHeader("apns-collapse-id") { writer.append("apns-collapse-id", collapseID(of: send)) }
    }
    writer.append(part.members)
  }

  private static func append(
    web part: NativeFCMMessage.Part, of send: SendRequest, to writer: inout FCMMessageWriter
  ) {
    writer.append("headers") { writer in
      writer.append(part.headers)
      writer.append("TTL", mark: .timeToLive, until: part.end(of: send))
    }
    writer.append(part.members)
    append(data: part, to: &writer)
  }

  private static func append(
    android part: NativeFCMMessage.Part, of message: NativeFCMMessage, _ send: SendRequest, isV2: Bool = false,
    to writer: inout FCMMessageWriter
  ) {
    writer.append("ttl", mark: .timeToLive, until: part.end(of: send), unit: "s")
    writer.append(part.members)
    // A tag alone would make a notification of a message that has none.
    let isShown = part.notification?.isEmpty == false || message.hasNotification && !isV2
    let tag = isShown && !part.shows("tag") ? collapseKey(of: send) : nil
    func appendNotification(to writer: inout FCMMessageWriter) {
      guard part.notification != nil || tag != nil else { return }
      writer.append("notification") { writer in
        writer.append(part.notification ?? [])
        writer.append("tag", tag)
      }
    }
    if let remote = part.remote {
      writer.append("remote_notification") { writer in
        writer.append(remote)
        appendNotification(to: &writer)
      }
    } else {
      appendNotification(to: &writer)
    }
    append(data: part, to: &writer)
    if !isV2, !part.says("priority") { writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL") }
    if !part.says("collapse_key", "collapseKey") { writer.append("collapse_key", collapseKey(of: send)) }
  }

  private static func append(data part: NativeFCMMessage.Part, to writer: inout FCMMessageWriter) {
    guard !part.data.isEmpty else { return }
    writer.append("data") { writer in
      writer.append(part.data)
      writer.append(FCMPayload.idKey, raw: [FCMBody.Mark.id.rawValue])
    }
  }
}

extension NativeFCMMessage.Part {
  /// The end of its own time to live, which counts from the acceptance of the send.
  fileprivate func end(of send: SendRequest) -> UnixTime? { timeToLive.map { send.acceptedAt + .seconds($0) } }
}
