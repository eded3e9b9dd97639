/// Why a sender cannot be made from its configuration. Names the field, never its value.
package struct PushConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The configuration's property, or `serviceAccount.` and a member of the key file.
  package let field: String
  /// What is wrong with it: the end of a sentence that begins with the field.
  package let problem: String

  package init(field: String, problem: String) {
    self.field = field
    self.problem = problem
  }

  package var description: String { "\(field) \(problem)" }
}
