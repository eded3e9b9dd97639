import HTTPTypes
import Hummingbird

/// What a route's body may be announced as.
struct MediaType {
  /// One JSON value.
  static let json = MediaType("application/json", "text/json")
  /// A JSON Patch (RFC 6902).
  static let jsonPatch = MediaType("application/json-patch+json", "application/json", "text/json")
  /// One JSON value per line; the type was never registered, hence the variants.
  static let ndjson = MediaType(
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")

  private let names: [String]
  /// As nearly all callers write it: found without taking the field apart.
  private let usual: [String]

  private init(_ names: String...) {
    self.names = names
    usual = ["", ";charset=utf-8", "; charset=utf-8"].map { names[0] + $0 }
  }

  /// Throws unless the body is announced as one of the types, in UTF-8, or not announced at all: old apps leave the
  /// field out.
  func require(of request: Request) throws(Refusal) {
    guard let field = request.headers[.contentType], !usual.contains(field) else { return }
    // Letter case and white space mean nothing here, nor do quotes around a charset.
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
        throw Refusal(.unsupportedMediaType, "the body must be UTF-8")
      }
    }
  }
}
