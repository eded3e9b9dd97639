/// A request as it came to FCM, its header fields sorted out.
struct FCMRequest {
  var method = ""
  var path = ""
  var authority: String?
  var authorization: String?
  var contentType: String?
  /// The fields worth keeping: all but pseudo fields and the credential.
  var kept: [HeaderField] = []
  var body: [UInt8]

  /// A request without header fields.
  init(body: [UInt8]) {
    self.body = body
  }

  /// Takes in one header field; pseudo fields count.
  mutating func add(_ name: String, _ value: String) {
    switch name {
    case ":method": method = value
    case ":path": path = value
    case ":authority": authority = value
    case "authorization": authorization = value
    default:
      if name == "content-type" { contentType = value }
      if !name.hasPrefix(":") { kept.append(HeaderField(name, value)) }
    }
  }
}
