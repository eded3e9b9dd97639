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
