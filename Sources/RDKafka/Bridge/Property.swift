/// One librdkafka setting.
struct Property: Sendable {
  /// Its name in librdkafka's CONFIGURATION.md.
  var key: String
  /// Its value as text.
  var value: String

  /// Makes a setting.
  init(_ key: String, _ value: String) {
    self.key = key
    self.value = value
  }
}

/// The settings of one handle.
struct PropertySet: Sendable {
  /// Set first; librdkafka must know them.
  var required: [Property]
  /// Set if the librdkafka at hand knows them.
  var ifSupported: [Property]
  /// What the configuration adds or overrides.
  var further: [String: String]
  /// What `further` may not contain.
  var reserved: Set<String>
}
