/// What WNS demands of a notification's header fields and payload.
enum WNSRules {
  /// The most bytes of a payload.
  static let payloadLimit = 5000

  /// Why a notification is refused.
  struct Complaint {
    let status: Int
    let description: String
  }

  /// What is wrong with the notification; nil when nothing is.
  static func complaint(about request: WNSRequest) -> Complaint? {
    guard request.method == "POST" else { return Complaint(status: 405, description: "The method must be POST.") }
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
    if let complaint = complaintAboutOptionalHeaders(of: request) { return complaint }
    guard request.body.count <= payloadLimit else {
      return Complaint(status: 413, description: "The payload exceeds 5000 bytes.")
    }
    guard !request.body.isEmpty else { return bad("The payload is empty.") }
    if type != "wns/raw", XMLText.rootElement(of: request.body) != String(type.dropFirst(4)) {
      return bad("The payload is not well-formed XML of the notification type.")
    }
    return nil
  }

  private static func complaintAboutOptionalHeaders(of request: WNSRequest) -> Complaint? {
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

  private static func bad(_ description: String) -> Complaint {
    Complaint(status: 400, description: description)
  }
}

extension Unicode.Scalar.Properties {
  fileprivate var isAlphanumeric: Bool { isAlphabetic || numericType == .decimal }
}
