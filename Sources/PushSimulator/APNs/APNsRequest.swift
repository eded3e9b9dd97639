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
    switch name {
    case "authorization": set(\.authorization, value)
    case "apns-id": keep(\.id, name, value)
    case "apns-topic": keep(\.topic, name, value)
    case "apns-push-type": keep(\.pushType, name, value)
    case "apns-priority": keep(\.priority, name, value)
    case "apns-expiration": keep(\.expiration, name, value)
    case "apns-collapse-id": keep(\.collapseID, name, value)
    default: kept.append(HeaderField(name, value))
    }
  }

  /// The device token in the path; nil when the path is another.
  var deviceToken: Substring? {
    let prefix = "/3/device"
    guard path.hasPrefix(prefix) else { return nil }
    let rest = path.dropFirst(prefix.utf8.count)
    if rest.isEmpty { return rest }
    guard rest.hasPrefix("/") else { return nil }
    return rest.dropFirst()
  }

  private mutating func keep(_ field: WritableKeyPath<Self, String?>, _ name: String, _ value: String) {
    set(field, value)
    kept.append(HeaderField(name, value))
  }

  private mutating func set(_ field: WritableKeyPath<Self, String?>, _ value: String) {
    if self[keyPath: field] != nil { hasDuplicates = true }
    self[keyPath: field] = value
  }
}
