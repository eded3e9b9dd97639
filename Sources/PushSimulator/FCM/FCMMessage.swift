import FanfareCore

/// A message as FCM interprets it, read from the body of `messages:send`.
struct FCMMessage {
  /// The target: a token or installation id, `/topics/NAME` for a topic, or a condition.
  private(set) var handle = ""
  /// Whether the target is a device.
  private(set) var isForDevice = false
  /// The id that identifies repetitions of the push.
  private(set) var pushID: String?
  /// Whether the message is validated only.
  private(set) var validateOnly = false
  /// Bytes of keys and values in `data` and `notification`, which the documentation counts as the payload.
  private var payloadSize = 0
  private var targets = 0
  /// Whether it shows something by itself on all kinds of devices, or on any but Apple's.
  private var hasNotification = false
  private var hasAndroid = false
  private var hasAndroidV2 = false
  /// The priority in `apns`; nil without one, or for a live activity.
  private var applePriority: String?
  /// Whether the payload in `apns` shows something by itself.
  private var showsOnApple = false

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
        case "validate_only", "validateOnly": validateOnly = try reader.readNull() ? false : reader.readBoolean()
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
    guard !hasAndroid || !hasAndroidV2 else {
      throw FCMError.invalidArgument(field: "message.android_v2", "Only one of android and android_v2 may be set.")
    }
    // Apple devices take data alone with priority 5 only. A message without a priority may be for other devices.
    guard hasNotification || showsOnApple || applePriority ?? "5" == "5" else {
      throw FCMError.invalidArgument(field: nil, "Request contains an invalid argument.")
    }
    guard payloadSize <= (isForDevice ? Self.payloadLimit : Self.topicPayloadLimit) else {
      throw FCMError.messageTooBig
    }
  }

  private mutating func readMessage(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      // In proto3 JSON, null is no value.
      if try reader.readNull() { return }
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
        guard !name.isEmpty, name.utf8.count <= 900, name.utf8.allSatisfy(Self.isNameByte) else {
          throw reader.error("Malformed topic name")
        }
        handle = "/topics/" + name
      case "condition":
        targets += 1
        handle = try reader.readString()
        guard handle.contains("' in topics") else { throw reader.error("Malformed condition") }
      case "data": try readData(&reader)
      case "notification": try readNotification(&reader)
      case "android":
        hasAndroid = true
        try readAndroid(&reader)
      case "android_v2", "androidV2":
        hasAndroidV2 = true
        try readAndroidV2(&reader)
      case "apns": try readAPNs(&reader)
      case "webpush":
        hasNotification = true
        try FCMFieldType.webPush.check(&reader)
      case "fcm_options", "fcmOptions": try FCMFieldType.options.check(&reader)
      case "name": _ = try reader.readString()
      default: throw reader.error("is an unknown name")
      }
    }
  }

  /// `data` is a map of strings; some keys are reserved.
  private mutating func readData(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text
      let isReserved =
        name.isEmpty || name == "from" || name == "message_type" || name.hasPrefix("google.")
        || name.hasPrefix("gcm.notification.")
      guard !isReserved else { throw reader.error("is a reserved data key") }
      let value = try reader.readString()
      payloadSize += name.utf8.count + value.utf8.count
      if name == "pushId" { pushID = value }
    }
  }

  private mutating func readNotification(_ reader: inout JSONReader) throws(JSONError) {
    try Self.readMembers(&reader) { (key, reader) throws(JSONError) in
      hasNotification = true
      switch key {
      case "title", "body", "image": payloadSize += key.count + (try reader.readString()).utf8.count
      default: throw reader.error("is an unknown name")
      }
    }
  }

  private mutating func readAndroid(_ reader: inout JSONReader) throws(JSONError) {
    try Self.readMembers(&reader) { (key, reader) throws(JSONError) in
      switch key {
      case "priority":
        let value = try reader.readString().uppercased()
        guard value == "NORMAL" || value == "HIGH" else { throw reader.error("Invalid value, must be NORMAL or HIGH") }
      case "ttl":
        guard Self.isDuration(try reader.readString(), most: 2_419_200) else {
          throw reader.error("Illegal duration, must be 0 to 2419200 s")
        }
      case "collapse_key", "collapseKey", "restricted_package_name", "restrictedPackageName":
        _ = try reader.readString()
      case "data": try readData(&reader)
      case "notification":
        hasNotification = true
        try FCMFieldType.androidNotification.check(&reader)
      case "fcm_options", "fcmOptions": try FCMFieldType.options.check(&reader)
      case "direct_boot_ok", "directBootOk", "bandwidth_constrained_ok", "bandwidthConstrainedOk",
        "restricted_satellite_ok",
        "restrictedSatelliteOk":
        _ = try reader.readBoolean()
      default: throw reader.error("is an unknown name")
      }
    }
  }

  /// Reads the members of a message that have a value: in proto3 JSON, null is none.
  private static func readMembers(
    _ reader: inout JSONReader, _ body: (JSONReader.Key, inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      if try !reader.readNull() { try body(key, &reader) }
    }
  }

  /// `android_v2`: known fields are checked, others are skipped.
  private func readAndroidV2(_ reader: inout JSONReader) throws(JSONError) {
    try Self.readMembers(&reader) { (key, reader) throws(JSONError) in
      switch key {
      case "background_sync", "backgroundSync": try FCMFieldType.object.check(&reader)
      case "remote_notification", "remoteNotification": try FCMFieldType.remoteNotification.check(&reader)
      default: try reader.skipValue()
      }
    }
  }

  private mutating func readAPNs(_ reader: inout JSONReader) throws(JSONError) {
    var isLive = false
    try Self.readMembers(&reader) { (key, reader) throws(JSONError) in
      switch key {
      case "headers":
        try reader.readObject { (key, reader) throws(JSONError) in
          let (name, value) = (key.text, try reader.readString())
          switch name.lowercased() {
          case "apns-priority":
            guard ["10", "5", "1"].contains(value) else { throw reader.error("Invalid APNs priority") }
            applePriority = value
          case "apns-expiration":
            guard UInt64(value) != nil else { throw reader.error("Invalid APNs expiration") }
          case "apns-collapse-id":
            guard (1...64).contains(value.utf8.count) else { throw reader.error("Invalid APNs collapse id") }
          default: break
          }
        }
      case "payload": try readApplePayload(&reader)
      case "fcm_options", "fcmOptions": try FCMFieldType.appleOptions.check(&reader)
      case "live_activity_token", "liveActivityToken":
        _ = try reader.readString()
        isLive = true
      default: throw reader.error("is an unknown name")
      }
    }
    if isLive { applePriority = nil }
  }

  private mutating func readApplePayload(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      guard case "aps" = key, try reader.nextKind() == .object else { return try reader.skipValue() }
      try reader.readObject { (key, reader) throws(JSONError) in
        let isNull = try reader.nextKind() == .null
        switch key {
        case "alert", "badge", "sound": if !isNull { showsOnApple = true }
        default: break
        }
        try reader.skipValue()
      }
    }
  }

  private static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 4096 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }

  /// Whether the byte may occur in a topic's name or a label.
  static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "%"):
      true
    default: false
    }
  }

  /// Whether the text is a protobuf duration (`3600s`, `3.5s`) of at most `most` seconds.
  static func isDuration(_ text: String, most: Double) -> Bool {
    guard text.hasSuffix("s"), let seconds = Double(text.dropLast()) else { return false }
    return text.utf8.dropLast().allSatisfy {
      $0 == UInt8(ascii: ".") || Hexadecimal.value(of: $0).map { $0 < 10 } ?? false
    }
      && seconds <= most
  }
}
