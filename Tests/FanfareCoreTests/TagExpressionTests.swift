import FanfareCore
import Support
import Testing

@Suite struct TagExpressionTests {
  private static let (a, b, c, d) = (
    TagExpression.tag("a"), TagExpression.tag("b"), TagExpression.tag("c"), TagExpression.tag("d")
  )

  static let readings: [(text: String, expression: TagExpression, canonical: String)] = [
    ("a", a, "a"), (" \t\r\n a ", a, "a"), ("((a))", a, "a"), ("\"a\"", a, "a"),
    ("a&&b", .all([a, b]), "a && b"), ("a||b", .any([a, b]), "a || b"), ("!a", .not(a), "!a"),
    ("! ! a", .not(.not(a)), "!!a"),
    ("a || b && c", .any([a, .all([b, c])]), "a || b && c"), ("a && b || c", .any([.all([a, b]), c]), "a && b || c"),
    ("(a || b) && c", .all([.any([a, b]), c]), "(a || b) && c"), ("!a && b", .all([.not(a), b]), "!a && b"),
    ("!(a && b)", .not(.all([a, b])), "!(a && b)"),
    ("!(a || b) || c", .any([.not(.any([a, b])), c]), "!(a || b) || c"),
    ("a && (b && c) && d", .all([a, b, c, d]), "a && b && c && d"),
    ("(a || b) || (c || d)", .any([a, b, c, d]), "a || b || c || d"),
    ("(a && b) && (c || d)", .all([a, b, .any([c, d])]), "a && b && (c || d)"),
    (
      "(news && !muted) || vip", .any([.all([.tag("news"), .not(.tag("muted"))]), .tag("vip")]), "news && !muted || vip"
    ),
    ("a-b:c.d#e@f_0&&b", .all([.tag("a-b:c.d#e@f_0"), b]), "a-b:c.d#e@f_0 && b"),
    (
      "username:bob||installation:7", .any([.tag("username:bob"), .tag("installation:7")]),
      "username:bob || installation:7"
    ),
    (
      #""username:zoë \"m\" \\ (&&)" && b"#, .all([.tag(#"username:zoë "m" \ (&&)"#), b]),
      #""username:zoë \"m\" \\ (&&)" && b"#
    ),
  ]

  @Test(arguments: readings)
  func expressionIsReadAndWritten(text: String, expression: TagExpression, canonical: String) throws {
    #expect(try TagExpression(text) == expression)
    #expect(expression.description == canonical)
    #expect(try TagExpression(canonical) == expression)
  }

  @Test(arguments: [
    ("", "a tag, ! or (", 1), ("   ", "a tag, ! or (", 4), ("a &&", "a tag, ! or (", 5),
    ("a && && b", "a tag, ! or (", 6),
    ("|| a", "a tag, ! or (", 1), ("!", "a tag, ! or (", 2), ("()", "a tag, ! or (", 2),
    ("a || (b || )", "a tag, ! or (", 12),
    ("é", "a tag, ! or (", 1), ("a b", "&&, || or the end", 3), ("a !b", "&&, || or the end", 3),
    ("a)", "&&, || or the end", 2),
    ("username:zoë", "&&, || or the end", 12), ("👩‍👩‍👧", "a tag, ! or (", 1), ("\"username:👩‍👩‍👧\" x", "&&, || or the end", 18),
    ("a & b", "&&", 3), ("a | b", "||", 3), ("a &", "&&", 3), ("(a", "&&, || or )", 3), ("(a && b", "&&, || or )", 8),
    ("(a b)", "&&, || or )", 4), ("a && \"b", "the closing quotation mark", 8), (#""a\n""#, "\" or \\", 4),
    ("a && \"b c\"", "a tag of \(Tag.rule)", 6), ("\"\"", "a tag of \(Tag.rule)", 1),
    ("a || " + String(repeating: "x", count: 121), "a tag of \(Tag.rule)", 6),
  ])
  func errorsContainThePosition(text: String, expected: String, position: Int) {
    #expect(throws: TagExpressionError(expected: expected, position: position)) { try TagExpression(text) }
  }

  @Test func equalTagsCountOnce() throws {
    func repeated(_ count: Int) -> String { (0..<count).map { "t\($0 % 64)" }.joined(separator: " || ") }
    #expect(try TagExpression(repeated(128)).tags.count == 128)
    let position = repeated(128).count + 5
    #expect(throws: TagExpressionError(expected: "no more than 128 tags with repetitions", position: position)) {
      try TagExpression(repeated(129))
    }
  }

