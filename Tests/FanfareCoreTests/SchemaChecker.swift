import FanfareCore
import Foundation
import Testing
import Yams

/// Checks records against the schemas of `deploy/asyncapi.yaml`; supports the part of JSON Schema that these use.
struct SchemaChecker {
  /// Whether an object may have members that its schema does not name.
  enum Reading {
    /// Any, as in JSON Schema, unless the schema closes the object: for records that Fanfare reads.
    case open
    /// None, to find undocumented members that the codec writes: for records that Fanfare writes.
    case closed
  }

  /// The supported keywords; the document may use no others.
  static let keywords: Set<String> = [
    "$ref", "additionalProperties", "anyOf", "default", "description", "enum", "format", "items", "maxItems",
    "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "oneOf", "pattern",
    "properties", "propertyNames", "required", "type", "x-maxBytes",
  ]

  /// The document's schemas by name.
  let schemas: [String: Any]
  /// The document's channels by name.
  let channels: [String: [String: Any]]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "deploy/asyncapi.yaml"), encoding: .utf8)
    let document = try Yams.load(yaml: text) as? [String: Any]
    let components = document?["components"] as? [String: Any]
    schemas = try #require(components?["schemas"] as? [String: Any])
    channels = try #require(document?["channels"] as? [String: [String: Any]])
  }

  /// Descriptions of all violations of the schema; empty if the record is valid.
  func complaints(about record: [UInt8], schema name: String, _ reading: Reading) throws -> [String] {
    let schema = try #require(schemas[name] as? [String: Any])
    if let maximum = schema["x-maxBytes"] as? Int, record.count > maximum { return ["the record is too large"] }
    return try check(JSONTree(record), schema, at: "", reading)
  }

  private func check(_ value: JSONTree, _ schema: [String: Any], at path: String, _ reading: Reading) throws -> [String]
  {
    if let reference = schema["$ref"] as? String {
      let name = reference.split(separator: "/").last.map(String.init) ?? ""
      return try check(value, try #require(schemas[name] as? [String: Any]), at: path, reading)
    }
    var found = try checkAlternatives(value, schema, at: path)
    // One type, or several.
    let types = (schema["type"] as? String).map { [$0] } ?? schema["type"] as? [String]
    if let types, !types.contains(where: { Self.isOf($0, value) }) {
      return found + ["\(path) is no \(types.joined(separator: " or "))"]
    }
    switch value {
    case .object(let members): found += try checkObject(members, schema, at: path, reading)
    case .array(let elements):
      let items = schema["items"] as? [String: Any] ?? [:]
      if elements.count < schema["minItems"] as? Int ?? 0 { found.append("\(path) has too few elements") }
      if elements.count > schema["maxItems"] as? Int ?? .max { found.append("\(path) has too many elements") }
      for (index, element) in elements.enumerated() {
        found += try check(element, items, at: "\(path)[\(index)]", reading)
      }
    case .string(let text): found += try checkText(text, schema, at: path)
    case .number(let number):
      let isBelow = (schema["minimum"] as? Int).map { number < Double($0) } ?? false
      let isAbove = (schema["maximum"] as? Int).map { number > Double($0) } ?? false
      if isBelow || isAbove { found.append("\(path) is out of range") }
    case .boolean(let truth):
      if let values = schema["enum"] as? [Bool], !values.contains(truth) {
        found.append("\(path) is no permitted value")
      }
    case .null: break
    }
    return found
  }

  private static func isOf(_ type: String, _ value: JSONTree) -> Bool {
    switch (type, value) {
    case ("object", .object), ("array", .array), ("string", .string), ("boolean", .boolean), ("null", .null): true
    case ("number", .number): true
    case ("integer", .number(let number)): number == number.rounded()
    default: false
    }
  }

  private func checkAlternatives(_ value: JSONTree, _ schema: [String: Any], at path: String) throws -> [String] {
    for (keyword, permitted) in [("anyOf", 1...Int.max), ("oneOf", 1...1)] {
      guard let alternatives = schema[keyword] as? [[String: Any]] else { continue }
      let fitting = try alternatives.count { try check(value, $0, at: path, .open).isEmpty }
      if !permitted.contains(fitting) { return ["\(path) fits \(fitting) of the alternatives"] }
    }
    return []
  }

  private func checkText(_ text: String, _ schema: [String: Any], at path: String) throws -> [String] {
    if let words = schema["enum"] as? [Any], !words.contains(where: { "\($0)" == text }) {
      return ["\(path) is no known word"]
    }
    switch schema["format"] as? String {
    case nil: break
    case "uuid":
      let isUUID = text.wholeMatch(of: /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/) != nil
      if !isUUID { return ["\(path) is no uuid"] }
    case "date-time": if UnixTime(text) == nil { return ["\(path) is no date-time"] }
    case "tag-expression": do { _ = try TagExpression(text, within: .records) } catch { return ["\(path) \(error)"] }
    case let format: return ["\(path) has the unknown format \(format ?? "")"]
    }
    if let pattern = schema["pattern"] as? String {
      // Code points, as in ECMAScript: as characters, a colon with a combining mark would be no colon.
      let regex = try Regex(pattern).matchingSemantics(.unicodeScalar)
      if try regex.wholeMatch(in: text) == nil { return ["\(path) does not match"] }
    }
    let isTooLong = text.unicodeScalars.count > schema["maxLength"] as? Int ?? .max
    let isTooShort = text.unicodeScalars.count < schema["minLength"] as? Int ?? 0
    let isTooLarge = text.utf8.count > schema["x-maxBytes"] as? Int ?? .max
    return isTooLong || isTooShort || isTooLarge ? ["\(path) is too long or too short"] : []
  }

  private func checkObject(
    _ members: [String: JSONTree], _ schema: [String: Any], at path: String, _ reading: Reading
  ) throws -> [String] {
    let prefix = path.isEmpty ? "" : path + "."
    let properties = schema["properties"] as? [String: Any] ?? [:]
    var found = (schema["required"] as? [String] ?? []).filter { members[$0] == nil }.map {
      "\(prefix)\($0) is missing"
    }
    if members.count < schema["minProperties"] as? Int ?? 0 { found.append("\(path) has too few members") }
    if members.count > schema["maxProperties"] as? Int ?? .max { found.append("\(path) has too many members") }
    // An object without documented members has a push service's own form.
    let isClosed = schema["additionalProperties"] as? Bool == false || (reading == .closed && !properties.isEmpty)
    for (key, member) in members {
      if let names = schema["propertyNames"] as? [String: Any] { found += try checkText(key, names, at: prefix + key) }
      if let known = (properties[key] ?? schema["additionalProperties"]) as? [String: Any] {
        found += try check(member, known, at: prefix + key, reading)
      } else if isClosed {
        found.append("\(prefix)\(key) is unknown")
      }
    }
    return found
  }
}
