/// A request as it came to WNS.
struct WNSRequest {
  var method: String
  /// Path and query, byte for byte.
  var target: String
  /// All header fields in their order.
  var headers: [HeaderField]
  var body: [UInt8]

  /// The value of the first field of that name, given in lower case.
  subscript(name: String) -> String? {
    headers.first { $0.name.lowercased() == name }?.value
  }

  /// The fields worth keeping: all but the credential.
  var kept: [HeaderField] { headers.filter { $0.name.lowercased() != "authorization" } }
}
