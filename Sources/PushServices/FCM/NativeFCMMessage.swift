import FanfareCore

/// A v1 `message` as a caller wrote it, taken apart just far enough to add to it. Proto3 JSON lets every name be written in two ways.
struct NativeFCMMessage {
  /// A member and its value, as JSON.
  typealias Member = (key: String, value: ArraySlice<UInt8>)

  /// The members, without `data` and `android`.
  private(set) var members: [Member] = []
  /// The members of `data`.
  private(set) var data: [Member] = []
  /// The members of `android`.
  private(set) var android: [Member] = []
  /// Whether it names whom it goes to.
  private(set) var hasTarget = false
  /// Whether it uses `android_v2`, which excludes `android`.
  private(set) var hasAndroidV2 = false
  /// Whether it speaks to Apple's devices.
  private(set) var hasAPNs = false
  /// Whether it speaks to browsers.
  private(set) var hasWebPush = false
  private(set) var hasTimeToLive = false
  private(set) var hasPriority = false
  private(set) var hasCollapseKey = false
  private(set) var hasReservedDataKey = false
  /// Bytes of the keys and values of `data` and `notification`, which FCM limits.
  private(set) var payloadSize = 0

  /// Takes a message apart. Throws when it is no JSON object, or `android`, `data` or `notification` is not what it must be.
  init(_ json: [UInt8]) throws(JSONError) {
    var reader = try JSONReader(json[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text
      switch name {
      case "token", "fid", "topic", "condition":
        hasTarget = true
        try reader.skipValue()
      case "android": try readAndroid(&reader)
      case "data":
        try reader.readObject { (key, reader) throws(JSONError) in
          if FCMRenderer.isReserved(key.text) { hasReservedDataKey = true }
          data.append((key.text, try measuredString(&reader, key: key)))
        }
      case "notification":
        var value = reader
        try value.readObject { (key, reader) throws(JSONError) in _ = try measuredString(&reader, key: key) }
        members.append((name, try reader.readRaw()))
      default:
        switch name {
        case "android_v2", "androidV2": hasAndroidV2 = true
        case "apns": hasAPNs = true
        case "webpush": hasWebPush = true
        default: break
        }
        members.append((name, try reader.readRaw()))
      }
    }
    try reader.finish()
    if hasAndroidV2, !android.isEmpty { throw JSONError(field: "android", problem: "excludes android_v2") }
  }

  private mutating func readAndroid(_ reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text
      switch name {
      case "ttl": hasTimeToLive = true
      case "priority": hasPriority = true
      case "collapse_key", "collapseKey": hasCollapseKey = true
      default: break
      }
      android.append((name, try reader.readRaw()))
    }
  }

  /// Reads a string, counts it, and gives it as JSON.
  private mutating func measuredString(_ reader: inout JSONReader, key: JSONReader.Key) throws(JSONError) -> ArraySlice<UInt8> {
    let text = try reader.readString()
    payloadSize += key.count + text.utf8.count
    return FCMRenderer.json(text)
  }
}
