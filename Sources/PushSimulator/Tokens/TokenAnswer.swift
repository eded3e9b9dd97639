import FanfareCore

/// Answers of an OAuth 2 token endpoint (RFC 6749 §5).
enum TokenAnswer {
  private static let headers = [
    HeaderField("content-type", "application/json; charset=utf-8"), HeaderField("cache-control", "no-store"),
  ]

  /// `expiresIn` is inserted unchanged, because Microsoft sends a string where others send a number.
  static func success(token: String, type: String, expiresIn: String) -> ServiceAnswer {
    let body = JSONWriter.object { json in
      json.member("token_type", type)
      json.member("expires_in", json: expiresIn.utf8)
      json.member("access_token", token)
    }
    return ServiceAnswer(status: 200, headers: headers, body: body, label: "200", isAccepted: true)
  }

  static func failure(_ status: Int, _ code: String, _ description: String, retryAfter: [HeaderField] = [])
    -> ServiceAnswer
  {
    let body = JSONWriter.object { json in
      json.member("error", code)
      json.member("error_description", description)
    }
    return ServiceAnswer(status: status, headers: headers + retryAfter, body: body, label: "\(status) \(code)")
  }

  static func fault(_ fault: FaultAnswer) -> ServiceAnswer {
    let usual =
      switch fault.status {
      case 401: "invalid_client"
      case 429: "rate_limit_exceeded"
      case 400..<500: "invalid_grant"
      case 503: "temporarily_unavailable"
      default: "internal_failure"
      }
    return failure(fault.status, fault.reason ?? usual, "Ordered by a fault.", retryAfter: fault.headers)
  }
}

/// The fields of an `application/x-www-form-urlencoded` body (WHATWG URL §5.1).
struct FormBody {
  private let fields: [String: String]

  /// If a field occurs twice, the first one counts.
  init(_ body: some Collection<UInt8>) {
    var fields: [String: String] = [:]
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = PercentEncoding.decode(parts[0], plusIsSpace: true)
      let value = parts.count > 1 ? PercentEncoding.decode(parts[1], plusIsSpace: true) : ""
      if fields[name] == nil { fields[name] = value }
    }
    self.fields = fields
  }

  subscript(name: String) -> String? { fields[name] }
}

/// Percent encoding of URLs and forms (RFC 3986 §2.1).
enum PercentEncoding {
  /// Decodes; an invalid escape stays unchanged.
  static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> String {
    let bytes = Array(text)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = Hexadecimal.value(of: bytes[index + 1]),
        let low = Hexadecimal.value(of: bytes[index + 2])
      {
        output.append(high << 4 | low)
        index += 3
      } else {
        output.append(plusIsSpace && bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
        index += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
