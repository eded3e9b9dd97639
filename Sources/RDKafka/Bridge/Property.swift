/// One librdkafka setting.
struct Property: Sendable {
  var key: String
  var value: String

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
