import HTTPTypes
import Hummingbird

/// The media types that the routes take.
enum MediaType {
  /// What may be announced for one JSON value.
  static let json = ["application/json", "text/json"]
  /// What may be announced for one JSON value per line; the type was never registered, hence the variants.
  static let ndjson = ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"]

  /// Throws unless the body is announced as one of the types, in UTF-8, or not announced at all: old apps leave the field out.
  static func require(_ types: [String], of request: Request) throws(Refusal) {
    guard let field = request.headers[.contentType] else { return }
    // Letter case and white space mean nothing here, nor do quotes around a charset.
    var text: [UInt8] = []
    for byte in field.utf8 where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t") && byte != UInt8(ascii: "\"") {
      text.append((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
    }
    let parts = text.split(separator: UInt8(ascii: ";"))
    guard let type = parts.first, types.contains(where: { type.elementsEqual($0.utf8) }) else {
      throw Refusal(.unsupportedMediaType, "Content-Type must be \(types[0])")
    }
    for part in parts.dropFirst() where part.starts(with: "charset=".utf8) {
      let charset = part.dropFirst(8)
      guard ["utf-8", "utf8", "us-ascii"].contains(where: { charset.elementsEqual($0.utf8) }) else {
        throw Refusal(.unsupportedMediaType, "the body must be UTF-8")
      }
    }
  }
}
