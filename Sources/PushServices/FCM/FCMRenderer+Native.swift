import FanfareCore

extension FCMRenderer {
  /// Renders a v1 message: its members as they are, what its `android` object leaves open, and how long it lives for those of
  /// Apple's devices and browsers that it says nothing to.
  static func render(_ message: NativeFCMMessage, for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    guard !message.hasTarget else { throw .targetInPayload }
    guard !message.hasReservedDataKey else { throw .reservedDataKey }
    guard message.payloadSize <= payloadLimit else { throw .payloadTooLarge }
    guard !message.members.isEmpty || !message.data.isEmpty || !message.android.isEmpty else { throw .payloadEmpty }
    var writer = FCMMessageWriter()
    for member in message.members { writer.append(member.key, raw: member.value) }
    return writer.finish(data: message.data) { writer in
      if !message.hasAPNs { appendAppleExpiry(to: &writer) }
      if !message.hasWebPush { appendWebTimeToLive(to: &writer) }
      if !message.hasAndroidV2 { writer.append("android") { appendAndroid(of: message, for: send, to: &$0) } }
    }
  }

  private static func appendAndroid(of message: NativeFCMMessage, for send: SendRequest, to writer: inout FCMMessageWriter) {
    if !message.hasTimeToLive { writer.append("ttl", mark: .timeToLive, unit: "s") }
    for member in message.android { writer.append(member.key, raw: member.value) }
    if !message.hasPriority { writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL") }
    if !message.hasCollapseKey, let key = send.collapseKey, !key.isEmpty { writer.append("collapse_key", key) }
  }
}
