import FanfareCore
import Foundation
import FoundationXML
import Testing

/// Random templates and hostile values, against a slow evaluator written from the rules of the language, and against
/// other parsers of JSON and XML.
@Suite struct TemplatePropertyTests {
  @Test func rendered_json_has_the_values_of_a_slow_evaluator() throws {
    var random = TemplateGenerator(seed: 1)
    for _ in 0..<2000 {
      let tree: [String: Any] = [
        "aps": ["alert": random.value(), "list": [random.value(), 1, true]], random.hostileText(): random.value(),
      ]
      let source = String(decoding: try JSONSerialization.data(withJSONObject: tree), as: UTF8.self)
      let properties = random.properties()
      let rendered = try Template(source, .json).render(TemplateValues(properties: properties))
      let result = try JSONSerialization.jsonObject(with: Data(rendered))
      let expected = SlowEvaluator(properties: properties).evaluate(tree)
      #expect((result as? NSDictionary) == (expected as? NSDictionary), "\(source) with \(properties)")
    }
  }

  @Test func rendered_xml_has_the_values_of_a_slow_evaluator() throws {
    var random = TemplateGenerator(seed: 2)
    for _ in 0..<2000 {
      let values = (0..<3).map { _ in random.value() }
      let properties = random.properties(isXML: true)
      let evaluator = SlowEvaluator(properties: properties)
      let source = """
        <toast launch="\(SlowEvaluator.escaped(values[0]))"><text>\(SlowEvaluator.escaped(values[1]))</text>\
        <text id='1'>\(SlowEvaluator.escaped(values[2]))</text></toast>
        """
      let rendered = try Template(source, .xml).render(TemplateValues(properties: properties))
      let events = try XMLEvents(of: rendered)
      #expect(events.elements == ["toast", "text", "text"], "\(source) with \(properties)")
      let expected = values.map(evaluator.evaluate)
      #expect([events.launch, events.texts[0], events.texts[1]] == expected, "\(source) with \(properties)")
    }
  }

  @Test func random_bytes_are_compiled_or_refused() throws {
    var random = TemplateGenerator(seed: 3)
    for _ in 0..<20_000 {
      let source = random.nonsense()
      for syntax in [Template.Syntax.json, .xml, .text] {
        // Only that it returns matters.
        if let template = try? Template(source, syntax) {
          _ = try template.render(TemplateValues(properties: ["a": source]))
        }
      }
    }
  }
}

/// Makes values of templates and hostile properties from a seed.
private struct TemplateGenerator {
  private var generator: SplitMix64
  private static let names = ["a", "b_1", "LongName", "missing"]
  private static let fragments = [
    "\"", "\\", "</text>", "<", ">", "&amp;", "&", "'", "''", "{", "}", "$(a)", "#(", "\n", "\t", "ü", "😀", "e\u{301}",
    "]]>", "<!--", "-->", "text", " ", "%41", "null", "\",\"x\":\"", "+", "$", ",", "1", "0.5",
  ]

  init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &generator)]
  }

  mutating func hostileText() -> String {
    (0..<Int.random(in: 0...6, using: &generator)).map { _ in pick(Self.fragments) }.joined()
  }

  mutating func nonsense() -> String {
    let fragments =
      Self.fragments + ["$(a", "(a, 2)", "a:{x}", "{'x' + ", "{\"a\":\"", "\"}", "<t>", "</t>", "<t a='", "'>"]
    return (0..<Int.random(in: 0...8, using: &generator)).map { _ in pick(fragments) }.joined()
  }

  mutating func properties(isXML: Bool = false) -> [String: String] {
    var properties: [String: String] = [:]
    for name in Self.names where name != "missing" {
      properties[name.lowercased()] =
        isXML ? hostileText() : pick([hostileText(), hostileText(), "12", "1.5", "0", "01", "\u{1}\u{1F}"])
    }
    return properties
  }

  /// A value of a template: literal text or an expression.
  mutating func value() -> String {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: "x" + hostileText()
    case 1: property("#", takesLimit: false)
    case 2: simple()
    default: "{" + (0..<Int.random(in: 1...3, using: &generator)).map { _ in part() }.joined(separator: " + ") + "}"
    }
  }

  private mutating func part() -> String {
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: "'" + hostileText().replacing("'", with: "''") + "'"
    case 1: "\"" + hostileText().replacing("\"", with: "\"\"") + "\""
    default: simple()
    }
  }

  private mutating func simple() -> String {
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: property("$", takesLimit: Bool.random(using: &generator))
    case 1: property(".", takesLimit: true)
    default: property("%", takesLimit: false)
    }
  }

  private mutating func property(_ sigil: String, takesLimit: Bool) -> String {
    var text = "\(sigil)(\(pick(Self.names))"
    if Bool.random(using: &generator) {
      text += ":{" + hostileText().replacing("\\", with: "\\\\").replacing("}", with: "\\}") + "}"
    }
    return takesLimit ? text + ", \(Int.random(in: 0...6, using: &generator)))" : text + ")"
  }
}

