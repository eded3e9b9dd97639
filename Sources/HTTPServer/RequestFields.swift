import HTTP2
package import HTTPTypes
import NIOCore

/// The header fields of a request: the bytes that arrived, of which texts are made when they are asked for.
package struct RequestFields: Sendable {
  private enum Block {
    /// The lines of the fields, which the parser has checked.
    case http1(ByteBuffer)
    case http2(HTTP2Headers)
  }

  private let block: Block
  private let key: KeyFields

  init(lines: ByteBuffer, key: KeyFields) { (block, self.key) = (.http1(lines), key) }

  init(_ headers: HTTP2Headers, key: KeyFields) { (block, self.key) = (.http2(headers), key) }

  package var authorization: String? { text(key.authorization, "authorization") }
  package var contentType: String? { text(key.contentType, "content-type") }
  package var requestID: String? { text(key.requestID, "x-request-id") }
  package var traceparent: String? { text(key.traceparent, "traceparent") }
  package var tracestate: String? { text(key.tracestate, "tracestate") }
  package var forwardedFor: String? { text(key.forwardedFor, "x-forwarded-for") }
  /// The value of `Host` or `:authority`.
  package var host: String? { key.host.map(text) }
  package var hasOrigin: Bool { key.hasOrigin }
  package var hasCookie: Bool { key.hasCookie }
  package var hasIdempotencyKey: Bool { key.hasIdempotencyKey }
  package var hasContentEncoding: Bool { key.hasContentEncoding }
  /// Whether one of the fields that have a property here is repeated.
  package var hasRepetitions: Bool { key.hasRepetitions }

  /// The bytes of `Authorization`, for comparisons.
  package var authorizationBytes: [UInt8]? {
    guard let place = key.authorization, !key.hasRepetitions, case .http1(let lines) = block else {
      return authorization.map { Array($0.utf8) }
    }
    return lines.getBytes(at: lines.readerIndex + place.start, length: place.count)
  }

  /// Whether `Content-Type` has this value, byte by byte; false if it is repeated.
  package func hasContentType(_ value: String) -> Bool {
    guard let place = key.contentType, !key.hasRepetitions else { return false }
    guard case .http1(let lines) = block else { return text(place) == value }
    return lines.readableBytesUInt8Span.extracting(place.start..<place.start + place.count)
      .isEqual(to: value.utf8.span)
  }

  /// The value of a field without spaces around it; the values of one that is repeated, joined (RFC 9110 §5.3). Nil if
  /// it is missing.
  package subscript(name: HTTPField.Name) -> String? { joined(name.canonicalName) }

  /// The values of a field in order.
  package subscript(values name: HTTPField.Name) -> [String] { values(of: name.canonicalName) }

  /// All fields but `Host`.
  package var fields: HTTPFields {
    var fields = HTTPFields()
    for (name, value) in all where name.utf8.count != 4 || !name.utf8.span.isField("host") {
      if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    return fields
  }

  /// All fields in order, with the letter case of their names; without the pseudo fields of HTTP/2.
  package var all: [(name: String, value: String)] {
    switch block {
    case .http1(let lines):
      var (fields, start): ([(name: String, value: String)], Int) = ([], 0)
      let bytes = lines.readableBytesUInt8Span
      while case .field(let name, let value, let end) = HTTP1Line.read(bytes, at: start) {
        fields.append((String(copying: bytes.extracting(name)), String(copying: bytes.extracting(value))))
        start = end
      }
      return fields
    case .http2(let headers): return headers.filter { !$0.name.utf8.starts(with: ":".utf8) }
    }
  }

  private func joined(_ name: String) -> String? {
    let values = values(of: name)
    return values.count > 1 ? values.joined(separator: name == "cookie" ? "; " : ", ") : values.first
  }

  private func values(of name: String) -> [String] {
    switch block {
    case .http1(let lines):
      var (values, start): ([String], Int) = ([], 0)
      let bytes = lines.readableBytesUInt8Span
      while case .field(let field, let value, let end) = HTTP1Line.read(bytes, at: start) {
        if bytes.extracting(field).isField(name) { values.append(String(copying: bytes.extracting(value))) }
        start = end
      }
      return values
    case .http2(let headers): return headers.values(of: name).map(\.trimmed)
    }
  }

  private func text(_ place: KeyFields.Place?, _ name: String) -> String? {
    guard let place else { return nil }
    return key.hasRepetitions ? joined(name) : text(place)
  }

  private func text(_ place: KeyFields.Place) -> String {
    switch block {
    case .http1(let lines): lines.getString(at: lines.readerIndex + place.start, length: place.count) ?? ""
    case .http2(let headers): headers.text(at: place.start..<place.start + place.count).trimmed
    }
  }
}

/// The places of the header fields that nearly every request is asked for, noted in one pass while it arrives.
struct KeyFields: Sendable {
  /// The place of a value in the bytes of all fields.
  struct Place: Sendable {
    private let first: UInt32
    private let length: UInt32

    /// A header section is far smaller than 4 GiB.
    init(_ start: Int, _ count: Int) { (first, length) = (UInt32(clamping: start), UInt32(clamping: count)) }

    var start: Int { Int(first) }
    var count: Int { Int(length) }
  }

  private(set) var authorization: Place?
  private(set) var contentType: Place?
  private(set) var requestID: Place?
  private(set) var traceparent: Place?
  private(set) var tracestate: Place?
  private(set) var forwardedFor: Place?
  private(set) var host: Place?
  /// The number of `Host` fields.
  private(set) var hosts = 0
  private(set) var hasOrigin = false
  private(set) var hasCookie = false
  private(set) var hasIdempotencyKey = false
  private(set) var hasContentEncoding = false
  private(set) var hasRepetitions = false

  /// Notes a field, in any order and letter case. Those without a property here are ignored.
  mutating func note(_ name: Span<UInt8>, at place: Place) {
    // Compared by length first: this runs for every field of every request.
    switch name.count {
    case 4 where name.isField("host"), 10 where name.isField(":authority"): (host, hosts) = (place, hosts + 1)
    case 6 where name.isField("origin"), 14 where name.isField("sec-fetch-site"): hasOrigin = true
    case 6 where name.isField("cookie"): hasCookie = true
    case 15 where name.isField("idempotency-key"): hasIdempotencyKey = true
    case 16 where name.isField("content-encoding"): hasContentEncoding = true
    case 10 where name.isField("tracestate"): tracestate = noted(place, after: tracestate)
    case 11 where name.isField("traceparent"): traceparent = noted(place, after: traceparent)
    case 12 where name.isField("content-type"): contentType = noted(place, after: contentType)
    case 12 where name.isField("x-request-id"): requestID = noted(place, after: requestID)
    case 13 where name.isField("authorization"): authorization = noted(place, after: authorization)
    case 15 where name.isField("x-forwarded-for"): forwardedFor = noted(place, after: forwardedFor)
    default: break
    }
  }

  private mutating func noted(_ place: Place, after former: Place?) -> Place {
    if former != nil { hasRepetitions = true }
    return place
  }
}

extension Span where Element == UInt8 {
  /// Whether the bytes are a name, which is given in lower case, in any letter case.
  func isField(_ name: String) -> Bool {
    let name = name.utf8.span
    guard count == name.count else { return false }
    for index in indices {
      let byte = self[index]
      guard (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 == name[index] : byte == name[index]
      else { return false }
    }
    return true
  }
}

extension String {
  /// The text without spaces and tabs around it.
  fileprivate var trimmed: String {
    guard utf8.first?.isBlank ?? false || utf8.last?.isBlank ?? false else { return self }
    var text = self[...]
    while text.utf8.first?.isBlank ?? false { text = text.dropFirst() }
    while text.utf8.last?.isBlank ?? false { text = text.dropLast() }
    return String(text)
  }
}
