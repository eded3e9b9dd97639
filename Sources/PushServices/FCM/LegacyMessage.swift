import FanfareCore

/// A message in the form of the legacy GCM and FCM HTTP API, which older backends still use.
struct LegacyMessage {
  /// `data` with every value as text: numbers and booleans as written, objects and arrays as compact JSON. Null members
  /// are left out, which is the same to an app.
  private(set) var data: [(key: String, value: String)] = []
  /// `notification`, with every value as text in the same way.
  private(set) var notification: [String: String] = [:]
  private(set) var priority: Priority?
  /// Seconds, within FCM's limit.
  private(set) var timeToLive: Int64?
  private(set) var collapseKey: String?
  private(set) var restrictedPackageName: String?
  private(set) var isContentAvailable = false
  private(set) var isMutableContent = false
  private(set) var isDryRun = false
  /// Whether it names a target.
  private(set) var hasTarget = false

  /// Whether the JSON is in the legacy form: it has a member that only that form has, or uses `data` or `notification`
  /// in a way that v1 does not (values other than strings, presentation in `notification`). Throws if it is no JSON
  /// object.
  static func isLegacy(_ json: [UInt8]) throws(JSONError) -> Bool {
    var hasLegacyMember = false
    var hasCurrentMember = false
    var hasLegacyValue = false
    var reader = try JSONReader(json[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      switch key.text {
      case "to", "registration_ids", "collapse_key", "time_to_live", "priority", "delay_while_idle",
        "content_available",
        "mutable_content", "restricted_package_name", "dry_run", "message_id", "delivery_receipt_requested":
        hasLegacyMember = true
        try reader.skipValue()
      case "android", "android_v2", "androidV2", "apns", "webpush", "fcm_options", "fcmOptions":
        hasCurrentMember = true
        try reader.skipValue()
      case "data" where try reader.nextKind() == .object:
        try reader.readObject { (_, reader) throws(JSONError) in
          if try reader.nextKind() != .string { hasLegacyValue = true }
          try reader.skipValue()
        }
      case "notification" where try reader.nextKind() == .object:
        try reader.readObject { (key, reader) throws(JSONError) in
          if !["title", "body", "image"].contains(key.text) { hasLegacyValue = true }
          try reader.skipValue()
        }
      default: try reader.skipValue()
      }
    }
    try reader.finish()
    return !hasCurrentMember && (hasLegacyMember || hasLegacyValue)
  }

  /// Ignores obsolete members (`delay_while_idle`, `message_id`) and unknown ones. Throws if a member has the wrong
  /// type.
  init(_ json: [UInt8]) throws(JSONError) {
    var reader = try JSONReader(json[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      switch key.text {
      case "to", "registration_ids", "condition":
        hasTarget = true
        try reader.skipValue()
      case "data":
        try reader.readObject { (key, reader) throws(JSONError) in
          guard let value = try Self.readText(&reader) else { return }
          data.append((key.text, value))
        }
      case "notification":
        try reader.readObject { (key, reader) throws(JSONError) in notification[key.text] = try Self.readText(&reader) }
      case "priority": priority = try readPriority(&reader)
      case "time_to_live":
        guard let text = try Self.readText(&reader) else { return }
        guard let seconds = Int64(text), seconds >= 0 else { throw reader.error("must be a number of seconds") }
        timeToLive = min(seconds, FCMBody.maximumTimeToLive)
      case "collapse_key": collapseKey = try Self.readText(&reader)
      case "restricted_package_name": restrictedPackageName = try Self.readText(&reader)
      case "content_available": isContentAvailable = try readFlag(&reader)
      case "mutable_content": isMutableContent = try readFlag(&reader)
      case "dry_run": isDryRun = try readFlag(&reader)
      default: try reader.skipValue()
      }
    }
    try reader.finish()
  }

  /// `high` and `normal`, or APNs' 10 and 5, which the legacy API accepted too.
  private func readPriority(_ reader: inout JSONReader) throws(JSONError) -> Priority? {
    switch try Self.readText(&reader)?.lowercased() {
    case nil: return nil
    case "high", "10": return .high
    case "normal", "5": return .normal
    default: throw reader.error("must be high or normal")
    }
  }

  private func readFlag(_ reader: inout JSONReader) throws(JSONError) -> Bool {
    let text = try Self.readText(&reader)
    return text == "true" || text == "1"
  }

  /// Reads any value as text; nil for null.
  private static func readText(_ reader: inout JSONReader) throws(JSONError) -> String? {
    switch try reader.nextKind() {
    case .null:
      _ = try reader.readNull()
      return nil
    case .string: return try reader.readString()
    case .number, .boolean: return String(decoding: try reader.readRaw(), as: UTF8.self)
    case .object, .array: return String(decoding: compact(try reader.readRaw()), as: UTF8.self)
    }
  }

  /// Removes the white space between the tokens of valid JSON.
  private static func compact(_ json: ArraySlice<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(json.count)
    var isInString = false
    var isEscaped = false
    for byte in json {
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      } else if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        || byte == UInt8(ascii: "\t")
      {
        continue
      }
      output.append(byte)
    }
    return output
  }
}

extension FCMRenderer {
  /// Maps a legacy message to v1, each member to all places where the legacy servers put it: Android's, Apple's and the
  /// web's. The time to live is limited to the send's in all of them; other missing members are taken from the send for
  /// Android only.
  static func render(_ message: LegacyMessage, for send: SendRequest) throws(PushOutcome) -> RenderedPush {
    guard !message.hasTarget else { throw .targetInPayload }
    guard !message.data.isEmpty || !message.notification.isEmpty || message.isContentAvailable else {
      throw .payloadEmpty
    }
    guard !message.data.contains(where: { isReserved($0.key) }) else { throw .reservedDataKey }
    let size =
      message.data.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
      + message.notification.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard size <= payloadLimit else { throw .payloadTooLarge }

    var writer = FCMMessageWriter(isDryRun: message.isDryRun)
    let shown = message.notification
    if shown["title"] != nil || shown["body"] != nil || shown["image"] != nil {
      writer.append("notification") { writer in
        for key in ["title", "body", "image"] { writer.append(key, shown[key]) }
      }
    }
    let data = message.data.map { (key: $0.key, value: json($0.value)) }
    let end = message.timeToLive.map { send.acceptedAt + .seconds($0) }
    return try writer.finish(data: data) { (writer) throws(PushOutcome) in
      try appendAPNs(of: message, until: end, to: &writer)
      appendWebTimeToLive(until: end, to: &writer)
      try writer.append("android") { (writer) throws(PushOutcome) in
        writer.append("priority", (message.priority ?? send.priority) == .high ? "HIGH" : "NORMAL")
        writer.append("ttl", mark: .timeToLive, until: end, unit: "s")
        if let key = message.collapseKey ?? send.collapseKey, !key.isEmpty { writer.append("collapse_key", key) }
        writer.append("restricted_package_name", message.restrictedPackageName)
        try appendAndroidNotification(shown, to: &writer)
      }
    }
  }

