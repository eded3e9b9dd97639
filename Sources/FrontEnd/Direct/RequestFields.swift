/// The header fields of a request that its direct answer depends on, collected in one pass.
struct RequestFields {
  private(set) var authorization: String?
  private(set) var contentType: String?
  private(set) var requestID: String?
  private(set) var traceparent: String?
  private(set) var tracestate: String?
  private(set) var forwardedFor: String?
  /// Whether a field is repeated, or concerns something that only the router's way does.
  private(set) var needsRouter = false

  /// Adds a field, in any order and letter case. Fields without effect are ignored.
  mutating func add(_ name: String, _ value: String) {
    // Compared by length first: this runs for every field of every request.
    switch name.utf8.count {
    case 6 where name.isField("origin") || name.isField("cookie"), 14 where name.isField("sec-fetch-site"),
      15 where name.isField("idempotency-key"), 16 where name.isField("content-encoding"):
      needsRouter = true
    case 10 where name.isField("tracestate"): tracestate = noted(value, after: tracestate)
    case 11 where name.isField("traceparent"): traceparent = noted(value, after: traceparent)
    case 12 where name.isField("content-type"): contentType = noted(value, after: contentType)
    case 12 where name.isField("x-request-id"): requestID = noted(value, after: requestID)
    case 13 where name.isField("authorization"): authorization = noted(value, after: authorization)
    case 15 where name.isField("x-forwarded-for"): forwardedFor = noted(value, after: forwardedFor)
    default: break
    }
  }

  /// Returns the value of a field whose earlier value was `former`.
  private mutating func noted(_ value: String, after former: String?) -> String {
    // The router's way removes spaces around a value, and joins repeated fields.
    if former != nil || value.utf8.first.map(Self.isSpace) ?? false || value.utf8.last.map(Self.isSpace) ?? false {
      needsRouter = true
    }
    return if let former { "\(former), \(value)" } else { value }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

extension String {
  /// Whether this is the header field `name`, which is written in lower-case letters and hyphens.
  /// The letter case of names is insignificant.
  func isField(_ name: String) -> Bool {
    // Only a letter of either case gives a lower-case letter.
    utf8.elementsEqual(name.utf8) { (given: UInt8, expected: UInt8) in given | 0x20 == expected }
  }
}
