/// Random audiences.
package enum AudienceWords {
  /// The text of a random expression over the tags.
  package static func expression(over tags: [String], depth: Int, using random: inout SeededGenerator) -> String {
    switch depth == 0 ? 0 : Int.random(in: 0..<4, using: &random) {
    case 1: return "!(" + expression(over: tags, depth: depth - 1, using: &random) + ")"
    case let kind where kind > 1:
      var operands: [String] = []
      for _ in 0..<Int.random(in: 2...3, using: &random) {
        operands.append("(" + expression(over: tags, depth: depth - 1, using: &random) + ")")
      }
      return operands.joined(separator: kind == 2 ? "&&" : "||")
    default: return tags.randomElement(using: &random) ?? "a"
    }
  }
}
