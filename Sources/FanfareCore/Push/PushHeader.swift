/// The header fields that a caller may give a native payload.
package enum PushHeader {
  /// The most bytes of a value.
  package static let maximumLength = 256

  /// The platform that the field belongs to; nil for an unknown one.
  package static func platform(of name: String) -> Platform? {
    Platform.allCases.first { $0.vocabulary.headers.contains(name) }
  }

  /// Whether the text can be a field's value: visible ASCII, with spaces inside.
  package static func isSound(_ value: String) -> Bool {
    (1...maximumLength).contains(value.utf8.count) && value.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
      && value.first != " " && value.last != " "
  }

  /// Whether the text can be a field's value in HTTP/1.1 and HTTP/2: no control characters, no white space at either
  /// end (RFC 9113 §8.2.1). For any other value a peer may close the connection, with the pushes of all users on it.
  package static func isTransmissible(_ value: String) -> Bool {
    let space = UInt8(ascii: " ")
    return value.utf8.allSatisfy { $0 >= space && $0 != 0x7F } && value.utf8.first != space && value.utf8.last != space
  }

  /// Reads the value of `headers`: an object of strings. Returns them by their names in lower case.
  package static func read(from reader: inout JSONReader) throws(JSONError) -> [String: String] {
    var headers: [String: String] = [:]
    try reader.readObject { (key, reader) throws(JSONError) in
      let name = key.text.lowercased()
      guard platform(of: name) != nil else {
        let names = Platform.allCases.flatMap { $0.vocabulary.headers }.sorted()
        throw reader.error("must be one of \(names.joined(separator: ", "))")
      }
      let value = try reader.readString()
      // Of a template it is checked again when the values are inserted.
      guard isSound(value) else { throw reader.error("must be 1 to \(maximumLength) visible ASCII characters") }
      guard headers.updateValue(value, forKey: name) == nil else { throw reader.duplicateMember() }
    }
    return headers
  }
}
