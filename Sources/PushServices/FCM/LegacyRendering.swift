import FanfareCore

extension FCMRenderer {
  /// Maps a legacy message to v1, each member to all places where the legacy servers put it: Android's, Apple's and the
  /// web's. The time to live is limited to the send's in all of them; missing members are taken from the send.
  static func render(_ message: LegacyMessage, for send: SendRequest) -> RenderedPush {
    var writer = FCMMessageWriter(isDryRun: message.isDryRun)
    let shown = message.notification
    if shown["title"] != nil || shown["body"] != nil || shown["image"] != nil {
      writer.append("notification") { writer in
        for key in ["title", "body", "image"] { writer.append(key, shown[key]) }
      }
    }
    let data = message.data.map { (key: $0.key, value: FCMPayload.json($0.value)) }
    let end = message.timeToLive.map { send.acceptedAt + .seconds($0) }
    return writer.finish(data: data) { writer in
      appendAPNs(of: message, send, until: end, to: &writer)
      appendWebTimeToLive(until: end, to: &writer)
      writer.append("android") { writer in
        writer.append("priority", (message.priority ?? send.priority) == .high ? "HIGH" : "NORMAL")
        writer.append("ttl", mark: .timeToLive, until: end, unit: "s")
        writer.append("collapse_key", message.collapseKey ?? collapseKey(of: send))
        writer.append("restricted_package_name", message.restrictedPackageName)
        appendAndroidNotification(shown, tag: collapseKey(of: send), to: &writer)
      }
    }
  }

  /// Appends what Android shows besides title, body and image, unless that would be a sound for nothing.
  private static func appendAndroidNotification(
    _ shown: [String: String], tag: String?, to writer: inout FCMMessageWriter
  ) {
    let fields = [
      ("icon", "icon"), ("color", "color"), ("sound", "sound"), ("tag", "tag"), ("click_action", "click_action"),
      ("android_channel_id", "channel_id"), ("title_loc_key", "title_loc_key"), ("body_loc_key", "body_loc_key"),
    ]
    let lists = ["title_loc_args", "body_loc_args"]
    let own = fields.filter { shown[$0.0] != nil }.map(\.0) + lists.filter { shown[$0] != nil }
    let hasText = shown["title"] != nil || shown["body"] != nil || shown["image"] != nil
    guard hasText ? !own.isEmpty || tag != nil : own.contains(where: { $0 != "sound" }) else { return }
    writer.append("notification") { writer in
      for (legacy, current) in fields { writer.append(current, shown[legacy]) }
      if shown["tag"] == nil { writer.append("tag", tag) }
      for key in lists { writer.append(list: key, shown[key]) }
    }
  }

  /// Appends `apns`: the push's expiry, and what the message has for Apple devices.
  private static func appendAPNs(
    of message: LegacyMessage, _ send: SendRequest, until end: UnixTime?, to writer: inout FCMMessageWriter
  ) {
    let shown = message.notification
    let localized = [
      ("title_loc_key", "title-loc-key"), ("title_loc_args", "title-loc-args"), ("body_loc_key", "loc-key"),
      ("body_loc_args", "loc-args"), ("subtitle", "subtitle"),
    ]
    let hasAlert = localized.contains { shown[$0.0] != nil }
    let showsNothing = !hasAlert && !["title", "body", "image", "badge", "sound"].contains { shown[$0] != nil }
    let isContentAvailable = showsNothing || message.isContentAvailable
    let hasPayload =
      hasAlert || isContentAvailable || message.isMutableContent
      || ["badge", "sound", "click_action"].contains { shown[$0] != nil }
    writer.append("apns") { writer in
      writer.append("headers") { writer in
        if showsNothing {
          appendBackgroundHeaders(to: &writer)
        } else if let priority = message.priority ?? (send.priority == .normal ? .normal : nil) {
          writer.append("apns-priority", priority == .high ? "10" : "5")
        }
        writer.append("apns-expiration", mark: .expiry, until: end)
        writer.append("apns-collapse-id", message.collapseKey ?? collapseID(of: send))
      }
      guard hasPayload else { return }
      writer.append("payload") { writer in
        writer.append("aps") { writer in
          if hasAlert {
            writer.append("alert") { writer in
              // This alert replaces the one that FCM would make of the notification, so it repeats title and body.
              writer.append("title", shown["title"])
              writer.append("body", shown["body"])
              for (legacy, current) in localized {
                if legacy.hasSuffix("_args") {
                  writer.append(list: current, shown[legacy])
                } else {
                  writer.append(current, shown[legacy])
                }
              }
            }
          }
          if let badge = message.badge { writer.append("badge", number: badge) }
          writer.append("sound", shown["sound"])
          writer.append("category", shown["click_action"])
          if isContentAvailable { writer.append("content-available", number: 1) }
          if message.isMutableContent { writer.append("mutable-content", number: 1) }
        }
      }
    }
  }
}

extension FCMMessageWriter {
  /// Appends an array of strings, given as JSON.
  fileprivate mutating func append(list key: String, _ json: String?) {
    guard let json else { return }
    append(key, raw: json.utf8)
  }
}
