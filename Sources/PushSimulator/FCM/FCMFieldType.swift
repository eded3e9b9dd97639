import FanfareCore

/// The type of a field in FCM's documentation, in proto3 JSON: every name has two spellings, and null is no value.
/// Other proto3 spellings of numbers and enum values are refused.
indirect enum FCMFieldType: Sendable {
  case string
  case boolean
  /// A whole number of 32 bits, or a string that holds one.
  case int32
  /// A number from 0 to 1.
  case fraction
  /// One of these names.
  case name([String])
  /// A string for which the check holds; the text says what it must be.
  case text(String, @Sendable (String) -> Bool)
  case list(FCMFieldType)
  /// Strings by names that the caller chooses.
  case strings
  /// Header fields of Web Push: strings by names.
  case webHeaders
  /// Any object.
  case object
  /// A message with these fields, in snake case.
  case message([String: FCMFieldType])

  /// Reads a value; throws if it has another type.
  func check(_ reader: inout JSONReader) throws(JSONError) {
    switch self {
    case .string: _ = try reader.readString()
    case .boolean: _ = try reader.readBoolean()
    case .int32:
      let text = try reader.nextKind() == .string ? reader.readString() : String(reader.readInteger())
      guard Int32(text) != nil else { throw reader.error("must be a whole number of 32 bits") }
    case .fraction:
      guard try reader.nextKind() == .number, let value = Double(String(decoding: try reader.readRaw(), as: UTF8.self)),
        (0...1).contains(value)
      else { throw reader.error("must be a number from 0 to 1") }
    case .name(let names):
      guard names.contains(try reader.readString()) else {
        throw reader.error("must be one of \(names.joined(separator: ", "))")
      }
    case .text(let description, let isRight):
      guard isRight(try reader.readString()) else { throw reader.error("must be \(description)") }
    case .list(let type): try reader.readArray { (reader) throws(JSONError) in try type.check(&reader) }
    case .strings: try reader.readObject { (_, reader) throws(JSONError) in _ = try reader.readString() }
    case .webHeaders:
      try reader.readObject { (key, reader) throws(JSONError) in
        let value = try reader.readString()
        guard key.text.lowercased() != "ttl" || UInt32(value).map({ $0 <= 2_419_200 }) == true else {
          throw reader.error("must be 0 to 2419200")
        }
      }
    case .object:
      guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
      try reader.skipValue()
    case .message(let fields):
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let type = fields[Self.snakeCase(key.text)] else { throw reader.error("is an unknown name") }
        if try !reader.readNull() { try type.check(&reader) }
      }
    }
  }

  private static func snakeCase(_ name: String) -> String {
    guard name.utf8.contains(where: { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") }) else { return name }
    return name.reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) }
  }
}

extension FCMFieldType {
  /// `AndroidNotification`.
  static let androidNotification = message(androidNotificationFields)
  /// `RemoteNotification` of `AndroidConfigV2`.
  static let remoteNotification = message([
    "notification": message(androidNotificationFields.merging(["id": int32]) { $1 }), "mutable_content": boolean,
    "use_as_v1_data_message": boolean,
  ])
  /// `WebpushConfig`.
  static let webPush = message([
    "headers": webHeaders, "data": strings, "notification": object,
    "fcm_options": message(["link": text("an https URL") { $0.hasPrefix("https://") }, "analytics_label": label]),
  ])
  /// `FcmOptions`, and `AndroidFcmOptions`.
  static let options = message(["analytics_label": label])
  /// `ApnsFcmOptions`.
  static let appleOptions = message(["analytics_label": label, "image": string])

  private static let label = text("1 to 50 of the characters that a label may have") { text in
    (1...50).contains(text.utf8.count) && text.utf8.allSatisfy(FCMMessage.isNameByte)
  }
  private static let duration = text("a duration in seconds") { FCMMessage.isDuration($0, most: .infinity) }

  private static let androidNotificationFields: [String: FCMFieldType] = [
    "title": string, "body": string, "icon": string, "sound": string, "tag": string, "click_action": string,
    "body_loc_key": string, "body_loc_args": list(string), "title_loc_key": string, "title_loc_args": list(string),
    "channel_id": string, "ticker": string, "image": string, "sticky": boolean, "local_only": boolean,
    "default_sound": boolean, "default_vibrate_timings": boolean, "default_light_settings": boolean,
    "bypass_proxy_notification": boolean, "notification_count": int32, "vibrate_timings": list(duration),
    "color": text("#rrggbb") { text in
      text.utf8.count == 7 && text.hasPrefix("#")
        && text.utf8.dropFirst().allSatisfy { Hexadecimal.value(of: $0) != nil }
    },
    "event_time": text("an RFC 3339 date-time") { UnixTime($0) != nil },
    "notification_priority": name(["UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX"].map { "PRIORITY_" + $0 }),
    "visibility": name(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
    "proxy": name(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
    "light_settings": message([
      "color": message(["red": fraction, "green": fraction, "blue": fraction, "alpha": fraction]),
      "light_on_duration": duration, "light_off_duration": duration,
    ]),
  ]
}
