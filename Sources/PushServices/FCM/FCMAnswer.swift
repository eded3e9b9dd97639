package import FanfareCore
import Synchronization

/// What an answer of FCM means for the push.
package enum FCMAnswer {
  /// The reason if Firebase could not authenticate to the push service behind the device.
  static let thirdPartyRefusal = "THIRD_PARTY_AUTH_ERROR"

  /// What an answer means for the push: FCM's own error code decides, then the canonical status, then the HTTP status.
  ///
  /// `isPayloadProven` is called only if the answer blames the token: whether FCM has accepted the same payload for
  /// another device. Without that proof the payload is held to be at fault, and no device is removed.
  package static func outcome(
    status: Int, body: [UInt8], retryAfter: String?, now: UnixTime, isPayloadProven: () -> Bool
  ) -> PushOutcome {
    if status == 200 { return PushOutcome(.accepted, status: 200) }
    let error = FCMErrorBody(body)
    let (verdict, reason) = judge(error, status: status, isPayloadProven: isPayloadProven)
    let delay = verdict == .retryLater ? retryAfter.flatMap { RetryAfter.duration($0, now: now) } : nil
    return PushOutcome(verdict, reason: reason, status: status, retryAfter: delay)
  }

  private static func judge(
    _ error: FCMErrorBody, status: Int, isPayloadProven: () -> Bool
  ) -> (PushOutcome.Verdict, reason: String) {
    let badArgument = "INVALID_ARGUMENT"
    func judgeArgument() -> (PushOutcome.Verdict, String) {
      error.blamesToken && isPayloadProven() ? (.deviceGone, badArgument) : (.rejected, badArgument)
    }
    let quota = error.blamesDeviceQuota ? "DEVICE_QUOTA_EXCEEDED" : "QUOTA_EXCEEDED"

    switch error.errorCode {
    case badArgument: return judgeArgument()
    // The sender's credential is good; the one that the Firebase project uses for APNs or web push is not. Devices on
    // other services must not wait until an operator replaces it, so this is no configuration error.
    case thirdPartyRefusal, "APNS_AUTH_ERROR": return (.rejected, thirdPartyRefusal)
    case "SENDER_ID_MISMATCH": return (.deviceGone, "SENDER_ID_MISMATCH")
    case "UNREGISTERED": return (.deviceGone, "UNREGISTERED")
    case "QUOTA_EXCEEDED": return (.retryLater, quota)
    case "INTERNAL": return (.retryLater, "INTERNAL")
    case "UNAVAILABLE": return (.retryLater, "UNAVAILABLE")
    // `UNSPECIFIED_ERROR` and unknown codes leave the decision to the status.
    default: break
    }
    switch error.status {
    case badArgument: return judgeArgument()
    case "UNAUTHENTICATED": return (.reauthenticate, "UNAUTHENTICATED")
    // Without an FCM error code, these concern the project and not the token.
    case "PERMISSION_DENIED": return (.configurationError, "PERMISSION_DENIED")
    case "NOT_FOUND": return (.configurationError, "NOT_FOUND")
    case "RESOURCE_EXHAUSTED": return (.retryLater, quota)
    case "INTERNAL": return (.retryLater, "INTERNAL")
    case "UNAVAILABLE": return (.retryLater, "UNAVAILABLE")
    default: break
    }
    return switch status {
    case 401: (.reauthenticate, "UNAUTHENTICATED")
    case 403: (.configurationError, "PERMISSION_DENIED")
    case 404: (.configurationError, "NOT_FOUND")
    case 413: (.rejected, "PayloadTooLarge")
    case 429: (.retryLater, quota)
    case 408, 500...: (.retryLater, status == 503 ? "UNAVAILABLE" : "ServerError")
    case 400: (.rejected, badArgument)
    default: (.rejected, "UnknownReason")
    }
  }
}

/// The body of an error answer of FCM: `{"error":{"code","message","status","details":[…]}}`.
struct FCMErrorBody: Sendable {
  /// `error.status`, the canonical gRPC code.
  private(set) var status: String?
  /// `errorCode` in the detail of type `google.firebase.fcm.v1.FcmError`.
  private(set) var errorCode: String?
  /// `error.message`, for humans.
  private var message = ""
  private var violatesToken = false
  /// Whether the exhausted quota is that of a single device.
  private(set) var blamesDeviceQuota = false

  /// Whether a field violation or the message blames the registration token.
  var blamesToken: Bool { violatesToken || message.lowercased().contains("registration token is not a valid") }

  /// Reads the known members; an unreadable body leaves them empty. (Google's front ends answer 502 with HTML.)
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
      // Members before the error are kept; without them the HTTP status decides.
    }
  }

  /// Reads one detail. Its type may come after its other members.
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

/// Payloads that FCM has recently accepted for some device.
///
/// FCM may blame a device's token for a fault of the message, and a broadcast of a bad message must not remove every
/// device. So an answer that blames the token is believed only if the payload is in here. A native message with a part
/// for one kind of device is never proven: Android's part may be right and Apple's wrong, and the platform of a token
/// is unknown.
final class ProvenPayloads: Sendable {
  /// The number of payloads remembered.
  private static let capacity = 64

  private struct Guarded {
    var fingerprints: [Int] = []
    var next = 0
  }

  private let guarded = Mutex(Guarded())

  /// FCM has accepted the payload.
  func insert(_ rendering: RenderedPush) {
    guard rendering.isUniform else { return }
    let fingerprint = rendering.body.hashValue
    guarded.withLock { guarded in
      guard !guarded.fingerprints.contains(fingerprint) else { return }
      if guarded.fingerprints.count < Self.capacity {
        guarded.fingerprints.append(fingerprint)
      } else {
        guarded.fingerprints[guarded.next] = fingerprint
        guarded.next = (guarded.next + 1) % Self.capacity
      }
    }
  }

  /// Whether FCM has recently accepted the payload.
  func contains(_ rendering: RenderedPush) -> Bool {
    let fingerprint = rendering.body.hashValue
    return guarded.withLock { $0.fingerprints.contains(fingerprint) }
  }
}
