import CPQ

/// What libpq reads from a connection string.
enum ConnectionInfo {
  /// The words of a connection string, those given alone. Throws `configuration` without repeating any of it: it may
  /// hold a password.
  static func parse(_ text: String) throws(PostgreSQLError) -> [String: String] {
    guard !text.utf8.contains(0), let options = unsafe PQconninfoParse(text, nil) else {
      throw PostgreSQLError(.configuration, hint: "not a connection string that libpq reads")
    }
    defer { unsafe PQconninfoFree(options) }
    var words: [String: String] = [:]
    var next = unsafe options
    while let keyword = unsafe next.pointee.keyword {
      if let value = unsafe next.pointee.val { unsafe words[String(cString: keyword)] = unsafe String(cString: value) }
      unsafe next += 1
    }
    return words
  }
}
