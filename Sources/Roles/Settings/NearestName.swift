/// Finds the name that was probably meant.
package enum NearestName {
  /// The candidate with the fewest edits from `name`, at most a third of its length; nil if none is that near.
  ///
  /// Letter case does not count. Of several, the first in alphabetical order.
  package static func of(_ name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars)
    let most = max(2, wanted.count / 3)
    var best: (name: String, edits: Int)?
    for candidate in candidates.sorted() {
      let edits = edits(wanted, Array(candidate.lowercased().unicodeScalars), atMost: min(most, best?.edits ?? most))
      if let edits, edits < best?.edits ?? .max { best = (candidate, edits) }
    }
    return best?.name
  }

  /// The Levenshtein distance; nil if it is larger than `limit`.
  private static func edits(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar], atMost limit: Int) -> Int? {
    guard abs(left.count - right.count) <= limit else { return nil }
    var row = Array(0...right.count)
    for (index, scalar) in left.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in right.indices {
        let substitution = diagonal + (right[column] == scalar ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(substitution, row[column] + 1, diagonal + 1)
      }
    }
    return row[right.count] <= limit ? row[right.count] : nil
  }
}
