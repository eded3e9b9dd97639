/// Why a text is not a tag expression. Says what would be right and where; never repeats what is there.
package struct TagExpressionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the expression must have, as an object of that verb: `&&, || or the end`.
  package let expected: String
  /// Where, counted in Unicode code points from 1; one more than there are where the text ends too early.
  package let position: Int

  package init(expected: String, position: Int) {
    self.expected = expected
    self.position = position
  }

  package var description: String { "must have \(expected) at character \(position)" }
}
