/// The rules of header field values that come from outside.
enum HeaderValue {
  /// Whether the text can be a field's value in HTTP/1.1 and HTTP/2 alike: no control characters, no white space at the
  /// ends (RFC 9113 §8.2.1). A peer may treat anything else as an error of the whole connection, and so of everybody's
  /// pushes.
  static func isSound(_ value: String) -> Bool {
    let space = UInt8(ascii: " ")
    return value.utf8.allSatisfy { $0 >= space && $0 != 0x7F } && value.utf8.first != space && value.utf8.last != space
  }

  /// Whether the text is visible ASCII without spaces, and something at all: what identifiers, tokens and secrets
  /// consist of.
  static func isVisibleASCII(_ value: String) -> Bool {
    !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}
