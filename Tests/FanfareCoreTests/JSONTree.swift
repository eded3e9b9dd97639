import FanfareCore

/// A JSON value as a tree, for tests that inspect or change documents.
enum JSONTree: Hashable, Sendable {
  case object([String: JSONTree])
  case array([JSONTree])
  case string(String)
  case number(Double)
  case boolean(Bool)
  case null

  /// Reads a document; the last of repeated members counts.
  init(_ document: [UInt8]) throws {
    var reader = try JSONReader(document[...])
    self = try Self.read(from: &reader)
    try reader.finish()
  }

  private static func read(from reader: inout JSONReader) throws(JSONError) -> JSONTree {
    switch try reader.nextKind() {
    case .object:
      var members: [String: JSONTree] = [:]
      try reader.readObject { (key, reader) throws(JSONError) in members[key.text] = try read(from: &reader) }
      return .object(members)
    case .array:
      var elements: [JSONTree] = []
      try reader.readArray { (reader) throws(JSONError) in elements.append(try read(from: &reader)) }
      return .array(elements)
    case .string: return .string(try reader.readString())
    case .number: return .number(Double(String(decoding: try reader.readRaw(), as: UTF8.self)) ?? .nan)
    case .boolean: return .boolean(try reader.readBoolean())
    case .null:
      _ = try reader.readNull()
      return .null
    }
  }

  /// The document as text; whole numbers are written without a fraction.
  var encoded: [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  private func append(to output: inout [UInt8]) {
    switch self {
    case .object(let members):
      output.append(UInt8(ascii: "{"))
      for (index, (key, value)) in members.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        output.appendJSON(key)
        output.append(UInt8(ascii: ":"))
        value.append(to: &output)
      }
      output.append(UInt8(ascii: "}"))
    case .array(let elements):
      output.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        element.append(to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .string(let text): output.appendJSON(text)
    case .number(let number): output.append(contentsOf: (Int64(exactly: number).map { "\($0)" } ?? "\(number)").utf8)
    case .boolean(let value): output.append(contentsOf: "\(value)".utf8)
    case .null: output.append(contentsOf: "null".utf8)
    }
  }
}
