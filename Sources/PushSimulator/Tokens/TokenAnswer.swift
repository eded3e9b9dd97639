import FanfareCore

/// Answers of an OAuth 2 token endpoint (RFC 6749 §5).
enum TokenAnswer {
  private static let headers = [
    HeaderField("content-type", "application/json; charset=utf-8"), HeaderField("cache-control", "no-store"),
  ]

  /// A token; `expiresIn` is put in as it is given, for Microsoft writes a string where others write a number.
  static func success(token: String, type: String, expiresIn: String) -> ServiceAnswer {
    var body: [UInt8] = []
    body.append(literal: #"{"token_type":"#)
    body.appendJSON(type)
    body.append(literal: #","expires_in":"#)
    body.append(contentsOf: expiresIn.utf8)
    body.append(literal: #","access_token":"#)
    body.appendJSON(token)
    body.append(UInt8(ascii: "}"))
    return ServiceAnswer(status: 200, headers: headers, body: body, label: "200", isAccepted: true)
  }

  /// A refusal.
  static func failure(_ status: Int, _ code: String, _ description: String, retryAfter: [HeaderField] = [])
    -> ServiceAnswer
  {
    var body: [UInt8] = []
    body.append(literal: #"{"error":"#)
    body.appendJSON(code)
    body.append(literal: #","error_description":"#)
    body.appendJSON(description)
    body.append(UInt8(ascii: "}"))
    return ServiceAnswer(status: status, headers: headers + retryAfter, body: body, label: "\(status) \(code)")
  }

  /// A fault's answer.
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