/// Evaluates values of templates with regular expressions, one rule of the language after the other.
private struct SlowEvaluator {
  let properties: [String: String]

  func evaluate(_ tree: Any) -> Any {
    switch tree {
    case let object as [String: Any]: object.mapValues(evaluate)
    case let array as [Any]: array.map(evaluate)
    case let text as String: number(text) ?? evaluate(text)
    default: tree
    }
  }

  /// The number that `#(name)` stands for.
  private func number(_ text: String) -> Any? {
    guard text.hasPrefix("#"), evaluate(text).wholeMatch(of: /(0|[1-9][0-9]*)(\.[0-9]+)?((e|E)(\+|-)?[0-9]+)?/) != nil
    else { return nil }
    return NSDecimalNumber(string: evaluate(text)).doubleValue
  }

  func evaluate(_ text: String) -> String {
    guard let first = text.unicodeScalars.first, "$.%#{".unicodeScalars.contains(first) else { return text }
    var rest = text[...]
    guard first == "{" else { return property(&rest) }
    rest = rest.dropFirst().dropLast()
    var result = ""
    while true {
      if let quote = rest.first, quote == "'" || quote == "\"" {
        rest.removeFirst()
        while true {
          let end = rest.unicodeScalars.firstIndex { $0 == quote.unicodeScalars.first } ?? rest.endIndex
          result += rest[..<end]
          rest = Substring(rest.unicodeScalars[end...].dropFirst())
          guard rest.unicodeScalars.first == quote.unicodeScalars.first else { break }
          result.unicodeScalars.append(contentsOf: quote.unicodeScalars)
          rest = Substring(rest.unicodeScalars.dropFirst())
        }
      } else {
        result += property(&rest)
      }
      guard rest.hasPrefix(" + ") else { return result }
      rest = rest.dropFirst(3)
    }
  }

  private func property(_ rest: inout Substring) -> String {
    let pattern = /([$.%#])\(([A-Za-z0-9_]+)(?::\{((?:\\.|[^\\}])*)\})?(?:, ([0-9]+))?\)/
      .dotMatchesNewlines().matchingSemantics(.unicodeScalar)
    guard let match = rest.prefixMatch(of: pattern) else { return "no expression: \(rest)" }
    rest = rest[match.range.upperBound...]
    var value = properties[match.2.lowercased()] ?? ""
    if value.isEmpty, let fallback = match.3 {
      value = String(fallback.replacing(/\\(.)/.dotMatchesNewlines().matchingSemantics(.unicodeScalar)) { $0.1 })
    }
    if match.1 == "%" {
      let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
      return value.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
    guard let limit = match.4.flatMap({ Int($0) }), value.utf16.count > limit else { return value }
    if match.1 == "$" { return clip(value, limit) }
    return limit < 3 ? clip("...", limit) : clip(value, limit - 3) + "..."
  }

  private func clip(_ text: String, _ limit: Int) -> String {
    var scalars = Array(text.unicodeScalars)
    while scalars.reduce(0, { $0 + String($1).utf16.count }) > limit { scalars.removeLast() }
    return scalars.reduce(into: "") { $0.unicodeScalars.append($1) }
  }

  /// Text as an attribute or element holds it.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.map { $0.value < 0x20 || "<>&\"'".unicodeScalars.contains($0) ? "&#\($0.value);" : String($0) }
      .joined()
  }
}

/// What a parser of XML finds in a toast.
private final class XMLEvents: NSObject, XMLParserDelegate {
  private(set) var elements: [String] = []
  private(set) var launch = ""
  private(set) var texts: [String] = []

  init(of document: [UInt8]) throws {
    super.init()
    let parser = XMLParser(data: Data(document))
    parser.delegate = self
    guard parser.parse() else { throw parser.parserError ?? CocoaError(.fileReadCorruptFile) }
  }

  func parser(
    _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    elements.append(element)
    if let value = attributes["launch"] { launch = value }
    if element == "text" { texts.append("") }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    if !texts.isEmpty { texts[texts.count - 1] += string }
  }
}
