/// Why a simulator cannot be made from its configuration.
package struct SimulatorConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The configuration's property.
  package let field: String
  /// What is wrong with it: the end of a sentence that begins with the field.
  package let problem: String

  package var description: String { "simulator.\(field) \(problem)" }
}
