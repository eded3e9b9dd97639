/// A template that a hub keeps for all its devices, in one or more languages. Each change makes a new version.
package struct HubTemplate: Hashable, Sendable {
  /// The rule for names as stated in error messages.
  package static let nameRule = "1 to 120 characters of A–Z a–z 0–9 _ @ # . : -"
  /// The most languages.
  package static let maximumLocales = 100
  /// The most bytes of a template as JSON.
  package static let maximumLength = 65_536
  /// How long a send may name a version that was replaced or removed.
  package static let grace: Duration = .seconds(30 * 86_400)
  /// How long a version is kept that was replaced or removed: until no send that named it in time can still be pushed.
  package static let retention: Duration =
    grace + ScheduledSend.maximumDelay + .seconds(SendRequest.maximumTimeToLive + 7 * 86_400)

  package let name: String
  /// From 1.
  package let version: Int
  package let createdAt: UnixTime
  /// When the version was replaced or removed; nil for the newest.
  package let replacedAt: UnixTime?
  /// The locale for devices whose own has no texts.
  package let defaultLocale: String
  /// The texts by locale, in the form of `LanguageTag.canonical`; they include `defaultLocale`.
  package let variants: [String: Content]

  package init(
    name: String, version: Int, createdAt: UnixTime, replacedAt: UnixTime? = nil, defaultLocale: String,
    variants: [String: Content]
  ) {
    (self.name, self.version, self.createdAt, self.replacedAt) = (name, version, createdAt, replacedAt)
    (self.defaultLocale, self.variants) = (defaultLocale, variants)
  }

  /// Whether a send may name the version at the moment.
  package func isUsable(at now: UnixTime) -> Bool { replacedAt.map { now - $0 < Self.grace } ?? true }

  package static func isValid(name: String) -> Bool { Tag.isValid(name) }

  /// The locale whose texts a device with the locale gets: its own, else a shorter one (`zh-Hant-TW`, `zh-Hant`, `zh`),
  /// else the default. A language has its former code, too: `iw-IL` gets the texts of `he`, and `he` those of `iw`.
  package func locale(for device: String?) -> String {
    var candidate = device.map(LanguageTag.canonical) ?? ""
    while !candidate.isEmpty {
      if variants[candidate] != nil { return candidate }
      if let other = LanguageTag.renamed(candidate), variants[other] != nil { return other }
      candidate = candidate.lastIndex(of: "-").map { String(candidate[..<$0]) } ?? ""
    }
    return defaultLocale
  }
}

/// The rule for language tags (RFC 5646).
package enum LanguageTag {
  /// The rule as stated in error messages.
  package static let rule = "a language tag such as \"de\" or \"de-AT\""

  /// Whether the text has the form of a tag, `_` allowed for `-`: subtags of 1 to 8 letters and digits, the first one
  /// of 2 to 8 letters.
  package static func isValid(_ tag: String) -> Bool {
    let subtags = tag.utf8.split(omittingEmptySubsequences: false) {
      $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
    }
    return tag.utf8.count <= 35 && (2...8).contains(subtags[0].count)
      && subtags[0].allSatisfy { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 }
      && subtags.allSatisfy { (1...8).contains($0.count) && $0.allSatisfy(\.isLetterOrDigit) }
  }

  /// The form in which tags are compared: lower case with `-`.
  package static func canonical(_ tag: String) -> String {
    tag.lowercased().replacing("_", with: "-")
  }

  /// Codes of languages that have another one now: Java before version 17 and old Android report the former ones.
  private static let renamings = ["iw": "he", "in": "id", "ji": "yi", "no": "nb", "tl": "fil"]
  private static let former = Dictionary(uniqueKeysWithValues: renamings.map { ($1, $0) })

  /// The canonical tag with the language's other code; nil if it has one code.
  static func renamed(_ canonical: String) -> String? {
    let language = String(canonical.prefix { $0 != "-" })
    return (renamings[language] ?? former[language]).map { $0 + canonical.dropFirst(language.count) }
  }
}

/// Keeps the templates of hubs. A method throws `RegistryError`.
package protocol TemplateStore: Sendable {
  /// Stores the next version of a template, unless the newest one has the same texts. Returns the newest version.
  func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate

  /// A version of a template, or with nil the newest; nil if it does not exist. A removed template has no newest
  /// version. Replaced and removed versions remain for `HubTemplate.retention`, for the sends that use them.
  func template(_ name: String, version: Int?, hub: HubName) async throws -> HubTemplate?

  /// The newest versions of the templates by ascending names, at most `limit`, behind the name.
  func templates(after name: String?, hub: HubName, limit: Int) async throws -> [HubTemplate]

  /// Removes a template. Throws `.notFound` if there is none.
  func remove(template name: String, hub: HubName, at now: UnixTime) async throws
}
