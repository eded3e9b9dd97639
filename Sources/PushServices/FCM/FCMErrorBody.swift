import FanfareCore

/// The body of an error answer of FCM: `{"error":{"code","message","status","details":[…]}}`.
struct FCMErrorBody: Sendable {
  /// `error.status`, the canonical gRPC code.
  private(set) var status: String?
  /// `errorCode` of the detail of type `google.firebase.fcm.v1.FcmError`.
  private(set) var errorCode: String?
  /// `error.message`, for people.
  private var message = ""
  private var violatesToken = false
  /// Whether the quota that is used up is that of the one device.
  private(set) var blamesDeviceQuota = false

  /// Whether a field violation, or the message, says that the registration token is the bad argument.
  var blamesToken: Bool { violatesToken || message.lowercased().contains("registration token is not a valid") }

  /// Reads what can be read; what is garbled is not there. (A 502 of Google's front ends is HTML.)
  init(_ body: [UInt8]) {
    guard body.contains(UInt8(ascii: "{")) else { return }
    do {
      var reader = try JSONReader(body[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        guard case "error" = key, try reader.nextKind() == .object else { return try reader.skipValue() }
        try reader.readObject { (key, reader) throws(JSONError) in
          switch (key, try reader.nextKind()) {
          case ("status", .string): status = try reader.readString()
          case ("message", .string): message = try reader.readString()
          case ("details", .array): try reader.readArray { (reader) throws(JSONError) in try readDetail(&reader) }
          default: try reader.skipValue()
          }
        }
      }
    } catch {
      // What was read before the damage counts; without it the HTTP status decides.
    }
  }

  /// Reads one detail. Its members come in any order, so its type is known only at the end.
  private mutating func readDetail(_ reader: inout JSONReader) throws(JSONError) {
    guard try reader.nextKind() == .object else { return try reader.skipValue() }
    var type = ""
    var code: String?
    var violatesToken = false
    var violatesDeviceQuota = false
    try reader.readObject { (key, reader) throws(JSONError) in
      switch (key, try reader.nextKind()) {
      case ("@type", .string): type = try reader.readString()
      case ("errorCode", .string): code = try reader.readString()
      case ("fieldViolations", .array):
        try Self.readViolations(&reader) { key, text in
          if case "field" = key, text == "message.token" || text == "message.fid" { violatesToken = true }
        }
      case ("violations", .array):
        try Self.readViolations(&reader) { _, text in
          if text.lowercased().contains("device") { violatesDeviceQuota = true }
        }
      default: try reader.skipValue()
      }
    }
    if type.hasSuffix("google.firebase.fcm.v1.FcmError") {
      errorCode = code
    } else if type.hasSuffix("google.rpc.BadRequest") {
      self.violatesToken = violatesToken
    } else if type.hasSuffix("google.rpc.QuotaFailure") {
      blamesDeviceQuota = violatesDeviceQuota
    }
  }

  private static func readViolations(
    _ reader: inout JSONReader, _ body: (JSONReader.Key, String) -> Void
  ) throws(JSONError) {
    try reader.readArray { (reader) throws(JSONError) in
      guard try reader.nextKind() == .object else { return try reader.skipValue() }
      try reader.readObject { (key, reader) throws(JSONError) in
        guard try reader.nextKind() == .string else { return try reader.skipValue() }
        body(key, try reader.readString())
      }
    }
  }
}
