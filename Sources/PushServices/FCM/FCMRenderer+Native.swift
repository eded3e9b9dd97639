import FanfareCore

extension FCMRenderer {
  /// Renders a v1 message: its members as they are, and what its `android` object leaves open.
  static func render(_ message: NativeFCMMessage, for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    guard !message.hasTarget else { throw .targetInPayload }
    guard !message.hasReservedDataKey else { throw .reservedDataKey }
    guard message.payloadSize <= payloadLimit else { throw .payloadTooLarge }
    guard !message.members.isEmpty || !message.data.isEmpty || !message.android.isEmpty else { throw .payloadEmpty }
    var writer = FCMMessageWriter()
    for member in message.members { writer.append(member.key, raw: member.value) }
    guard !message.hasAndroidV2 else { return writer.finish(data: message.data) }
    func appendAndroid(_ writer: inout FCMMessageWriter) {
      for member in message.android { writer.append(member.key, raw: member.value) }
      if !message.hasPriority { writer.append("priority", send.priority == .high ? "HIGH" : "NORMAL") }
      if !message.hasCollapseKey, let key = send.collapseKey, !key.isEmpty { writer.append("collapse_key", key) }
    }
    if message.hasTimeToLive {
      writer.append("android", object: appendAndroid)
      return writer.finish(data: message.data)
    }
    return writer.finish(data: message.data, android: appendAndroid)
  }
}
