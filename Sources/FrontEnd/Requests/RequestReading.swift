import FanfareCore
import HTTPServer
import HTTPTypes
import NIOCore

/// The decoded query parameters of a request.
///
/// A `+` stands for itself: handles and user names contain it, and apps do not escape it.
struct Query {
  private(set) var parameters: [(name: String, value: String)] = []

  /// Parses a request's query. Throws if a percent escape is malformed or the result is not UTF-8.
  init(of exchange: Exchange) throws(Refusal) { try self.init(exchange.target.query) }

  /// Parses the text behind the `?` of a request target.
  init(_ query: Substring?) throws(Refusal) {
    guard let query else { return }
    for part in query.utf8.split(separator: UInt8(ascii: "&")) {
      let end = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      guard let name = Self.decoded(part[..<end]), let value = Self.decoded(part[end...].dropFirst()) else {
        throw Refusal(.invalidParameter, "the query has a percent escape that is malformed or not UTF-8")
      }
      parameters.append((name, value))
    }
  }

  /// Returns the value of a parameter, or nil if it is missing. Throws if it is repeated.
  func value(of name: String) throws(Refusal) -> String? {
    guard let index = parameters.firstIndex(where: { $0.name == name }) else { return nil }
    guard !parameters[(index + 1)...].contains(where: { $0.name == name }) else {
      throw Refusal(.invalidParameter, "\(name) must be given once")
    }
    return parameters[index].value
  }

  /// Returns the value of a required parameter.
  func required(_ name: String) throws(Refusal) -> String {
    guard let value = try value(of: name) else { throw Refusal(.invalidParameter, "\(name) is missing") }
    return value
  }

  /// Returns a parameter that is a user name, or nil if it is missing.
  func userName(_ name: String) throws(Refusal) -> String? {
    guard let value = try value(of: name) else { return nil }
    guard UserName.isValid(value) else {
      throw Refusal(.invalidParameter, "\(name) must be a user name: \(UserName.rule)")
    }
    return value
  }

  /// Returns a parameter that is a moment, or nil if it is missing.
  func time(_ name: String) throws(Refusal) -> UnixTime? {
    guard let text = try value(of: name) else { return nil }
    guard let time = UnixTime(text) else {
      throw Refusal(.invalidParameter, "\(name) must be an RFC 3339 date-time such as 2026-11-21T08:00:00Z")
    }
    return time
  }

  /// Returns the parameter `limit`, which must be 1 to `maximum`, or nil if it is missing.
  func limit(upTo maximum: Int) throws(Refusal) -> Int? {
    guard let text = try value(of: "limit") else { return nil }
    guard let limit = Int(text), (1...maximum).contains(limit) else {
      throw Refusal(.invalidParameter, "limit must be a whole number from 1 to \(maximum)")
    }
    return limit
  }

  /// Returns the position that the parameter `cursor` names, or nil if it is missing.
  func cursor<Position>(_ parse: (String) -> Position?) throws(Refusal) -> Position? {
    guard let text = try value(of: "cursor") else { return nil }
    guard let position = parse(text) else {
      throw Refusal(.invalidParameter, "cursor must be the value of next in an earlier answer")
    }
    return position
  }

  /// Throws if there is any other parameter.
  func requireOnly(_ names: [String]) throws(Refusal) {
    guard let unknown = parameters.first(where: { !names.contains($0.name) })?.name else { return }
    // If a `=` is missing, this is a value: it may be a handle, or contain line breaks.
    let isName =
      (1...32).contains(unknown.utf8.count)
      && unknown.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    throw Refusal(
      .invalidParameter,
      (isName ? "\(unknown) is not a known parameter" : "the query has an unknown parameter")
        + "; known parameters: \(names.joined(separator: ", "))")
  }

