import FanfareCore
import Testing

@testable import FrontEnd

/// The examples of the OpenAPI document: complete, and valid against their schemas.
@Suite struct ExampleTests {
  private let document: OpenAPIDocument

  init() throws {
    document = try OpenAPIDocument()
  }

  /// The bodies of one request or answer by media type, with a label.
  private func contents() -> [(label: String, type: String, media: JSON)] {
    document.operations.flatMap { operation in
      let label = "\(operation.method) \(operation.path)"
      let answers = (operation.json["responses"]?.members ?? [:]).map { ("\(label) \($0.key)", $0.value) }
      let bodies = [operation.json["requestBody"]].compactMap(\.self).map { ("\(label) body", $0) }
      return (bodies + answers).flatMap { label, holder in
        (document.resolved(holder)?["content"]?.members ?? [:]).map { (label, $0.key, $0.value) }
      }
    }
  }

  private static func examples(of media: JSON) -> [JSON] {
    (media["examples"]?.members.values.compactMap { $0["value"] } ?? []) + [media["example"]].compactMap(\.self)
  }

  @Test func everyBodyAndAnswerHasAnExample() {
    for (label, type, media) in contents() {
      // The answers of these routes are files.
      let isFile = label.contains("/docs") || label.contains("/openapi.json")
      #expect(isFile && !type.hasPrefix("application/problem") || !Self.examples(of: media).isEmpty, "\(label) \(type)")
    }
  }

  @Test func everyExampleIsValid() throws {
    var count = 0
    for (label, type, media) in contents() {
      let schema = try #require(media["schema"], "\(label) \(type)")
      for example in Self.examples(of: media) {
        count += 1
        #expect(SchemaCheck(document: document).problems(of: example, under: schema) == [], "\(label) \(type)")
      }
    }
    #expect(count > 100)
  }

  @Test func everyProblemInAnExampleIsOneThatTheServerMakes() throws {
    for (label, type, media) in contents() where type == Problem.mediaType {
      for example in Self.examples(of: media) {
        let code = try #require(example["code"]?.text.flatMap(ProblemCode.init(rawValue:)), "\(label)")
        let made = try JSON(Problem(refusal: Refusal(code, ""), requestID: "").document)
        for member in ["type", "title", "status"] { #expect(example[member] == made[member], "\(label)") }
      }
    }
  }

  /// A check that accepts everything would prove nothing.
  @Test func brokenExamplesAreFound() throws {
    let check = SchemaCheck(document: document)
    for (schema, text) in [
      ("SendReference", #"{}"#), ("SendReference", #"{"id":"7"}"#), ("SendReference", #"[]"#),
      ("Send", #"{"to":{"user":"bob"},"message":{"body":"x"},"later":1}"#), ("Send", #"{"to":{"user":"bob"}}"#),
      ("Send", #"{"to":{"user":"bob"},"message":{"body":"x"},"ttl":0}"#),
      ("Send", #"{"to":{"user":"bob"},"message":{"body":"x"},"template":{}}"#),
      ("Send", #"{"to":{"user":"bob"},"message":{"body":"x"},"priority":"urgent"}"#),
      ("Problem", #"{"code":"unheard"}"#), ("Registration", #"{"tags":7}"#),
      ("OutcomeCounts", #"{"delivered":"1"}"#), ("OutcomeCounts", #"{"lost":1}"#),
    ] {
      let target = try #require(document.target(of: "#/components/schemas/\(schema)"))
      #expect(check.problems(of: try JSON(Array(text.utf8)), under: target) != [], "\(schema) \(text)")
    }
  }
}

/// Checks values against schemas of the document; knows the keywords that its examples need.
private struct SchemaCheck {
  let document: OpenAPIDocument

  func problems(of value: JSON, under schema: JSON, at path: String = "$") -> [String] {
    if schema == .boolean(false) { return ["\(path): not permitted"] }
    var found: [String] = []
    if let reference = schema["$ref"]?.text {
      guard let target = document.target(of: reference) else { return ["\(path): \(reference) leads nowhere"] }
      found += problems(of: value, under: target, at: path)
    }
    for part in schema["allOf"]?.elements ?? [] { found += problems(of: value, under: part, at: path) }
    for (word, permitted) in [("oneOf", 1...1), ("anyOf", 1...Int.max)] {
      guard let parts = schema[word]?.elements else { continue }
      let count = parts.count { problems(of: value, under: $0, at: path).isEmpty }
      if !permitted.contains(count) { found.append("\(path): matches \(count) of \(word)") }
    }
    if let part = schema["not"], problems(of: value, under: part, at: path).isEmpty { found.append("\(path): not") }
    if let types = schema["type"].map({ $0.text.map { [$0] } ?? $0.elements.compactMap(\.text) }),
      !types.contains(where: { value.isOf($0) })
    {
      return found + ["\(path): must be \(types)"]
    }
    if let constant = schema["const"], constant != value { found.append("\(path): must be the constant") }
    if let words = schema["enum"]?.elements, !words.contains(value) { found.append("\(path): must be one of enum") }
    switch value {
    case .object(let members): found += problems(ofMembers: members, under: schema, at: path)
    case .array(let elements):
      if let items = schema["items"] {
        for (index, element) in elements.enumerated() {
          found += problems(of: element, under: items, at: "\(path)[\(index)]")
        }
      }
      if case .number(let least)? = schema["minItems"], Double(elements.count) < least {
        found.append("\(path): minItems")
      }
    case .number(let number):
      if case .number(let least)? = schema["minimum"], number < least { found.append("\(path): minimum") }
      if case .number(let most)? = schema["maximum"], number > most { found.append("\(path): maximum") }
    case .string(let text):
      // A pattern that cannot be read counts as broken.
      if let pattern = schema["pattern"]?.text, (try? Regex(pattern).firstMatch(in: text)) == nil {
        found.append("\(path): pattern")
      }
    case .boolean, .null: break
    }
    return found
  }

  private func problems(ofMembers members: [String: JSON], under schema: JSON, at path: String) -> [String] {
    var found: [String] = []
    for name in schema["required"]?.elements.compactMap(\.text) ?? [] where members[name] == nil {
      found.append("\(path): \(name) is missing")
    }
    let named = schema["properties"]?.members ?? [:]
    for (name, member) in members {
      if let names = schema["propertyNames"] { found += problems(of: .string(name), under: names, at: path) }
      if let part = named[name] {
        found += problems(of: member, under: part, at: "\(path).\(name)")
      } else if schema["additionalProperties"] == .boolean(false) {
        found.append("\(path): \(name) is unknown")
      } else if let others = schema["additionalProperties"], case .object = others {
        found += problems(of: member, under: others, at: "\(path).\(name)")
      }
    }
    let count = Double(members.count)
    if case .number(let least)? = schema["minProperties"], count < least { found.append("\(path): minProperties") }
    if case .number(let most)? = schema["maxProperties"], count > most { found.append("\(path): maxProperties") }
    return found
  }
}

extension JSON {
  fileprivate func isOf(_ type: String) -> Bool {
    switch self {
    case .object: type == "object"
    case .array: type == "array"
    case .string: type == "string"
    case .number(let number): type == "number" || (type == "integer" && number == number.rounded())
    case .boolean: type == "boolean"
    case .null: type == "null"
    }
  }
}
