import FanfareCore

/// A v1 `message` as a caller wrote it, taken apart just far enough to add to it. Proto3 JSON lets every name be
/// written in two ways.
struct NativeFCMMessage {
  /// A member and its value, as JSON.
  typealias Member = (key: String, value: ArraySlice<UInt8>)

  /// What it says to one kind of device.
  typealias Part = (members: [Member], data: [Member])

  /// The members, without `data`, `android` and `webpush`.
  private(set) var members: [Member] = []
  /// The members of `data`.
  private(set) var data: [Member] = []
  /// `android`: its members, without `data`, and those of its `data`, which override the message's unless there are
  /// none.
  private(set) var android: Part = ([], [])
  /// `webpush`, likewise; nil where it does not speak to browsers.
  private(set) var webPush: Part?
  /// Whether it names whom it goes to.
  private(set) var hasTarget = false
  /// Whether it uses `android_v2`, which excludes `android`.
  private(set) var hasAndroidV2 = false
  /// Whether it speaks to Apple's devices.
  private(set) var hasAPNs = false
  /// Whether it has a notification for all kinds of devices that says something.
  private(set) var hasNotification = false
  private(set) var hasReservedDataKey = false
  private var notificationSize = 0
  private var largestData = 0

  /// Bytes of the keys and values of `notification` and of the largest `data`, which FCM limits.
  var payloadSize: Int { notificationSize + largestData }

  /// Whether it says something of its own to one kind of devices, which FCM checks for these alone.
  var speaksToOneKind: Bool {
    hasAPNs || hasAndroidV2 || webPush != nil || !(android.members + android.data).isEmpty
  }

  /// Whether there is nothing in it.
  var isEmpty: Bool { (members + data + android.members + android.data).isEmpty && webPush == nil }

  /// Takes a message apart. Throws when it is no JSON object, or `android`, `data`, `notification` or `webpush` is not
  /// what it must be.
  init(_ json: [UInt8]) throws(JSONError) {
    var reader = try JSONReader(json[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      // To FCM null is the same as absent.
      if try reader.nextKind() == .null { return try reader.skipValue() }
      let name = key.text
      switch name {
      case "token", "fid", "topic", "condition":
        hasTarget = true
        try reader.skipValue()
      // Of a member that is given twice both are kept: which of them counts is FCM's to say.
      case "android":
        let part = try readPart(&reader)
        android.members += part.members
        android.data += part.data
      case "webpush":
        let (former, part) = (webPush ?? ([], []), try readPart(&reader))
        webPush = (former.members + part.members, former.data + part.data)
      case "data": data += try readData(&reader)
      case "notification":
        var value = reader
        try value.readObject { (key, reader) throws(JSONError) in
          if try reader.nextKind() == .null { return try reader.skipValue() }
          hasNotification = true
          notificationSize += key.count + (try reader.readString()).utf8.count
        }
        members.append((name, try reader.readRaw()))
      default:
        switch name {
        case "android_v2", "androidV2": hasAndroidV2 = true
        case "apns": hasAPNs = true
        default: break
        }
        members.append((name, try reader.readRaw()))
      }
    }
    try reader.finish()
    if hasAndroidV2, !(android.members + android.data).isEmpty {
      throw JSONError(field: "android", problem: "excludes android_v2")
    }
  }

  private mutating func readPart(_ reader: inout JSONReader) throws(JSONError) -> Part {
    var part: Part = ([], [])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .null { return try reader.skipValue() }
      if case "data" = key, try reader.nextKind() == .object {
        part.data += try readData(&reader)
      } else {
        part.members.append((key.text, try reader.readRaw()))
      }
    }
    return part
  }

  private mutating func readData(_ reader: inout JSONReader) throws(JSONError) -> [Member] {
    var data: [Member] = []
    var size = 0
    try reader.readObject { (key, reader) throws(JSONError) in
      let (name, text) = (key.text, try reader.readString())
      if FCMRenderer.isReserved(name) { hasReservedDataKey = true }
      size += key.count + text.utf8.count
      data.append((name, FCMRenderer.json(text)))
    }
    largestData = max(largestData, size)
    return data
  }
}
