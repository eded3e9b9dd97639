/// A condition on the tags of a device, as senders write it: `(news && !muted) || vip`.
///
/// `all` and `any` have two or more operands, none of which is of their own kind: so the parser makes them, and only so
/// the text of an expression leads back to an equal one.
package indirect enum TagExpression: Hashable, Sendable {
  /// The device carries the tag.
  case tag(String)
  /// The operand does not hold.
  case not(TagExpression)
  /// Every operand holds.
  case all([TagExpression])
  /// At least one operand holds.
  case any([TagExpression])

  /// The most tags in one expression, counting each time that one is named.
  package static let maximumTags = 64
  /// The most bytes of UTF-8 in the text of an expression, as it is given and as `description` writes it.
  package static let maximumLength = 4096
  /// How deep `(` and `!` may nest: whoever walks an expression may do it by recursion.
  package static let maximumDepth = 32

  /// Reads an expression: tags, `!` before `&&` before `||`, parentheses, white space anywhere between them. A tag that
  /// is not made of a tag's usual characters, as `username:zoë` is not, stands in quotation marks, in which `\` goes
  /// before `"` and `\`.
  package init(_ text: String) throws(TagExpressionError) {
    var parser = TagExpressionParser(text)
    self = try parser.parse()
  }

  /// Every tag that is named, as often as it is, in the order of the text.
  package var tags: [String] {
    switch self {
    case .tag(let tag): [tag]
    case .not(let operand): operand.tags
    case .all(let operands), .any(let operands): operands.flatMap(\.tags)
    }
  }

  /// Whether the expression holds for a device of which `carries` tells whether it carries a tag.
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
  /// The canonical text: no more parentheses than it needs. Read back it gives an equal expression.
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
