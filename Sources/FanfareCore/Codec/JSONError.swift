/// Why bytes are not the JSON that was expected. Names the place, never the value.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The member that is wrong, as a dotted path (`message.badge`, `platforms[1]`); empty for the document as a whole.
  package let field: String
  /// What is wrong with it: the end of a sentence that begins with the field.
  package let problem: String

  package init(field: String, problem: String) {
    self.field = field
    self.problem = problem
  }

  package var description: String { field.isEmpty ? problem : "\(field) \(problem)" }
}
