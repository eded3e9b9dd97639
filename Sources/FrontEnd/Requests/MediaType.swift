import HTTPTypes
import Hummingbird
import NIOCore

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

  /// Throws `.unsupportedMediaType` unless the body has one of the types in UTF-8.
  /// `Content-Type` may be missing: old apps omit it.
  func require(of request: Request) throws(Refusal) {
    guard let field = request.headers[.contentType], !usual.contains(field) else { return }
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

extension Request {
  /// Returns the whole body.
  /// Throws `.tooLarge` if it has more than `limit` bytes, if possible before reading it.
  func bytes(upTo limit: Int) async throws -> ArraySlice<UInt8> {
    func tooLarge() -> Refusal { Refusal(.tooLarge, "the body has more than \(limit) bytes") }
    if let field = headers[.contentLength], let length = Int(field), length > limit { throw tooLarge() }
    do {
      let buffer = try await body.collect(upTo: limit)
      return Array(buffer.readableBytesView)[...]
    } catch is NIOTooManyBytesError {
      throw tooLarge()
    }
  }
}
