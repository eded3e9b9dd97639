/// A push to APNs, with its header fields.
struct APNsRequest {
  var method = ""
  var path = ""
  var authorization: String?
  var id: String?
  var topic: String?
  var pushType: String?
  var priority: String?
  var expiration: String?
  var collapseID: String?
  /// Whether a single-value field occurred twice.
  var hasDuplicates = false
  /// The fields to keep: all but the credential.
  var kept: [HeaderField] = []
  var body: [UInt8]

  init(body: [UInt8]) {
    self.body = body
    kept.reserveCapacity(8)
  }

  /// Adds a header field other than a pseudo field.
  mutating func add(_ name: String, _ value: String) {
    var isFirst = true
    switch name {
    case "authorization":
      // The credential is checked and not kept.
      if !Self.set(&authorization, value) { hasDuplicates = true }
      return
    case "apns-id": isFirst = Self.set(&id, value)
    case "apns-topic": isFirst = Self.set(&topic, value)
    case "apns-push-type": isFirst = Self.set(&pushType, value)
    case "apns-priority": isFirst = Self.set(&priority, value)
    case "apns-expiration": isFirst = Self.set(&expiration, value)
    case "apns-collapse-id": isFirst = Self.set(&collapseID, value)
    default: break
    }
    if !isFirst { hasDuplicates = true }
    kept.append(HeaderField(name, value))
  }

  /// The device token in the path, in lower case as in the store; nil for another path.
  var deviceToken: String? {
    let prefix = "/3/device"
    guard path.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = path.utf8.dropFirst(prefix.utf8.count)
    guard let slash = rest.first else { return "" }
    guard slash == UInt8(ascii: "/") else { return nil }
    let token = rest.dropFirst()
    let isUpperCase = token.contains { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") }
    return isUpperCase ? String(Substring(token)).lowercased() : String(Substring(token))
  }

  /// Sets a field; returns false if it was set before.
  private static func set(_ field: inout String?, _ value: String) -> Bool {
    guard field == nil else { return false }
    field = value
    return true
  }
}

/// The values of `apns-push-type` (Apple, "Sending notification requests to APNs").
enum APNsPushType: String, CaseIterable, Sendable {
  case alert
  case background
  case voip
  case complication
  case controls
  case widgets
  case fileprovider
  case liveactivity
  case location
  case mdm
  case pushtotalk

  /// The suffix of the topic after the bundle id.
  var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .controls: ".push-type.controls"
    case .widgets: ".push-type.widgets"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .pushtotalk: ".voip-ptt"
    }
  }

  /// The most bytes of a payload.
  var payloadLimit: Int { self == .voip ? 5120 : 4096 }
}