  @Test func limitsAreEnforced() throws {
    func joined(_ count: Int) -> String { (0..<count).map { "t\($0)" }.joined(separator: " || ") }
    #expect(try TagExpression(joined(64)).tags.count == 64)
    #expect(throws: TagExpressionError(expected: "no more than 64 tags", position: joined(64).count + 5)) {
      try TagExpression(joined(65))
    }
    func nested(_ count: Int) -> String {
      String(repeating: "!(", count: count / 2) + "a" + String(repeating: ")", count: count / 2)
    }
    _ = try TagExpression(nested(32))
    #expect(throws: TagExpressionError(expected: "no more than 32 levels of ! and (", position: 33)) {
      try TagExpression(nested(34))
    }
    #expect(throws: TagExpressionError.self) { try TagExpression(String(repeating: "(", count: 4096)) }
    #expect(try TagExpression("a" + String(repeating: " ", count: 4095)) == .tag("a"))
    #expect(throws: TagExpressionError(expected: "no more than 4096 bytes", position: 4096)) {
      try TagExpression("a" + String(repeating: " ", count: 4096))
    }
    // The canonical text, with spaces, would be too long to be read again.
    let dense = (0..<34).map { String(repeating: "x", count: 118) + "\($0 % 10)" }.joined(separator: "&&")
    #expect(dense.utf8.count < 4096 + 20 && dense.utf8.count > 4096 - 120)
    #expect(throws: TagExpressionError.self) { try TagExpression(dense) }
  }

  /// A random expression keeps its meaning when it is written and read again.
  @Test(arguments: UInt64(1)...4) func randomExpressionKeepsTextAndMeaning(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let expression = Self.random(depth: 4, &random)
      let text = expression.description
      let read = try TagExpression(text)
      #expect(read == expression, "\(text)")
      #expect(try TagExpression(text.filter { $0 != " " || text.contains("\"") }) == expression)
      for subset in 0..<8 {
        let carried = ["a", "b", "username:z ö"].enumerated().filter { subset & 1 << $0.offset != 0 }.map(\.element)
        #expect(read.holds { carried.contains($0) } == Self.holds(expression, carried))
      }
    }
  }

  /// An expression in the parser's form: no operand of its parent's kind.
  private static func random(depth: Int, excluding kind: Int = -1, _ random: inout SeededGenerator) -> TagExpression {
    let kinds = (depth == 0 ? [0] : [0, 1, 2, 3]).filter { $0 != kind }
    func operands(_ kind: Int, _ random: inout SeededGenerator) -> [TagExpression] {
      var list: [TagExpression] = []
      for _ in 0..<Int.random(in: 2...3, using: &random) {
        list.append(Self.random(depth: depth - 1, excluding: kind, &random))
      }
      return list
    }
    return switch kinds.randomElement(using: &random) ?? 0 {
    case 1: .not(Self.random(depth: depth - 1, &random))
    case 2 where depth <= 3: .all(operands(2, &random))
    case 3 where depth <= 3: .any(operands(3, &random))
    default: .tag(["a", "b", "username:z ö"].randomElement(using: &random) ?? "a")
    }
  }

  private static func holds(_ expression: TagExpression, _ carried: [String]) -> Bool {
    switch expression {
    case .tag(let tag): carried.contains(tag)
    case .not(let operand): !holds(operand, carried)
    case .all(let operands): !operands.contains { !holds($0, carried) }
    case .any(let operands): operands.contains { holds($0, carried) }
    }
  }
}
