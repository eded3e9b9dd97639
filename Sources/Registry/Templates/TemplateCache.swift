import FanfareCore
import Synchronization

/// Compiled templates and the variants of devices, by the texts from which they are made: a broadcast meets the same
/// few texts in millions of rows.
///
/// It is emptied as a whole when the texts of the variants are too many, because compiled templates keep the values of
/// these texts. The next look-ups fill it again.
final class TemplateCache: Sendable {
  /// The most bytes of the texts of variants.
  private static let maximumBytes = 8 * 1024 * 1024
  private static let maximumTemplates = 1000

  /// Where the variant of a stored text comes from.
  private enum Source: Hashable {
    case device(Platform)
    case hub(HubTexts.Key)
  }

  private struct Key: Hashable {
    let source: Source
    let profile: String
  }

  private struct DeviceKey: Hashable {
    let platform: Platform
    let template: DeviceTemplate
  }

  private struct State {
    /// Nil for a text that gives no variant.
    var variants: [Key: TemplateVariant?] = [:]
    var bytes = 0
    var templates: [DeviceKey: CompiledTemplate] = [:]
    var hubs: [HubTexts.Key: HubTexts] = [:]
  }

  private let state = Mutex(State())

  /// The variant of a device's own template; nil if the text has no template that can be compiled.
  func variant(of profile: String, for platform: Platform) -> TemplateVariant? {
    variant(Key(source: .device(platform), profile: profile)) { [self] in
      guard let profile = Self.profile(profile), let template = profile.template else { return nil }
      return compiled(DeviceKey(platform: platform, template: template))?.variant(profile.attributes)
    }
  }

  /// The variant of a hub's template for a device; nil if its texts do not cover the platform.
  func variant(of texts: HubTexts, profile: String?, for platform: Platform) -> TemplateVariant? {
    let found = profile.map { text in
      variant(Key(source: .hub(texts.key), profile: text)) {
        let profile = Self.profile(text)
        return texts.compiled(for: profile?.locale)?.variant(profile?.attributes ?? [:])
      }
    }
    guard let variant = found ?? texts.compiled(for: nil)?.variant([:]), variant.covers(platform) else { return nil }
    return variant
  }

  /// A version of a hub's template; nil if there is none.
  func texts(_ key: HubTexts.Key, load: () throws -> HubTemplate?) rethrows -> HubTexts? {
    if let known = state.withLock({ $0.hubs[key] }) { return known }
    guard let template = try load() else { return nil }
    let texts = HubTexts(key, template)
    return state.withLock { state in
      if let known = state.hubs[key] { return known }
      // Each has up to `HubTemplate.maximumLength` bytes.
      if state.hubs.count >= 200 { state.hubs.removeAll() }
      state.hubs[key] = texts
      return texts
    }
  }

  private func variant(_ key: Key, make: () -> TemplateVariant?) -> TemplateVariant? {
    if let known = state.withLock({ $0.variants[key] }) { return known }
    let variant = make()
    state.withLock { state in
      state.bytes += key.profile.utf8.count + 200
      if state.bytes > Self.maximumBytes {
        state = State()
        state.bytes = key.profile.utf8.count
      }
      state.variants[key] = variant
    }
    return variant
  }

  private func compiled(_ key: DeviceKey) -> CompiledTemplate? {
    if let known = state.withLock({ $0.templates[key] }) { return known }
    // Its text was compiled when it was stored: an error means that another release did that.
    guard let template = try? key.template.compiled(for: key.platform) else { return nil }
    let compiled = CompiledTemplate(template)
    return state.withLock { state in
      if let known = state.templates[key] { return known }
      if state.templates.count >= Self.maximumTemplates { state.templates.removeAll() }
      state.templates[key] = compiled
      return compiled
    }
  }

  /// A profile that this release cannot read counts as none.
  private static func profile(_ text: String) -> DeviceProfile? { try? DeviceProfile.read(Array(text.utf8)[...]) }
}

/// A compiled template and its variants: one for all devices whose attributes give the same result.
final class CompiledTemplate: Sendable {
  private let template: ContentTemplate
  private let names: Set<String>
  private let variants = Mutex<[[String: String]: TemplateVariant]>([:])

  init(_ template: ContentTemplate) {
    self.template = template
    names = Platform.allCases.reduce(into: []) { $0.formUnion(template.names(on: $1)) }
  }

  /// The variant for devices with the attributes, of which only those count that the template inserts.
  func variant(_ attributes: [String: String]) -> TemplateVariant {
    let attributes = attributes.filter { names.contains($0.key) }
    return variants.withLock { variants in
      if let known = variants[attributes] { return known }
      let variant = TemplateVariant(template, attributes: attributes)
      variants[attributes] = variant
      return variant
    }
  }
}

/// A version of a hub's template, compiled.
final class HubTexts: Sendable {
  struct Key: Hashable {
    let hub: HubName
    let name: String
    let version: Int
  }

  let key: Key
  private let template: HubTemplate
  private let compiled: [String: CompiledTemplate]

  init(_ key: Key, _ template: HubTemplate) {
    (self.key, self.template) = (key, template)
    compiled = template.variants.compactMapValues { content in
      // Every text was compiled when it was stored: an error means that another release did that.
      (try? ContentTemplate(content)).map(CompiledTemplate.init)
    }
  }

  /// The texts for devices with the locale.
  func compiled(for locale: String?) -> CompiledTemplate? { compiled[template.locale(for: locale)] }
}
