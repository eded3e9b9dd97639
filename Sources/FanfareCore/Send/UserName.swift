/// The rule of user names.
package enum UserName {
  /// The most bytes of UTF-8 in a name.
  package static let maximumLength = 111
  /// The rule, as error messages state it: with the prefix of its tag a name stays within a tag's length.
  package static let rule = "1 to 111 bytes of UTF-8 without control characters or ':'"

  /// Whether the text can be a user's name. No `:`, because HTTP Basic ends the name there (RFC 7617 §2).
  package static func isValid(_ name: String) -> Bool {
    let bytes = name.utf8Span.span
    guard (1...maximumLength).contains(bytes.count) else { return false }
    for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F || bytes[index] == UInt8(ascii: ":") {
      return false
    }
    return true
  }
}
