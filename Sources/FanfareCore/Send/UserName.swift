/// The rule of user names.
package enum UserName {
  /// The most bytes of UTF-8 in a name.
  package static let maximumLength = 111
  /// The rule, as error messages state it: with the prefix of its tag a name stays within a tag's length.
  package static let rule = "1 to 111 bytes of UTF-8 without control characters or ':'"

  /// Whether the text can be a user's name. No `:`, because HTTP Basic ends the name there (RFC 7617 §2).
  package static func isSound(_ name: String) -> Bool {
    (1...maximumLength).contains(name.utf8.count) && !name.utf8.contains { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: ":") }
  }
}
