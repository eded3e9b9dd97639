import FanfareCore

extension FCMRenderer {
  /// Renders a v1 message: its members as they are, the push's id in whatever overrides its data, what its `android`
  /// object leaves open, and how long it lives for those of Apple's devices and browsers that it says nothing to.
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
