/// Unusable configuration values: all that were found. Never contains the value of a secret.
package struct SettingsError: Error, Hashable, CustomStringConvertible {
  /// At least one, in the order of the configuration file.
  package let mistakes: [SettingsMistake]

  package init(_ key: String, _ expectation: String) {
    mistakes = [SettingsMistake(key: key, expectation: expectation)]
  }

  /// An error of several mistakes; nil if there are none.
  package init?(_ mistakes: [SettingsMistake]) {
    guard !mistakes.isEmpty else { return nil }
    self.mistakes = mistakes
  }

  /// A value of the wrong form that can be shown, because keys of its kind never hold a secret.
  package init(_ key: String, _ expectation: String, showsValue: Bool) {
    mistakes = [SettingsMistake(key: key, expectation: expectation, showsValue: showsValue)]
  }

  /// The first mistake's key and expectation.
  package var key: String { mistakes[0].key }
  package var expectation: String { mistakes[0].expectation }

  package var description: String { mistakes.map(\.description).joined(separator: "; ") }
}

/// One unusable value of the configuration: its key and the expectation.
package struct SettingsMistake: Hashable, Sendable, CustomStringConvertible {
  /// Where a value was given.
  package enum Place: Hashable, Sendable {
    /// A line of the configuration file; nil if the key is not in it.
    case file(String, line: Int?)
    /// An environment variable.
    case variable(String)
  }

  /// The key as the configuration file writes it: `kafka.bootstrapServers`.
  package let key: String
  /// The expectation, as the end of a sentence that begins with the key.
  package let expectation: String
  /// Whether keys of this kind never hold a secret.
  package let showsValue: Bool
  /// The value that was given; nil if there is none, or if it could be a secret.
  package var value: String?
  /// Nil if neither the file nor the environment caused the mistake.
  package var place: Place?

  package init(key: String, expectation: String, showsValue: Bool = false) {
    (self.key, self.expectation, self.showsValue) = (key, expectation, showsValue)
  }

  package var description: String { "\(key) \(expectation)" }
}
