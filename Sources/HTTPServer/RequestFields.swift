import HTTP2
package import HTTPTypes
import NIOHTTP1

/// The header fields of a request, as they arrived.
package struct RequestFields: Sendable {
  private enum Block {
    case http1(HTTPHeaders)
    case http2(HTTP2Headers)
  }

  private let block: Block
  /// The fields that nearly every request is asked for.
  package let key: KeyFields

  init(_ headers: HTTPHeaders, key: KeyFields) { (block, self.key) = (.http1(headers), key) }

  init(_ headers: HTTP2Headers, key: KeyFields) { (block, self.key) = (.http2(headers), key) }

  /// The value of a field without spaces around it; the values of one that is repeated, joined (RFC 9110 §5.3). Nil if
  /// it is missing.
  package subscript(name: HTTPField.Name) -> String? {
    let values = self[values: name]
    return values.count > 1 ? values.joined(separator: name == .cookie ? "; " : ", ") : values.first
  }

  /// The values of a field in order.
  package subscript(values name: HTTPField.Name) -> [String] {
    let name = name.canonicalName
    switch block {
    case .http1(let headers):
      var values: [String] = []
      for (field, value) in headers where field.utf8.count == name.utf8.count && field.isField(name) {
        values.append(value.trimmed)
      }
      return values
    case .http2(let headers): return headers.values(of: name).map(\.trimmed)
    }
  }

  /// All fields but `Host`.
  package var fields: HTTPFields {
    var fields = HTTPFields()
    for (name, value) in all where name.utf8.count != 4 || !name.isField("host") {
      if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    return fields
  }

  /// All fields in order, with the letter case of their names; without the pseudo fields of HTTP/2.
  package var all: [(name: String, value: String)] {
    switch block {
    case .http1(let headers): headers.map { ($0.name, $0.value) }
    case .http2(let headers): headers.filter { !$0.name.utf8.starts(with: ":".utf8) }
    }
  }
}

/// The header fields that nearly every request is asked for, collected in one pass while it arrives.
package struct KeyFields: Sendable {
  package private(set) var authorization: String?
  package private(set) var contentType: String?
  package private(set) var requestID: String?
  package private(set) var traceparent: String?
  package private(set) var tracestate: String?
  package private(set) var forwardedFor: String?
  package private(set) var hasOrigin = false
  package private(set) var hasCookie = false
  package private(set) var hasIdempotencyKey = false
  package private(set) var hasContentEncoding = false
  /// Whether one of them is repeated or has spaces around its value.
  package private(set) var isUnusual = false

  package init() {}

  /// Adds a field, in any order and letter case. Others are ignored.
  mutating func add(_ name: String, _ value: String) {
    // Compared by length first: this runs for every field of every request.
    switch name.utf8.count {
    case 6 where name.isField("origin"), 14 where name.isField("sec-fetch-site"): hasOrigin = true
    case 6 where name.isField("cookie"): hasCookie = true
    case 15 where name.isField("idempotency-key"): hasIdempotencyKey = true
    case 16 where name.isField("content-encoding"): hasContentEncoding = true
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
    if former != nil || value.utf8.first?.isBlank ?? false || value.utf8.last?.isBlank ?? false { isUnusual = true }
    let value = isUnusual ? value.trimmed : value
    return if let former { "\(former), \(value)" } else { value }
  }
}

extension String {
  /// Whether the text is the name of a field, which is given in lower case. The lengths must be equal.
  ///
  /// The text must be a valid name, which has no control characters: setting the bit makes a small letter only of a
  /// letter, but it also makes a hyphen of a carriage return.
  func isField(_ name: String) -> Bool {
    utf8.elementsEqual(name.utf8) { (given: UInt8, expected: UInt8) in given | 0x20 == expected }
  }

  /// The text without spaces and tabs around it.
  fileprivate var trimmed: String {
    guard utf8.first?.isBlank ?? false || utf8.last?.isBlank ?? false else { return self }
    var text = self[...]
    while text.utf8.first?.isBlank ?? false { text = text.dropFirst() }
    while text.utf8.last?.isBlank ?? false { text = text.dropLast() }
    return String(text)
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
