/// A message in the form of the legacy GCM and FCM HTTP API, which older backends still use.
package struct LegacyMessage: Sendable {
  /// `data` with every value as text: numbers and booleans as written, objects and arrays as compact JSON. Null members
  /// are left out, which is the same to an app.
  package private(set) var data: [(key: String, value: String)] = []
  /// `notification`, with every value as text in the same way.
  package private(set) var notification: [String: String] = [:]
  /// `badge` of the notification.
  package private(set) var badge: Int64?
  package private(set) var priority: Priority?
  /// Seconds, within FCM's limit.
  package private(set) var timeToLive: Int64?
  package private(set) var collapseKey: String?
  package private(set) var restrictedPackageName: String?
  package private(set) var isContentAvailable = false
  package private(set) var isMutableContent = false
  package private(set) var isDryRun = false
  private var target: String?

  /// Ignores obsolete members (`delay_while_idle`, `message_id`) and unknown ones. Throws if a member has the wrong
  /// type.
  init(_ json: ArraySlice<UInt8>) throws(JSONError) {
    var reader = try JSONReader(json)
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      switch key.text {
      case "to", "registration_ids", "condition", "token", "fid", "topic":
        target = key.text
        try reader.skipValue()
      case "data":
        try reader.readObject { (key, reader) throws(JSONError) in
          guard let value = try Self.readText(&reader) else { return }
          data.append((key.text, value))
        }
      case "notification":
        try reader.readObject { (key, reader) throws(JSONError) in
          let text = try Self.readText(&reader)
          notification[key.text] = text
          switch key {
          case "badge":
            badge = text.flatMap { Int64($0) }
            guard badge != nil || text == nil else { throw reader.error("must be a whole number") }
          case "title_loc_args", "body_loc_args":
            guard text.map(Self.isList) ?? true else { throw reader.error("must be an array of strings") }
          default: break
          }
        }
      case "priority": priority = try readPriority(&reader)
      case "time_to_live":
        guard let text = try Self.readText(&reader) else { return }
        guard let seconds = Int64(text), seconds >= 0 else { throw reader.error("must be a number of seconds") }
        timeToLive = min(seconds, FCMPayload.maximumTimeToLive)
      case "collapse_key": collapseKey = try Self.readText(&reader).flatMap { $0.isEmpty ? nil : $0 }
      case "restricted_package_name": restrictedPackageName = try Self.readText(&reader)
      case "content_available": isContentAvailable = try readFlag(&reader)
      case "mutable_content": isMutableContent = try readFlag(&reader)
      case "dry_run": isDryRun = try readFlag(&reader)
      default: try reader.skipValue()
      }
    }
    try reader.finish()
  }

  /// Throws if FCM would refuse it for every device.
  func check() throws(ContentFault) {
    if let target {
      throw ContentFault("native.fcm.\(target)", "is for the send's audience to decide", .targetInPayload)
    }
    guard !data.isEmpty || !notification.isEmpty || isContentAvailable else { throw .empty("native.fcm") }
    for (key, _) in data where FCMPayload.isReserved(key) { throw .reserved("native.fcm.data.\(key)", by: "FCM") }
    let size =
      data.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
      + notification.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard size <= FCMPayload.limit else {
      throw .tooLarge("native.fcm", limit: FCMPayload.limit, of: "FCM, keys counted")
    }
    if let collapseKey, !APNsFields.isCollapseID(collapseKey) {
      throw ContentFault("native.fcm.collapse_key", APNsFields.collapseRule, .badCollapseID)
    }
  }

  /// Whether the text is the JSON of an array of strings. The legacy form is the array, or a string that holds one.
  private static func isList(_ text: String) -> Bool {
    do throws(JSONError) {
      var reader = try JSONReader(Array(text.utf8)[...])
      try reader.readArray { (reader) throws(JSONError) in _ = try reader.readString() }
      try reader.finish()
      return true
    } catch {
      return false
    }
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
