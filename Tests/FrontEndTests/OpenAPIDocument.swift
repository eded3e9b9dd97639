import Foundation

@testable import FrontEnd

/// The parsed description that the front end serves.
struct OpenAPIDocument {
  /// One method of one path.
  struct Operation {
    let method: Harness.Method
    /// The path in the document: `/api/sends/{id}`.
    let path: String
    /// The prefixes of the path: none, and that of hubs if the operation has it.
    let prefixes: [String]
    let json: JSON
  }

  /// An example of a request's body.
  struct Body {
    let operation: Operation
    let mediaType: String
    let text: String
  }

  let json: JSON

  init() throws {
    json = try JSON(PackageResources.openapi_json)
  }

  /// Every operation, by path and method.
  var operations: [Operation] {
    (json["paths"]?.members ?? [:]).sorted { $0.key < $1.key }.flatMap { path, item in
      item.members.sorted { $0.key < $1.key }.compactMap { key, operation in
        // Members that all operations of the path share are skipped.
        guard let method = Harness.Method(rawValue: key.uppercased()) else { return nil }
        let servers = (operation["servers"] ?? json["servers"])?.elements ?? []
        let prefixes = servers.compactMap { $0["url"]?.text }.map { $0 == "/" ? "" : $0 }
        return Operation(method: method, path: path, prefixes: prefixes, json: operation)
      }
    }
  }

  /// All examples of request bodies.
  func bodies() throws -> [Body] {
    try operations.flatMap { operation in
      let content = operation.json["requestBody"].flatMap(resolved)?["content"]?.members ?? [:]
      return try content.flatMap { type, media in
        let examples = media["examples"]?.members.values.compactMap { $0["value"] } ?? []
        return try (examples + [media["example"]].compactMap { $0 }).map { example in
          // Examples of other types than JSON are strings.
          let text = type.hasSuffix("json") && !type.hasSuffix("ndjson") ? try example.serialized() : example.text ?? ""
          return Body(operation: operation, mediaType: type, text: text)
        }
      }
    }
  }

  /// The targets of all `$ref`.
  var references: Set<String> { Self.references(in: json) }

  /// The target of a reference, or nil.
  func target(of reference: String) -> JSON? {
    guard reference.hasPrefix("#/") else { return nil }
    return reference.dropFirst(2).split(separator: "/").reduce(Optional(json)) { $0?[String($1)] }
  }

  /// The value, or the target of its reference.
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
  /// The members of an object; empty for other values.
  var members: [String: JSON] { if case .object(let members) = self { members } else { [:] } }
  /// The elements of an array; empty for other values.
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
      // Whole numbers without a fraction: the front end refuses 1.0 for an integer.
      if let whole = Int64(exactly: number) { try container.encode(whole) } else { try container.encode(number) }
    case .boolean(let value): try container.encode(value)
    case .null: try container.encodeNil()
    }
  }
}
