import Foundation

/// A JSON value, parsed by Foundation to check hand-written JSON.
enum JSON: Hashable, Decodable {
  case object([String: JSON])
  case array([JSON])
  case string(String)
  case number(Double)
  case boolean(Bool)
  case null

  init(_ bytes: some Sequence<UInt8>) throws {
    self = try JSONDecoder().decode(JSON.self, from: Data(bytes))
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  /// The member of an object, or nil.
  subscript(_ key: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members[key]
  }

  /// The text of a string; nil for anything else.
  var text: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  /// The text as a JSON string.
  static func encoded(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(dictionaryLiteral elements: (String, JSON)...) { self = .object(Dictionary(uniqueKeysWithValues: elements)) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(integerLiteral value: Int) { self = .number(Double(value)) }
  init(booleanLiteral value: Bool) { self = .boolean(value) }
  init(nilLiteral: ()) { self = .null }
}
