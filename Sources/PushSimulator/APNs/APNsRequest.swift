/// A push as it came to APNs, its header fields sorted out.
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
  /// Whether a field that may occur once occurred twice.
  var hasDuplicates = false
  /// The fields worth keeping: all but the credential.
  var kept: [HeaderField] = []
  var body: [UInt8]

  /// A request without header fields.
  init(body: [UInt8]) {
    self.body = body
    kept.reserveCapacity(8)
  }

  /// Takes in one header field; pseudo fields are set by themselves.
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

  /// The device token in the path, in lower case as the store has it; nil when the path is another.
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

  /// Sets a field; false when it was set before.
  private static func set(_ field: inout String?, _ value: String) -> Bool {
    guard field == nil else { return false }
    field = value
    return true
  }
}