  private static func appendAndroidNotification(
    _ shown: [String: String], to writer: inout FCMMessageWriter
  ) throws(PushOutcome) {
    let fields = [
      ("icon", "icon"), ("color", "color"), ("sound", "sound"), ("tag", "tag"), ("click_action", "click_action"),
      ("android_channel_id", "channel_id"), ("title_loc_key", "title_loc_key"), ("body_loc_key", "body_loc_key"),
    ]
    let lists = ["title_loc_args", "body_loc_args"]
    guard fields.contains(where: { shown[$0.0] != nil }) || lists.contains(where: { shown[$0] != nil }) else { return }
    try writer.append("notification") { (writer) throws(PushOutcome) in
      for (legacy, current) in fields { writer.append(current, shown[legacy]) }
      for key in lists { try appendList(key, shown[key], to: &writer) }
    }
  }

  /// Appends `apns`: the push's expiry, and what the message has for Apple devices.
  private static func appendAPNs(
    of message: LegacyMessage, until end: UnixTime?, to writer: inout FCMMessageWriter
  ) throws(PushOutcome) {
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
    let badge = try shown["badge"].map { (text) throws(PushOutcome) -> Int64 in
      guard let number = Int64(text) else { throw .badPayload }
      return number
    }
    if let key = message.collapseKey {
      guard key.utf8.count <= APNsRenderer.maximumCollapseLength, HeaderValue.isSound(key) else { throw .badCollapseID }
    }
    try writer.append("apns") { (writer) throws(PushOutcome) in
      writer.append("headers") { writer in
        if showsNothing {
          appendBackgroundHeaders(to: &writer)
        } else if let priority = message.priority {
          writer.append("apns-priority", priority == .high ? "10" : "5")
        }
        writer.append("apns-expiration", mark: .expiry, until: end)
        writer.append("apns-collapse-id", message.collapseKey)
      }
      guard hasPayload else { return }
      try writer.append("payload") { (writer) throws(PushOutcome) in
        try writer.append("aps") { (writer) throws(PushOutcome) in
          if hasAlert {
            try writer.append("alert") { (writer) throws(PushOutcome) in
              // This alert replaces the one that FCM would make of the notification, so it repeats title and body.
              writer.append("title", shown["title"])
              writer.append("body", shown["body"])
              for (legacy, current) in localized {
                if legacy.hasSuffix("_args") {
                  try appendList(legacy, shown[legacy], as: current, to: &writer)
                } else {
                  writer.append(current, shown[legacy])
                }
              }
            }
          }
          if let badge { writer.append("badge", number: badge) }
          writer.append("sound", shown["sound"])
          writer.append("category", shown["click_action"])
          if isContentAvailable { writer.append("content-available", number: 1) }
          if message.isMutableContent { writer.append("mutable-content", number: 1) }
        }
      }
    }
  }

  /// Appends a list of strings; the legacy form is an array or a string that holds one.
  private static func appendList(
    _ key: String, _ list: String?, as current: String? = nil, to writer: inout FCMMessageWriter
  ) throws(PushOutcome) {
    guard let list else { return }
    let json = Array(list.utf8)
    do {
      var reader = try JSONReader(json[...])
      try reader.readArray { (reader) throws(JSONError) in _ = try reader.readString() }
      try reader.finish()
    } catch {
      throw .badPayload
    }
    writer.append(current ?? key, raw: json)
  }
}
