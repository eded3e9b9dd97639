import FanfareCore

/// A validated request for a version of a hub's template.
struct HubTemplateDraft: Sendable {
  /// The most templates of a hub.
  static let maximumCount = 1000
  static let tooMany = RegistryError(.conflict, "the hub has \(maximumCount) templates, the most allowed; remove one")
  static let unknown = RegistryError(.notFound, "there is no such template")

  private let name: String
  private let defaultLocale: String
  private let variants: [String: Content]
  /// The texts as they are stored.
  let text: String

  /// Throws `.forbidden` for a template that no send could use: the front end has checked it before.
  init(_ name: String, defaultLocale: String, variants: [String: Content]) throws(RegistryError) {
    func refused(_ reason: String) -> RegistryError { RegistryError(.forbidden, reason) }
    guard HubTemplate.isValid(name: name) else { throw refused("name: must be \(HubTemplate.nameRule)") }
    guard variants.count <= HubTemplate.maximumLocales else {
      throw refused("variants: there are at most \(HubTemplate.maximumLocales)")
    }
    guard variants[defaultLocale] != nil else { throw refused("defaultLocale: has no texts") }
    for (locale, content) in variants {
      guard LanguageTag.isValid(locale), LanguageTag.canonical(locale) == locale else {
        throw refused("variants: each must be of \(LanguageTag.rule), in lower case")
      }
      guard content.template == nil, !content.isEmpty else { throw refused("variants.\(locale): must have texts") }
      do throws(TemplateError) { _ = try ContentTemplate(content) } catch {
        throw refused("variants.\(locale): \(error)")
      }
    }
    text = Self.text(of: variants)
    guard text.utf8.count <= HubTemplate.maximumLength else {
      throw refused("variants: must have at most \(HubTemplate.maximumLength) bytes as JSON")
    }
    (self.name, self.defaultLocale, self.variants) = (name, defaultLocale, variants)
  }

  private static func text(of variants: [String: Content]) -> String {
    let bytes = JSONWriter.object(capacity: 4096) { json in
      for (locale, content) in variants.sorted(by: { $0.key < $1.key }) {
        json.object(named: locale) { content.writeMembers(to: &$0) }
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  func template(version: Int, at now: UnixTime) -> HubTemplate {
    HubTemplate(
      name: name, version: version, createdAt: now, defaultLocale: defaultLocale, variants: variants)
  }

  /// Whether the version has the same texts.
  func isStored(in version: HubTemplate) -> Bool {
    version.defaultLocale == defaultLocale && Self.text(of: version.variants).hasSameBytes(as: text)
  }

  /// Reads the texts as they are stored. Throws `StoredRegistration.damaged`.
  static func variants(stored text: String) throws -> [String: Content] {
    var variants: [String: Content] = [:]
    do {
      var reader = try JSONReader(Array(text.utf8)[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        let locale = key.text
        var fields = SendFields()
        try reader.readObject { (key, reader) throws(JSONError) in
          if try !fields.read(key, from: &reader, strict: false) { try reader.skipValue() }
        }
        variants[locale] = try fields.content()
      }
      try reader.finish()
    } catch { throw StoredRegistration.damaged }
    return variants
  }
}
