/// A v1 `message` from a caller, parsed just far enough to add to it. In proto3 JSON every name has two spellings.
package struct NativeFCMMessage: Sendable {
  /// A member and its value, as JSON.
  package typealias Member = (key: String, value: ArraySlice<UInt8>)

  /// The part for one kind of device. Members that are given twice are both kept: FCM decides which counts.
  package struct Part: Sendable {
    /// The members without those below.
    package fileprivate(set) var members: [Member] = []
    /// The members of `data`, which replace the message's unless there are none.
    package fileprivate(set) var data: [Member] = []
    /// The members of `notification`, of Android's parts; nil if it has none.
    package fileprivate(set) var notification: [Member]?
    /// The members of `remote_notification`, of `android_v2`, without its `notification`; nil if it has none.
    package fileprivate(set) var remote: [Member]?
    /// The members of `headers`, of `apns` and `webpush`, without the time to live.
    package fileprivate(set) var headers: [Member] = []
    /// The time to live in seconds.
    package fileprivate(set) var timeToLive: Int64?
    /// `apns-expiration`.
    package fileprivate(set) var keptUntil: UnixTime?

    package init() {}

    var isEmpty: Bool {
      members.isEmpty && data.isEmpty && notification == nil && remote == nil && headers.isEmpty && timeToLive == nil
        && keptUntil == nil
    }

    /// Whether a member has one of the names.
    package func says(_ names: String...) -> Bool { members.contains { names.contains($0.key) } }

    /// Whether `notification` has the member.
    package func shows(_ name: String) -> Bool { notification?.contains { $0.key == name } ?? false }

    /// Whether there is a header field of the name, which is in lower case.
    package func hasHeader(_ name: String) -> Bool { headers.contains { $0.key.lowercased() == name } }
  }

  /// The members except `data` and the parts.
  package private(set) var members: [Member] = []
  /// The members of `data`.
  package private(set) var data: [Member] = []
  package private(set) var android: Part?
  /// Excludes `android`.
  package private(set) var androidV2: Part?
  package private(set) var apns: Part?
  package private(set) var webPush: Part?
  /// Whether it has a notification with content for all kinds of devices.
  package private(set) var hasNotification = false
  private var target: String?
  /// The path of a reserved key of some `data`.
  private var reservedKey: String?
  private var badCollapseID: String?
  private var notificationSize = 0
  private var largestData = 0

  /// Whether it has a part for one kind of device, which FCM validates for that kind only.
  package var speaksToOneKind: Bool { apns != nil || androidV2 != nil || webPush != nil || android?.isEmpty == false }

  /// Throws if it is no JSON object, or has members of the wrong type.
  init(_ json: ArraySlice<UInt8>) throws(JSONError) {
    var reader = try JSONReader(json)
    try reader.readObject { (key, reader) throws(JSONError) in
      // For FCM, null is the same as absent.
      if try reader.nextKind() == .null { return try reader.skipValue() }
      let name = key.text
      switch name {
      case "token", "fid", "topic", "condition":
        target = name
        try reader.skipValue()
      case "android": android = try readAndroid(&reader, addingTo: android ?? Part())
      case "android_v2", "androidV2": androidV2 = try readAndroid(&reader, addingTo: androidV2 ?? Part())
      case "apns": try readApple(&reader)
      case "webpush": try readWebPush(&reader)
      case "data": data += try readData(&reader)
      case "notification":
        var value = reader
        try value.readObject { (key, reader) throws(JSONError) in
          if try reader.nextKind() == .null { return try reader.skipValue() }
          hasNotification = true
          notificationSize += key.count + (try reader.readString()).utf8.count
        }
        members.append((name, try reader.readRaw()))
      default: members.append((name, try reader.readRaw()))
      }
    }
    try reader.finish()
    if androidV2 != nil, android?.isEmpty == false {
      throw JSONError(field: "android", problem: "excludes android_v2")
    }
  }

  /// Throws if FCM would refuse it for every device.
  func check() throws(ContentFault) {
    if let target {
      throw ContentFault("native.fcm.\(target)", "is for the send's audience to decide", .targetInPayload)
    }
    if let reservedKey { throw .reserved("native.fcm.\(reservedKey)", by: "FCM") }
    guard notificationSize + largestData <= FCMPayload.limit else {
      throw .tooLarge("native.fcm", limit: FCMPayload.limit, of: "FCM, keys counted")
    }
    let isEmpty =
      members.isEmpty && data.isEmpty && android?.isEmpty ?? true && androidV2 == nil && apns == nil && webPush == nil
    guard !isEmpty else { throw .empty("native.fcm") }
    if let badCollapseID {
      throw ContentFault("native.fcm.apns.headers.\(badCollapseID)", APNsFields.collapseRule, .badCollapseID)
    }
  }

  private mutating func readAndroid(_ reader: inout JSONReader, addingTo former: Part) throws(JSONError) -> Part {
    var part = former
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      switch key {
      case "ttl": part.timeToLive = try Self.readDuration(&reader)
      case "data": part.data += try readData(&reader)
      case "notification": part.notification = (part.notification ?? []) + (try Self.readMembers(&reader))
      case "remote_notification", "remoteNotification":
        var remote = part.remote ?? []
        try reader.readObject { (key, reader) throws(JSONError) in
          if try reader.nextKind() == .null { return try reader.skipValue() }
          guard case "notification" = key else { return remote.append((key.text, try reader.readRaw())) }
          part.notification = (part.notification ?? []) + (try Self.readMembers(&reader))
        }
        part.remote = remote
      default: part.members.append((key.text, try reader.readRaw()))
      }
    }
    return part
  }

  private mutating func readApple(_ reader: inout JSONReader) throws(JSONError) {
    var part = apns ?? Part()
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      guard case "headers" = key else { return part.members.append((key.text, try reader.readRaw())) }
      try reader.readObject { (key, reader) throws(JSONError) in
        if try reader.nextKind() == .null { return try reader.skipValue() }
        let text = try reader.readString()
        switch key.text.lowercased() {
        case "apns-expiration":
          guard let moment = APNsFields.expiration(text) else { throw reader.error("must be seconds since 1970") }
          part.keptUntil = moment
          return
        case "apns-priority":
          guard APNsFields.Urgency(rawValue: text) != nil else { throw reader.error("must be 10, 5 or 1") }
        case "apns-collapse-id": if text.isEmpty || !APNsFields.isCollapseID(text) { badCollapseID = key.text }
        default: break
        }
        part.headers.append((key.text, FCMPayload.json(text)))
      }
    }
    apns = part
  }

  private mutating func readWebPush(_ reader: inout JSONReader) throws(JSONError) {
    var part = webPush ?? Part()
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      switch key {
      case "data": part.data += try readData(&reader)
      case "headers":
        try reader.readObject { (key, reader) throws(JSONError) in
          if try reader.nextKind() == .null { return try reader.skipValue() }
          let text = try reader.readString()
          guard key.text.lowercased() == "ttl" else {
            return part.headers.append((key.text, FCMPayload.json(text)))
          }
          guard let seconds = FCMPayload.seconds(text) else { throw reader.error("must be a number of seconds") }
          part.timeToLive = seconds
        }
      default: part.members.append((key.text, try reader.readRaw()))
      }
    }
    webPush = part
  }

  private mutating func readData(_ reader: inout JSONReader) throws(JSONError) -> [Member] {
    var data: [Member] = []
    var size = 0
    try reader.readObject { (key, reader) throws(JSONError) in
      let (name, text) = (key.text, try reader.readString())
      if FCMPayload.isReserved(name) { reservedKey = reader.error("").field }
      size += key.count + text.utf8.count
      data.append((name, FCMPayload.json(text)))
    }
    largestData = max(largestData, size)
    return data
  }

  private static func readMembers(_ reader: inout JSONReader) throws(JSONError) -> [Member] {
    var members: [Member] = []
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      members.append((key.text, try reader.readRaw()))
    }
    return members
  }

  private static func readDuration(_ reader: inout JSONReader) throws(JSONError) -> Int64 {
    guard let seconds = FCMPayload.seconds(ofDuration: try reader.readString()) else {
      throw reader.error("must be a number of seconds and an s, such as 3600s")
    }
    return seconds
  }
}
