import FanfareCore

/// The members of a token's header or payload.
struct TokenClaims: Sendable {
  /// A JSON value.
  indirect enum Value: Sendable, Equatable {
    case text(String), number(Double), boolean(Bool), null
    case list([Value])
    case object([String: Value])
  }

  private let members: [String: Value]

  /// Parses a JSON object. Throws `.malformed` for anything else, and for a member that is given twice.
  init(_ json: [UInt8]) throws(TokenRefusal) {
    do throws(JSONError) {
      var reader = try JSONReader(json[...])
      members = try Self.readMembers(&reader)
      try reader.finish()
    } catch {
      throw .malformed
    }
  }

  subscript(name: String) -> Value? { members[name] }

  /// The value at a dotted path such as `realm_access.roles`.
  ///
  /// A member whose name contains dots comes first: names of claims may be URLs, such as `https://example.com/roles`.
  func value(at path: String) -> Value? { Self.value(at: path[...], in: members) }

  /// The texts at a path: an array of texts, or the words of one text. Nil if there is no such claim.
  func texts(at path: String) -> [String]? {
    switch value(at: path) {
    case nil, .null: nil
    case .text(let text): text.split(separator: " ").map(String.init)
    case .list(let list): list.compactMap { if case .text(let text) = $0 { text } else { nil } }
    // A number, for example, names nothing.
    default: []
    }
  }

  private static func value(at path: Substring, in members: [String: Value]) -> Value? {
    if let value = members[String(path)] { return value }
    for dot in path.indices where path[dot] == "." {
      guard case .object(let inner) = members[String(path[..<dot])] else { continue }
      if let value = value(at: path[path.index(after: dot)...], in: inner) { return value }
    }
    return nil
  }

  private static func readMembers(_ reader: inout JSONReader) throws(JSONError) -> [String: Value] {
    var members: [String: Value] = [:]
    try reader.readObject { (key, reader) throws(JSONError) in
      let value = try read(&reader)
      guard members.updateValue(value, forKey: key.text) == nil else { throw reader.duplicateMember() }
    }
    return members
  }

  private static func read(_ reader: inout JSONReader) throws(JSONError) -> Value {
    switch try reader.nextKind() {
    case .object: return .object(try readMembers(&reader))
    case .array:
      var list: [Value] = []
      try reader.readArray { (reader) throws(JSONError) in list.append(try read(&reader)) }
      return .list(list)
    case .string: return .text(try reader.readString())
    case .number:
      guard let number = Double(String(decoding: try reader.readRaw(), as: UTF8.self)) else {
        throw reader.error("must be a number")
      }
      return .number(number)
    case .boolean: return .boolean(try reader.readBoolean())
    case .null:
      _ = try reader.readNull()
      return .null
    }
  }
}
