/// The target of a request in origin form: path and query as they were sent.
package struct RequestTarget: Sendable {
  package let text: String
  /// The number of bytes of the path.
  let pathLength: Int

  /// Takes a target that has no scheme and host; see `originForm(_:)`.
  package init(_ text: String) {
    self.text = text
    pathLength =
      text.utf8.firstIndex(of: UInt8(ascii: "?")).map { text.utf8.distance(from: text.startIndex, to: $0) }
      ?? text.utf8.count
  }

  /// The path without its query, escapes as they were sent; `/` if it is empty.
  package var path: Substring { pathLength == 0 ? "/" : text[..<end] }

  /// The text behind the first `?`, without a fragment, which no target should have; nil without a `?`.
  package var query: Substring? {
    guard pathLength < text.utf8.count else { return nil }
    let query = text[text.utf8.index(after: end)...]
    return query.utf8.firstIndex(of: UInt8(ascii: "#")).map { query[..<$0] } ?? query
  }

  private var end: String.Index { text.utf8.index(text.startIndex, offsetBy: pathLength) }
}
