/// A recursive-descent parser for tag expressions of limited depth.
/// See `TagExpression.init(_:)` for the grammar.
struct TagExpressionParser {
  private static let operand = "a tag, ! or ("

  private let limits: TagExpression.Limits
  private let scalars: [Unicode.Scalar]
  private let isTooLong: Bool
  private var index = 0
  private var depth = 0
  /// The tags so far, by their bytes.
  private var tags: Set<[UInt8]> = []
  private var places = 0

  init(_ text: String, _ limits: TagExpression.Limits) {
    self.limits = limits
    isTooLong = text.utf8.count > limits.length
    // An overlong text is rejected, so the rest is not needed.
    scalars = Array(text.unicodeScalars.prefix(limits.length))
  }

  /// Parses the whole text.
  mutating func parse() throws(TagExpressionError) -> TagExpression {
    guard !isTooLong else { throw tooLong }
    let expression = try readAny()
    guard index == scalars.count else { throw error("&&, || or the end") }
    // The canonical text has spaces around operators and may be longer than the given text.
    guard expression.description.utf8.count <= limits.length else { throw tooLong }
    return expression
  }

  private mutating func readAny() throws(TagExpressionError) -> TagExpression {
    var operands = [try readAll()]
    while try takeOperator("|") { operands.append(try readAll()) }
    guard operands.count > 1 else { return operands[0] }
    return .any(operands.flatMap { if case .any(let inner) = $0 { inner } else { [$0] } })
  }

  private mutating func readAll() throws(TagExpressionError) -> TagExpression {
    var operands = [try readOperand()]
    while try takeOperator("&") { operands.append(try readOperand()) }
    guard operands.count > 1 else { return operands[0] }
    return .all(operands.flatMap { if case .all(let inner) = $0 { inner } else { [$0] } })
  }

  private mutating func readOperand() throws(TagExpressionError) -> TagExpression {
    skipWhitespace()
    switch next {
    case "!": return .not(try descend { (parser) throws(TagExpressionError) in try parser.readOperand() })
    case "(":
      return try descend { (parser) throws(TagExpressionError) in
        let inner = try parser.readAny()
        guard parser.next == ")" else { throw parser.error("&&, || or )") }
        parser.index += 1
        return inner
      }
    case let scalar?:
      let start = index
      guard let tag = try scalar == "\"" ? readQuoted() : readPlain() else { throw error(Self.operand) }
      guard Tag.isAddressable(tag) else {
        throw TagExpressionError(expected: "a tag of \(Tag.rule)", position: start + 1)
      }
      tags.insert(Array(tag.utf8))
      guard tags.count <= limits.tags else {
        throw TagExpressionError(expected: "no more than \(limits.tags) tags", position: start + 1)
      }
      places += 1
      guard places <= limits.places else {
        throw TagExpressionError(
          expected: "no more than \(limits.places) tags with repetitions", position: start + 1)
      }
      skipWhitespace()
      return .tag(tag)
    case nil: throw error(Self.operand)
    }
  }

  /// Skips the character that opens a level, and parses the level.
  private mutating func descend(
    _ body: (inout Self) throws(TagExpressionError) -> TagExpression
  ) throws(TagExpressionError) -> TagExpression {
    guard depth < TagExpression.maximumDepth else {
      throw error("no more than \(TagExpression.maximumDepth) levels of ! and (")
    }
    index += 1
    depth += 1
    let expression = try body(&self)
    depth -= 1
    skipWhitespace()
    return expression
  }

  /// Skips an operator of two equal characters.
  /// Returns false and consumes nothing if it is not next.
  private mutating func takeOperator(_ character: Unicode.Scalar) throws(TagExpressionError) -> Bool {
    guard next == character else { return false }
    guard index + 1 < scalars.count, scalars[index + 1] == character else { throw error("\(character)\(character)") }
    index += 2
    return true
  }

  /// Reads an unquoted tag; nil if the next character cannot begin one.
  private mutating func readPlain() -> String? {
    let start = index
    while let scalar = next, scalar.isASCII, Tag.isCharacter(UInt8(truncatingIfNeeded: scalar.value)) { index += 1 }
    return index > start ? text(start..<index) : nil
  }

  private mutating func readQuoted() throws(TagExpressionError) -> String? {
    index += 1
    var tag = String.UnicodeScalarView()
    while let scalar = next {
      index += 1
      switch scalar {
      case "\"": return String(tag)
      case "\\":
        guard let escaped = next, escaped == "\"" || escaped == "\\" else { throw error("\" or \\") }
        index += 1
        tag.append(escaped)
      default: tag.append(scalar)
      }
    }
    throw error("the closing quotation mark")
  }

  private var next: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

  private mutating func skipWhitespace() {
    while let scalar = next, scalar == " " || scalar == "\t" || scalar == "\n" || scalar == "\r" { index += 1 }
  }

  private func text(_ range: Range<Int>) -> String {
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars[range])
    return String(view)
  }

  private func error(_ expected: String) -> TagExpressionError {
    TagExpressionError(expected: expected, position: index + 1)
  }

  private var tooLong: TagExpressionError {
    TagExpressionError(expected: "no more than \(limits.length) bytes", position: scalars.count)
  }
}
