extension JSONReader {
  /// Reads a moment (RFC 3339); nil where the string is none.
  package mutating func readTime() throws(JSONError) -> UnixTime? { try readUTF8 { UnixTime(utf8: $0) } }

  /// Reads a registration's id; nil where the string is none.
  package mutating func readRegistrationID() throws(JSONError) -> RegistrationID? {
    try readUTF8 { RegistrationID(utf8: $0) }
  }

  /// Reads the tags that a caller gives a device; `null` gives none. Tags that the registry gives anyway do not count,
  /// so that what it has answered can be sent back.
  package mutating func readTags() throws(JSONError) -> [String] {
    if try readNull() { return [] }
    var (tags, count): ([String], Int) = ([], 0)
    try readArray { (reader) throws(JSONError) in
      let tag = try reader.readTag()
      if !Tag.isReserved(tag) { count += 1 }
      guard count <= Tag.maximumCount else {
        throw reader.error("is one tag more than the \(Tag.maximumCount) allowed")
      }
      tags.append(tag)
    }
    return tags
  }

  /// Reads one tag. A user's tag follows the rule of user names; whose it may be is for the registry to say.
  package mutating func readTag() throws(JSONError) -> String {
    let tag = try readString()
    guard Tag.isAddressable(tag) else { throw error("must be \(Tag.rule)") }
    return tag
  }
}
