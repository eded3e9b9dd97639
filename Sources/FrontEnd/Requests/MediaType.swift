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
    var parts = field.split(separator: ";").map { $0.trimmingPrefix(while: \.isWhitespace).lowercased() }
    guard !parts.isEmpty, types.contains(String(parts.removeFirst().prefix { !$0.isWhitespace })) else {
      throw Refusal(.unsupportedMediaType, "Content-Type must be \(types[0])")
    }
    for part in parts where part.hasPrefix("charset=") {
      let charset = part.dropFirst(8).filter { $0 != "\"" && !$0.isWhitespace }
      guard charset == "utf-8" || charset == "utf8" || charset == "us-ascii" else {
        throw Refusal(.unsupportedMediaType, "the body must be UTF-8")
      }
    }
  }
}
