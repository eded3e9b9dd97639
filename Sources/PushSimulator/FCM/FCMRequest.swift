/// A request as it came to FCM, its header fields sorted out.
struct FCMRequest {
  var method = ""
  var path = ""
  var authority = ""
  var authorization: String?
  var contentType: String?
  /// The fields worth keeping: all but the credential.
  var kept: [HeaderField] = []
  var body: [UInt8]

  /// A request without header fields.
  init(body: [UInt8]) {
    self.body = body
  }

  /// Takes in one header field; pseudo fields are set by themselves.
  mutating func add(_ name: String, _ value: String) {
    if name == "authorization" {
      authorization = value
    } else {
      if name == "content-type" { contentType = value }
      kept.append(HeaderField(name, value))
    }
  }
}
