package import FanfareCore

/// A change of a hub's credential as a client of Azure Notification Hubs asks for it: properties with new values.
package struct CredentialUpdate {
  /// Why nothing is changed. The detail names the property, never its value.
  package struct Refusal: Error {
    /// Whether this server cannot change the property; otherwise its value is wrong.
    package let isConflict: Bool
    package let detail: String
  }

  /// A file of the credential with its new text.
  package struct File {
    package let path: String
    package let text: String

    package init(path: String, text: String) { (self.path, self.text) = (path, text) }
  }

  private let hub: HubName
  private let platform: Platform
  /// The element's name, for errors.
  private let name: String
  /// The values that are not empty, by the properties' names in lower case.
  private let values: [String: String]
  private let resources: SenderResources

  package init(
    of hub: HubName, on platform: Platform, name: String, _ values: [String: String], _ resources: SenderResources
  ) {
    (self.hub, self.platform, self.name, self.values, self.resources) = (hub, platform, name, values, resources)
  }

  package subscript(_ property: String) -> String? { values[property.lowercased()] }

  /// Throws a refusal that names a property which is none of these.
  package func requireOnly(_ properties: [String]) throws(Refusal) {
    let known = Set(properties.map { $0.lowercased() })
    guard let other = values.keys.sorted().first(where: { !known.contains($0) }) else { return }
    throw invalid(other, "is not supported; the properties are \(properties.joined(separator: ", "))")
  }

  /// Throws unless the property has that value, of that key, or is not given.
  package func require(_ property: String, is value: String, _ key: String) throws(Refusal) {
    if let given = self[property], given != value { throw fixed(property, key) }
  }

  /// Reads the present value from its file.
  package func stored<Value>(_ property: String, _ read: () throws -> Value) throws(Refusal) -> Value {
    do { return try read() } catch {
      throw conflict("\(name).\(property) cannot be changed: its present file cannot be read")
    }
  }

  /// Makes a sender with the new credential, as at the start, and discards it. `names` are the properties of its fields.
  package func check(
    _ names: [String: String], _ make: (SenderResources) throws -> any PushSender
  ) throws(Refusal) {
    do { _ = try make(resources) } catch {
      let mistake = error as? PushConfigurationError
      let field = mistake.map { names[$0.field] ?? $0.field }?.split(separator: ".").last.map(String.init)
      throw invalid(field, mistake?.problem ?? "cannot be used")
    }
  }

  package func invalid(_ property: String?, _ problem: String) -> Refusal {
    Refusal(isConflict: false, detail: "\(name)\(property.map { ".\($0)" } ?? "") \(problem)")
  }

  /// The refusal of another value for a key that only the configuration may change.
  package func fixed(_ property: String, _ key: String) -> Refusal {
    conflict("\(name).\(property) differs from the configuration; it is changed with hub.\(hub).\(platform).\(key)")
  }

  package func unconfigured(_ key: String) -> Refusal {
    conflict("\(name) cannot be changed: hub.\(hub).\(platform).\(key) is not set on this server")
  }

  /// The refusal of a platform whose credentials cannot be replaced.
  package var unsupported: Refusal { conflict("\(name) cannot be changed on this server") }

  private func conflict(_ detail: String) -> Refusal { Refusal(isConflict: true, detail: detail) }
}

/// Private keys as text (RFC 7468).
enum PEM {
  /// A key with its first and last line, which clients of Azure leave out.
  static func text(ofKey key: String) -> String {
    guard !key.contains("-----BEGIN") else { return key }
    var (lines, rest) = ("", content(of: key)[...])
    while !rest.isEmpty {
      lines += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return "-----BEGIN PRIVATE KEY-----\n\(lines)-----END PRIVATE KEY-----\n"
  }

  /// The base64 between them, to compare.
  static func content(of text: String) -> String {
    text.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }.joined().filter { !$0.isWhitespace }
  }
}
