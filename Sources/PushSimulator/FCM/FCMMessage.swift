import FanfareCore

/// A message as FCM understands it, read from the body of `messages:send`.
struct FCMMessage {
  /// The one target: a token or installation id as it is, a topic as `/topics/NAME`, a condition as it is.
  private(set) var handle = ""
  /// Whether the target is a device.
  private(set) var isForDevice = false
  /// What names the push wherever it is repeated.
  private(set) var pushID: String?
  /// Whether the message is only to be checked.
  private(set) var validateOnly = false
  /// Bytes of keys and values in `data` and `notification`, as the documentation counts the payload.
  private var payloadSize = 0
  private var targets = 0

  /// The most bytes of a payload to a device.
  static let payloadLimit = 4096
  /// The most bytes of a payload to a topic.
  static let topicPayloadLimit = 2048

  /// Reads and checks a body.
  init(_ body: [UInt8]) throws(FCMError) {
    do throws(JSONError) {
      var reader = try JSONReader(body[...])
      var hasMessage = false
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "validate_only", "validateOnly": validateOnly = try reader.readBoolean()
        case "message":
          hasMessage = true
          try readMessage(&reader)
        default: throw reader.error("is an unknown name")
        }
      }
      try reader.finish()
      guard hasMessage else { throw JSONError(field: "message", problem: "is not set") }
    } catch {
      throw FCMError.invalidArgument(field: error.field, "Invalid JSON payload received. \(error)")
    }
    guard targets == 1 else {
      throw FCMError.invalidArgument(
        field: "message", targets == 0 ? "Recipient of the message is not set." : "Exactly one recipient must be set.")
    }
    guard payloadSize <= (isForDevice ? Self.payloadLimit : Self.topicPayloadLimit) else { throw FCMError.messageTooBig }
  }

  private mutating func readMessage(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "token", "fid":
        targets += 1
        isForDevice = true
        handle = try reader.readString()
        guard Self.isToken(handle) else {
          throw reader.error("The registration token is not a valid FCM registration token")
        }
      case "topic":
        targets += 1
        let name = try reader.readString()
        guard !name.isEmpty, name.utf8.count <= 900, name.utf8.allSatisfy(Self.isTopicByte) else {
          throw reader.error("Malformed topic name")
        }
        handle = "/topics/" + name
      case "condition":
        targets += 1
        handle = try reader.readString()
        guard handle.contains("' in topics") else { throw reader.error("Malformed condition") }
      case "data": try readData(&reader)
      case "notification": try readNotification(&reader)
      case "android": try readAndroid(&reader)
      case "apns": try readAPNs(&reader)
      case "android_v2", "androidV2", "webpush", "fcm_options", "fcmOptions":
        guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
        try reader.skipValue()
      case "name": _ = try reader.readString()
      default: throw reader.error("is an unknown name")
      }
    }
  }

  /// `data` is a map of strings, and some keys are Google's own.
  private mutating func readData(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text
      let isReserved =
        name.isEmpty || name == "from" || name == "message_type" || name.hasPrefix("google.")
        || name.hasPrefix("gcm.notification.")
      guard !isReserved else { throw reader.error("is a reserved data key") }
      let value = try reader.readString()
      payloadSize += name.utf8.count + value.utf8.count
      if name == PushIdentity.dataKey { pushID = value }
    }
  }

  private mutating func readNotification(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "title", "body", "image": payloadSize += key.count + (try reader.readString()).utf8.count
      default: throw reader.error("is an unknown name")
      }
    }
  }

  private mutating func readAndroid(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "priority":
        let value = try reader.readString().uppercased()
        guard value == "NORMAL" || value == "HIGH" else { throw reader.error("Invalid value, must be NORMAL or HIGH") }
      case "ttl":
        guard Self.isDuration(try reader.readString()) else { throw reader.error("Illegal duration, must be 0 to 2419200 s") }
      case "collapse_key", "collapseKey", "restricted_package_name", "restrictedPackageName": _ = try reader.readString()
      case "data": try readData(&reader)
      case "notification", "fcm_options", "fcmOptions":
        guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
        try reader.skipValue()
      case "direct_boot_ok", "directBootOk", "bandwidth_constrained_ok", "bandwidthConstrainedOk", "restricted_satellite_ok",
        "restrictedSatelliteOk":
        _ = try reader.readBoolean()
      default: throw reader.error("is an unknown name")
      }
    }
  }

  private func readAPNs(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "headers": try reader.readObject { (_, reader) throws(JSONError) in _ = try reader.readString() }
      case "payload", "fcm_options", "fcmOptions":
        guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
        try reader.skipValue()
      case "live_activity_token", "liveActivityToken": _ = try reader.readString()
      default: throw reader.error("is an unknown name")
      }
    }
  }

  private static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 4096 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }

  private static func isTopicByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "%"):
      true
    default: false
    }
  }

  /// A protobuf duration of at most four weeks: `3600s`, `3.5s`.
  private static func isDuration(_ text: String) -> Bool {
    guard text.hasSuffix("s"), let seconds = Double(text.dropLast()) else { return false }
    return text.utf8.dropLast().allSatisfy { $0 == UInt8(ascii: ".") || Hexadecimal.value(of: $0).map { $0 < 10 } ?? false }
      && seconds <= 2_419_200
  }
}
