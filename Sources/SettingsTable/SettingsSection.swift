/// The keys under a prefix of the configuration.
///
/// `Keys` has a property with ``Setting`` for each key; its other properties are not keys.
package struct SettingsSection<Keys: Sendable>: Sendable {
  /// The dotted prefix: `kafka.security`, or `hub.NAME.apns` for a section of each hub. Empty for keys of the top level.
  package let prefix: String
  /// The comment above the section.
  private let note: String
  /// Makes keys with the defaults. Each reading has its own.
  private let make: @Sendable () -> Keys
  /// Names that were keys of earlier versions, each with what holds now. They are refused with these words.
  private let retired: [String: String]

  package init(
    _ prefix: String, _ keys: @escaping @Sendable @autoclosure () -> Keys, _ note: String = "",
    retired: [String: String] = [:]
  ) {
    (self.prefix, self.note, make, self.retired) = (prefix, note, keys, retired)
  }

  fileprivate func read(from reader: SettingsReader, of name: String) throws(SettingsError) -> Keys {
    let keys = make()
    let settings = Self.settings(of: keys).map {
      (key: SettingsReader.key(prefix, $0.name, of: name), setting: $0.setting)
    }
    // All of them are known, whether or not the reading ends with a mistake.
    reader.keys.formUnion(settings.map(\.key))
    for (key, words) in retired { reader.retired[SettingsReader.key(prefix, key, of: name)] = words }
    for (key, setting) in settings { try setting.read(key, from: reader) }
    return keys
  }

  fileprivate static func fill<Root>(_ root: inout Root, from keys: Keys) {
    for (_, setting) in settings(of: keys) { setting.fill(&root) }
  }

  /// The names of the keys whose values differ from the defaults, in the order of the declarations.
  package func changes(in keys: Keys) -> [String] {
    zip(Self.settings(of: keys), Self.settings(of: make())).filter { $0.setting.text != $1.setting.text }.map(\.0.name)
  }

  /// The section without its Swift types, for those who list or print its keys.
  package var declaration: SettingsDeclaration {
    SettingsDeclaration(
      prefix: prefix, note: note,
      keys: Self.settings(of: make()).map { name, setting in
        SettingsDeclaration.Key(
          name: name, values: setting.forms, summary: setting.summary, standard: setting.text,
          example: setting.example, isGiven: setting.isGiven)
      })
  }

  private static func settings(of keys: Keys) -> [(name: String, setting: any DeclaredSetting)] {
    Mirror(reflecting: keys).children.compactMap { label, value in
      // The storage of a wrapped property has its name after an underscore.
      guard let label, let setting = value as? any DeclaredSetting else { return nil }
      return (String(label.dropFirst()), setting)
    }
  }
}

extension SettingsReader {
  /// Reads a section; in its prefix `name` takes the place of NAME.
  ///
  /// Throws the first mistake; see ``collect(_:)``.
  package func read<Keys>(
    _ section: SettingsSection<Keys>, of name: String = "NAME"
  ) throws(SettingsError) -> Keys { try section.read(from: self, of: name) }

  /// Reads a section, and fills the properties of the structure that its keys name.
  @discardableResult package func read<Keys, Root>(
    _ section: SettingsSection<Keys>, of name: String = "NAME", into root: inout Root
  ) throws(SettingsError) -> Keys {
    let keys = try read(section, of: name)
    SettingsSection.fill(&root, from: keys)
    return keys
  }

  fileprivate static func key(_ prefix: String, _ key: String, of name: String) -> String {
    (prefix.split(separator: ".").map { $0 == "NAME" ? name[...] : $0 } + [key[...]]).joined(separator: ".")
  }
}

/// A section without its Swift types.
package struct SettingsDeclaration: Sendable {
  package struct Key: Sendable {
    package let name: String
    /// The values that the key takes, in words.
    package let values: String
    /// A phrase without a full stop.
    package let summary: String
    /// The default as YAML; nil if there is none.
    package let standard: String?
    /// A value for the example file.
    package let example: String?
    /// Whether the example file sets the key to the example.
    package let isGiven: Bool
  }

  package let prefix: String
  package let note: String
  package let keys: [Key]

  /// The dotted keys; in the prefix `name` takes the place of NAME.
  package func dottedKeys(of name: String) -> [String] {
    keys.map { SettingsReader.key(prefix, $0.name, of: name) }
  }
}
