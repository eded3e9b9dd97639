/// A condition on the tags of a device: `(news && !muted) || vip`.
///
/// `all` and `any` have two or more operands, none of their own kind. The parser keeps this form; without it the text
/// of an expression would not parse to an equal expression.
package indirect enum TagExpression: Hashable, Sendable {
  /// The device carries the tag.
  case tag(String)
  /// The operand is false.
  case not(TagExpression)
  /// Every operand is true.
  case all([TagExpression])
  /// At least one operand is true.
  case any([TagExpression])

  /// The limits of an expression.
  package struct Limits: Sendable {
    /// The most different tags.
    package let tags: Int
    /// The most tags, counting repetitions: each is a condition of the registry's statements.
    package let places: Int
    /// The most bytes of UTF-8, as given and as written by `description`.
    package let length: Int

    /// Of an expression that a caller gives.
    package static let callers = Limits(tags: maximumTags, places: maximumPlaces, length: maximumLength)
    /// Of one in a record. The front end adds a tag for each time zone in use.
    package static let records = Limits(tags: 900, places: 900, length: 65_536)
  }

  /// The most different tags in an expression of a caller.
  package static let maximumTags = 64
  /// The most tags in it, counting repetitions.
  package static let maximumPlaces = 128
  /// The most bytes of an expression of a caller.
  package static let maximumLength = 4096
  /// The most levels of `(` and `!`. The limit permits recursion over an expression.
  package static let maximumDepth = 32

  /// Parses an expression: tags, `!`, `&&`, `||` in this order of precedence, parentheses and white
  /// space.
  ///
  /// A tag with characters outside `Tag.isValid`, such as `username:zoë`, is quoted; in quotes `\` escapes `"` and `\`.
  package init(_ text: String, within limits: Limits = .callers) throws(TagExpressionError) {
    var parser = TagExpressionParser(text, limits)
    self = try parser.parse()
  }

  /// All tags in the order of the text, with repetitions.
  package var tags: [String] {
    switch self {
    case .tag(let tag): [tag]
    case .not(let operand): operand.tags
    case .all(let operands), .any(let operands): operands.flatMap(\.tags)
    }
  }

  /// Whether the expression is true for a device; `carries` returns whether the device carries a
  /// tag.
  package func holds(where carries: (String) throws -> Bool) rethrows -> Bool {
    switch self {
    case .tag(let tag): try carries(tag)
    case .not(let operand): try !operand.holds(where: carries)
    case .all(let operands): try operands.allSatisfy { try $0.holds(where: carries) }
    case .any(let operands): try operands.contains { try $0.holds(where: carries) }
    }
  }
}

extension TagExpression: CustomStringConvertible {
  /// The canonical text with the fewest parentheses. It parses to an equal expression.
  package var description: String {
    switch self {
    case .tag(let tag): Tag.isValid(tag) ? tag : Self.quoted(tag)
    case .not(let operand): "!" + operand.operandText(within: 3)
    case .all(let operands): operands.map { $0.operandText(within: 2) }.joined(separator: " && ")
    case .any(let operands): operands.map { $0.operandText(within: 1) }.joined(separator: " || ")
    }
  }

  private var precedence: Int {
    switch self {
    case .tag, .not: 3
    case .all: 2
    case .any: 1
    }
  }

  private func operandText(within precedence: Int) -> String {
    self.precedence < precedence ? "(\(description))" : description
  }

  private static func quoted(_ tag: String) -> String {
    var text = "\""
    for scalar in tag.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { text.unicodeScalars.append("\\") }
      text.unicodeScalars.append(scalar)
    }
    text.unicodeScalars.append("\"")
    return text
  }
}

/// An error that tells why a text is no tag expression.
/// Names the expected syntax and the position, never the text.
package struct TagExpressionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The missing syntax, as the object of a sentence: `&&, || or the end`.
  package let expected: String
  /// The position in Unicode code points from 1; one past the end if the text ends too early.
  package let position: Int

  package init(expected: String, position: Int) {
    self.expected = expected
    self.position = position
  }

  package var description: String { "must have \(expected) at character \(position)" }
}
