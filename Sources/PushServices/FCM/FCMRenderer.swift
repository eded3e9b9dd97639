package import FanfareCore

/// Renders what a send shows on devices reached through FCM: the body of `messages:send`, without what differs
/// from device to device, which `FCMBody` puts in per push.
///
/// A native payload is the v1 `message` without a target, or a legacy GCM body, which is mapped. Where a v1 message
/// says nothing about priority, collapse key or time to live, those of the send are added; what it says wins. How long
/// a push lives is said to Android, Apple's devices and browsers apart: FCM has no word for all of them.
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

  /// Whether FCM keeps the key for itself, or we keep it for the push's id.
  static func isReserved(_ key: String) -> Bool {
    key == FCMBody.idKey || key == "from" || key == "message_type" || key.hasPrefix("google.")
      || key.hasPrefix("gcm.notification.")
  }
}
