/// A configuration that cannot be used: says which key, and what was expected there. Never contains the value of a
/// secret.
package struct SettingsError: Error, Hashable, CustomStringConvertible {
  /// The key as the configuration file writes it: `kafka.bootstrapServers`.
  package let key: String
  /// What was expected: the end of a sentence that begins with the key.
  package let expectation: String

  package init(_ key: String, _ expectation: String) {
    self.key = key
    self.expectation = expectation
  }

  package var description: String { "\(key) \(expectation)" }
}