  /// Decodes percent escapes. Returns nil if one is malformed or the result is not UTF-8.
  static func decoded(_ text: Substring.UTF8View) -> String? {
    guard text.contains(UInt8(ascii: "%")) else { return String(text) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}

extension String {
  /// As one component of a path, or as a value of a query.
  package var percentEncoded: String {
    var text: [UInt8] = []
    for byte in utf8 {
      if byte.isLetterOrDigit || "-._~".utf8.contains(byte) {
        text.append(byte)
      } else {
        text.append(UInt8(ascii: "%"))
        text += Hexadecimal.text([byte]).utf8
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The media types that a route accepts for its body.
struct MediaType {
  /// One JSON value.
  static let json = MediaType("application/json", "text/json")
  /// A JSON Patch (RFC 6902).
  static let jsonPatch = MediaType("application/json-patch+json", "application/json", "text/json")
  /// One JSON value per line. The type is not registered, hence the variants.
  static let ndjson = MediaType(
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")

  private let names: [String]
  /// The usual spellings, which need no parsing.
  private let usual: [String]

  private init(_ names: String...) {
    self.names = names
    usual = ["", ";charset=utf-8", "; charset=utf-8"].map { names[0] + $0 }
  }

  /// Throws `.unsupportedMediaType` unless the body has one of the types in UTF-8, without a content coding.
  /// A request without a body needs no type.
  func require(of exchange: Exchange) throws(Refusal) {
    guard !exchange.headers.hasContentEncoding else {
      throw Refusal(.unsupportedMediaType, "Content-Encoding is not supported; send the body as it is")
    }
    guard !usual.contains(where: exchange.headers.hasContentType) else { return }
    guard let field = exchange.headers.contentType else {
      guard !exchange.bodyLength.isAnnounced else {
        throw Refusal(.unsupportedMediaType, "Content-Type is missing; it must be \(names[0])")
      }
      return
    }
    // Letter case, white space and quotes around a charset are insignificant.
    var text: [UInt8] = []
    for byte in field.utf8 where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t") && byte != UInt8(ascii: "\"") {
      text.append((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
    }
    let parts = text.split(separator: UInt8(ascii: ";"))
    guard let type = parts.first, names.contains(where: { type.elementsEqual($0.utf8) }) else {
      throw Refusal(.unsupportedMediaType, "Content-Type must be \(names[0])")
    }
    for part in parts.dropFirst() where part.starts(with: "charset=".utf8) {
      let charset = part.dropFirst(8)
      guard ["utf-8", "utf8", "us-ascii"].contains(where: { charset.elementsEqual($0.utf8) }) else {
        throw Refusal(.unsupportedMediaType, "the charset must be UTF-8")
      }
    }
  }
}

extension Exchange {
  /// The size of a large body in permits: one for each 64 KiB of more than that, as for 1 MiB if the size is unknown. 0
  /// for other bodies.
  var bodyPermits: Int {
    switch bodyLength {
    case .known(let length) where length > 1 << 16: min(length, 1 << 24) >> 16
    case .unknown: (1 << 20) >> 16
    default: 0
    }
  }

  /// Returns the whole body. Throws `.tooLarge` if it has more than `limit` bytes, if possible before reading it.
  package func bytes(upTo limit: Int) async throws -> ArraySlice<UInt8> {
    guard !bodyLength.mayExceed(limit) || bodyLength == .unknown, let bytes = try await body.collect(upTo: limit) else {
      throw Self.tooLarge(limit)
    }
    return Array(bytes.readableBytesView)[...]
  }

  /// The same for a body at hand.
  func arrivedBytes(upTo limit: Int) throws -> ArraySlice<UInt8> {
    guard let bytes = try body.arrived(upTo: limit) else { throw Self.tooLarge(limit) }
    return Array(bytes.readableBytesView)[...]
  }

  private static func tooLarge(_ limit: Int) -> Refusal {
    Refusal(.tooLarge, "the body has more than \(limit) bytes")
  }

  /// Returns the query's parameters in order, decoded, a `+` as a space. Throws `.invalidParameter` for a malformed
  /// percent escape.
  package func query() throws(Refusal) -> [(name: String, value: String)] {
    try Query(target.query.map { $0.replacing("+", with: "%20")[...] }).parameters
  }

  /// Decodes percent escapes; nil if one is malformed or the result is not UTF-8.
  package static func decoded(_ text: some StringProtocol) -> String? { Query.decoded(Substring(text).utf8) }
}
