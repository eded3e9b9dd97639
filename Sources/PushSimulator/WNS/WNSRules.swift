/// The rules of WNS for header fields and payloads.
enum WNSRules {
  /// The most bytes of a payload.
  static let payloadLimit = 5000

  struct Refusal {
    let status: Int
    let description: String
  }

  /// Why the notification is refused; nil if it is valid.
  static func refusal(of request: WNSRequest) -> Refusal? {
    guard request.method == "POST" else { return Refusal(status: 405, description: "The method must be POST.") }
    if request["transfer-encoding"] != nil { return bad("Chunked encoding is not supported.") }
    guard request["content-length"] != nil else { return bad("The Content-Length header is missing.") }
    guard let type = request["x-wns-type"] else { return bad("The X-WNS-Type header is missing.") }
    guard ["wns/toast", "wns/tile", "wns/badge", "wns/raw"].contains(type) else {
      return bad("The X-WNS-Type header is invalid.")
    }
    let mediaType = request["content-type"].map { $0.prefix { $0 != ";" }.lowercased().filter { $0 != " " } }
    guard mediaType == (type == "wns/raw" ? "application/octet-stream" : "text/xml") else {
      return bad("The Content-Type header does not match the notification type.")
    }
    if let refusal = refusalOfOptionalHeaders(of: request) { return refusal }
    guard request.body.count <= payloadLimit else {
      return Refusal(status: 413, description: "The payload exceeds 5000 bytes.")
    }
    guard !request.body.isEmpty else { return bad("The payload is empty.") }
    if type != "wns/raw", XMLText.rootElement(of: request.body) != String(type.dropFirst(4)) {
      return bad("The payload is not well-formed XML of the notification type.")
    }
    return nil
  }

  private static func refusalOfOptionalHeaders(of request: WNSRequest) -> Refusal? {
    if let policy = request["x-wns-cache-policy"], policy != "cache", policy != "no-cache" {
      return bad("The X-WNS-Cache-Policy header is invalid.")
    }
    if let wish = request["x-wns-requestforstatus"], wish != "true", wish != "false" {
      return bad("The X-WNS-RequestForStatus header is invalid.")
    }
    if let ttl = request["x-wns-ttl"], UInt64(ttl) == nil { return bad("The X-WNS-TTL header is invalid.") }
    if let priority = request["x-wns-priority"], UInt8(priority).map({ (1...4).contains($0) }) != true {
      return bad("The X-WNS-PRIORITY header is invalid.")
    }
    for name in ["x-wns-tag", "x-wns-group"] {
      guard let value = request[name] else { continue }
      guard (1...16).contains(value.utf8.count),
        value.unicodeScalars.allSatisfy({ $0.isASCII && $0.properties.isAlphanumeric })
      else {
        return bad("The \(name) header must have 1 to 16 alphanumeric characters.")
      }
    }
    return nil
  }

  private static func bad(_ description: String) -> Refusal {
    Refusal(status: 400, description: description)
  }
}

extension Unicode.Scalar.Properties {
  fileprivate var isAlphanumeric: Bool { isAlphabetic || numericType == .decimal }
}
