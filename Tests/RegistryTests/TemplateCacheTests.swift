import FanfareCore
import Testing

@testable import Registry

/// Compiled templates and variants while they are emptied.
struct TemplateCacheTests {
  private let key = HubTexts.Key(hub: .default, name: "goal", version: 1)

  @Test func cacheIsEmptiedWithItsTemplatesAndGivesTheSameVariants() throws {
    let cache = TemplateCache()
    var loads = 0
    func texts() throws -> HubTexts {
      try #require(
        cache.texts(key) {
          loads += 1
          let content = Content(message: Message(body: "{'Hello ' + $(name, 20)}"))
          return HubTemplate(
            name: "goal", version: 1, createdAt: UnixTime(milliseconds: 0), defaultLocale: "en",
            variants: ["en": content])
        })
    }
    func profile(_ number: Int) -> String {
      let value = "\(number) " + String(repeating: "x", count: 20_000)
      return String(decoding: JSONWriter.bytes(of: DeviceProfile(attributes: ["name": value])), as: UTF8.self)
    }
    func text(_ variant: TemplateVariant) throws -> String {
      try variant.content(for: .fcm, properties: [:]).message?.body ?? ""
    }
    let first = try #require(try cache.variant(of: texts(), profile: profile(0), for: .fcm))
    weak let former = try texts()
    #expect(former != nil && loads == 1)
    for number in 1...500 {
      let variant = try #require(try cache.variant(of: texts(), profile: profile(number), for: .fcm))
      #expect(try text(variant).hasPrefix("Hello \(number) x"))
    }
    #expect(loads == 2, "8 MiB of texts were exceeded once")
    #expect(former == nil, "its variants are gone with it")
    let again = try #require(try cache.variant(of: texts(), profile: profile(0), for: .fcm))
    #expect(try text(again) == text(first))
  }

  @Test func unreadableTextsGiveNoVariant() {
    let cache = TemplateCache()
    for text in ["", "{}", "[]", #"{"template":{"name":"a","body":"{"}}"#] {
      #expect(cache.variant(of: text, for: .fcm) == nil)
      #expect(cache.variant(of: text, for: .fcm) == nil, "it is remembered")
    }
  }
}
