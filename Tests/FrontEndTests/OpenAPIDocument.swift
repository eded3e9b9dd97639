import Foundation

@testable import FrontEnd

/// The description that the front end serves, taken apart.
struct OpenAPIDocument {
  /// One method of one path.
  struct Operation {
    let method: Harness.Method
    /// As the document has it: `/api/sends/{id}`.
    let path: String
    /// What goes before the path: nothing, and the prefix of hubs where there is one.
    let prefixes: [String]
    /// What is said of it.
    let json: JSON
  }

  /// An example of a request's body.
  struct Body {
    let operation: Operation
    let mediaType: String
    let text: String
  }

  let json: JSON

  /// Reads it.
  init() throws {
    json = try JSON(PackageResources.openapi_json)
  }

  /// Every operation, by path and method.
  var operations: [Operation] {
    (json["paths"]?.members ?? [:]).sorted { $0.key < $1.key }.flatMap { path, item in
      item.members.sorted { $0.key < $1.key }.compactMap { key, operation in
        // What belongs to all operations of a path stands beside them.
        guard let method = Harness.Method(rawValue: key.uppercased()) else { return nil }
        let servers = (operation["servers"] ?? json["servers"])?.elements ?? []
        let prefixes = servers.compactMap { $0["url"]?.text }.map { $0 == "/" ? "" : $0 }
        return Operation(method: method, path: path, prefixes: prefixes, json: operation)
      }
    }
  }

  /// Every example of a body that a request may have.
  func bodies() throws -> [Body] {
    try operations.flatMap { operation in
      let content = operation.json["requestBody"].flatMap(resolved)?["content"]?.members ?? [:]
      return try content.flatMap { type, media in
        let examples = media["examples"]?.members.values.compactMap { $0["value"] } ?? []
        return try (examples + [media["example"]].compactMap { $0 }).map { example in
          // One JSON value is an example as it is, anything else is written in a string.
          let text = type.hasSuffix("json") && !type.hasSuffix("ndjson") ? try example.serialized() : example.text ?? ""
          return Body(operation: operation, mediaType: type, text: text)
        }
      }
    }
  }

  /// The target of every `$ref`, wherever it stands.
  var references: Set<String> { Self.references(in: json) }

  /// What a reference leads to; nil where it leads nowhere.
  func target(of reference: String) -> JSON? {
    guard reference.hasPrefix("#/") else { return nil }
    return reference.dropFirst(2).split(separator: "/").reduce(Optional(json)) { $0?[String($1)] }
  }

  /// The value itself, or what it refers to.
  func resolved(_ value: JSON) -> JSON? {
    guard let reference = value["$ref"]?.text else { return value }
    return target(of: reference)
  }

  private static func references(in value: JSON) -> Set<String> {
    let own = value["$ref"]?.text.map { [$0] } ?? []
    return (Array(value.members.values) + value.elements).reduce(into: Set(own)) { $0.formUnion(references(in: $1)) }
  }
}

extension JSON {
  /// The members of an object; none of anything else.
  var members: [String: JSON] { if case .object(let members) = self { members } else { [:] } }
  /// The elements of an array; none of anything else.
  var elements: [JSON] { if case .array(let elements) = self { elements } else { [] } }

  /// The value as a document.
  func serialized() throws -> String { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
}

extension JSON: Encodable {
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .object(let members): try container.encode(members)
    case .array(let elements): try container.encode(elements)
    case .string(let text): try container.encode(text)
    case .number(let number):
      // As a whole number wherever it is one: others are refused where one is wanted.
      if let whole = Int64(exactly: number) { try container.encode(whole) } else { try container.encode(number) }
    case .boolean(let value): try container.encode(value)
    case .null: try container.encodeNil()
    }
  }
}
