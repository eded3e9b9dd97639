/// An expression of the template language: inserts properties of a send into one value of a template.
///
/// The language is that of Azure Notification Hubs. A value whose first character is `$`, `.`, `%`, `#` or `{` is an
/// expression; any other value is literal text.
///
/// | expression | value |
/// |---|---|
/// | `$(name)` | the property, or nothing |
/// | `$(name, n)` | its first n characters |
/// | `.(name, n)` | the same; a longer value ends with `...` within the n characters |
/// | `%(name)` | percent-encoded for a URI |
/// | `#(name)` | in JSON a number, if the property is one |
/// | `$(name:{text})` | a default, for a missing or empty property; `\` escapes a character |
/// | `{a + 'text' + b}` | expressions and literals joined; a doubled quote stands for one |
///
/// Names are compared without regard to letter case.
struct TemplateExpression: Hashable, Sendable {
  enum Part: Hashable, Sendable {
    case literal(String)
    case property(Property)
  }

  /// The value of one property.
  struct Property: Hashable, Sendable {
    /// In lower case.
    let name: String
    var fallback = ""
    /// The most characters (UTF-16 code units, as .NET counts them); nil: all.
    var limit: Int?
    var hasEllipsis = false
    var isPercentEncoded = false
  }

  let parts: [Part]
  /// Whether it is `#(name)`.
  let isNumber: Bool

  /// The most characters of a property's name.
  static let maximumNameLength = 120
  /// The rule for a property's name as stated in error messages.
  static let nameRule = "1 to 120 characters of A–Z a–z 0–9 _"

  /// Whether the text is a property's name.
  static func isName(_ text: String) -> Bool {
    (1...maximumNameLength).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") }
  }

  /// Parses a value of a template; nil if it is literal text.
  init?(_ text: String) throws(TemplateError) {
    var parser = Parser(text)
    guard let first = parser.peek(), "$.%#{".unicodeScalars.contains(first) else { return nil }
    if first == "{" {
      (parts, isNumber) = (try parser.readComposite(), false)
    } else {
      parts = [.property(try parser.readProperty())]
      isNumber = first == "#"
    }
    parser.skipWhitespace()
    guard parser.peek() == nil else {
      throw parser.error("must end here; to join it with text, write {… + 'text'}")
    }
  }

  /// The names of all properties that it inserts.
  var names: [String] {
    parts.compactMap {
      switch $0 {
      case .property(let property): property.name
      case .literal: nil
      }
    }
  }
}

extension TemplateExpression {
  /// Reads the grammar from the start of a value to its end.
  private struct Parser {
    private let scalars: [Unicode.Scalar]
    private var position = 0

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    func peek() -> Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    func error(_ problem: String) -> TemplateError { TemplateError(character: position + 1, problem: problem) }

    mutating func skipWhitespace() {
      while let next = peek(), next.properties.isWhitespace { position += 1 }
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
      guard peek() == scalar else { return false }
      position += 1
      return true
    }

    private mutating func takeWhile(_ accepts: (Unicode.Scalar) -> Bool) -> String {
      var text = String.UnicodeScalarView()
      while let next = peek(), accepts(next) {
        text.append(next)
        position += 1
      }
      return String(text)
    }

    /// Reads `{a + b}`.
    mutating func readComposite() throws(TemplateError) -> [Part] {
      position += 1
      var parts: [Part] = []
      while true {
        skipWhitespace()
        switch peek() {
        case "'", "\"": parts.append(.literal(try readLiteral()))
        case "#": throw error("must not be #() inside {…}")
        case "$", ".", "%": parts.append(.property(try readProperty()))
        default: throw error("must be $(), .(), %() or a quoted text")
        }
        skipWhitespace()
        if take("+") { continue }
        guard take("}") else { throw error("must be '+' or '}'") }
        return parts
      }
    }

    private mutating func readLiteral() throws(TemplateError) -> String {
      let (start, quote) = (position, scalars[position])
      position += 1
      var text = ""
      while true {
        text += takeWhile { $0 != quote }
        guard take(quote) else {
          position = start
          throw error("begins a text without a closing quote")
        }
        guard take(quote) else { return text }
        text.unicodeScalars.append(quote)
      }
    }

    /// Reads `$(name)` and its relatives.
    mutating func readProperty() throws(TemplateError) -> Property {
      let sigil = scalars[position]
      position += 1
      guard take("(") else { throw error("must be '(' after \(sigil); literal text is written {'\(sigil)…'}") }
      skipWhitespace()
      let start = position
      let name = takeWhile { $0 == "_" || $0.isASCII && ($0.properties.isAlphabetic || "0"..."9" ~= $0) }
      guard !name.isEmpty else { throw error("must be a property's name of A–Z a–z 0–9 _") }
      guard name.count <= maximumNameLength else {
        position = start
        throw error("begins a name of more than \(maximumNameLength) characters")
      }
      var property = Property(name: name.lowercased(), hasEllipsis: sigil == ".", isPercentEncoded: sigil == "%")
      skipWhitespace()
      if take(":") { property.fallback = try readFallback() }
      skipWhitespace()
      if peek() == "," {
        guard sigil == "$" || sigil == "." else { throw error("must be ')': \(sigil)() takes no length") }
        position += 1
        property.limit = try readLimit()
      } else if sigil == "." {
        throw error("must be ',' and a length")
      }
      guard take(")") else { throw error("must be ')'") }
      return property
    }

    private mutating func readLimit() throws(TemplateError) -> Int {
      skipWhitespace()
      let start = position
      let digits = takeWhile { "0"..."9" ~= $0 }
      guard let limit = Int32(digits) else {
        position = start
        throw error("must be a whole number, the most characters")
      }
      skipWhitespace()
      return Int(limit)
    }

    private mutating func readFallback() throws(TemplateError) -> String {
      let start = position
      guard take("{") else { throw error("must be '{' and a default") }
      var text = String.UnicodeScalarView()
      while let next = peek() {
        position += 1
        if next == "}" { return String(text) }
        guard next == "\\" else {
          text.append(next)
          continue
        }
        guard let escaped = peek() else { break }
        text.append(escaped)
        position += 1
      }
      position = start
      throw error("begins a default without a closing brace")
    }
  }
}

/// An error in a template. It names the value and the character, and quotes neither.
package struct TemplateError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The value as a path (`aps.alert`, `toast.visual.text`); empty: the whole template.
  package var field = ""
  /// The character of the value, from 1; nil: the whole value.
  package let character: Int?
  /// The rest of a sentence that begins with the place.
  package let problem: String

  init(field: String = "", character: Int? = nil, problem: String) {
    (self.field, self.character, self.problem) = (field, character, problem)
  }

  init(_ error: JSONError) { self.init(field: error.field, problem: error.problem) }

  /// The same error in the value at the path.
  func within(_ field: String) -> TemplateError {
    TemplateError(field: field, character: character, problem: problem)
  }

  package var description: String {
    let place = [field, character.map { "character \($0)" } ?? ""].filter { !$0.isEmpty }.joined(separator: ", ")
    return place.isEmpty ? problem : "\(place) \(problem)"
  }
}
