/// A content whose texts are templates, compiled once.
///
/// The strings of the portable message, the native payloads and the header fields may be expressions.
package struct ContentTemplate: Hashable, Sendable {
  private let content: Content
  private let title: Template?
  private let body: Template?
  private let sound: Template?
  private let data: [String: Template]
  private let native: [Platform: Template]
  private let headers: [String: Template]

  /// Compiles the texts. Throws an error that names the wrong one, as `message.title` or `native.apns: aps.alert`.
  package init(_ content: Content) throws(TemplateError) {
    func compile(
      _ field: String, _ source: String?, _ make: (String) throws(TemplateError) -> Template
    ) throws(TemplateError) -> Template? {
      guard let source else { return nil }
      do throws(TemplateError) { return try make(source) } catch {
        throw error.within(error.field.isEmpty ? field : "\(field): \(error.field)")
      }
    }
    func text(_ field: String, _ source: String?) throws(TemplateError) -> Template? {
      try compile(field, source) { (source) throws(TemplateError) in try Template(source, .text) }
    }
    self.content = content
    title = try text("message.title", content.message?.title)
    body = try text("message.body", content.message?.body)
    sound = try text("message.sound", content.message?.sound)
    var data: [String: Template] = [:]
    for (key, value) in content.message?.data ?? [:] { data[key] = try text("message.data.\(key)", value) }
    self.data = data
    var native: [Platform: Template] = [:]
    for entry in content.native.entries {
      native[entry.platform] = try compile("native.\(entry.platform)", entry.payload.text) {
        (source) throws(TemplateError) in try Template(payload: source, for: entry.platform)
      }
    }
    self.native = native
    var headers: [String: Template] = [:]
    for (name, value) in content.headers { headers[name] = try text("native.headers.\(name)", value) }
    self.headers = headers
  }

  package var coveredPlatforms: PlatformSet { content.coveredPlatforms }

  /// The names of the properties that its payload for the platform inserts, in lower case.
  package func names(on platform: Platform) -> Set<String> {
    (payloadTexts(on: platform) + headers.values).reduce(into: []) { $0.formUnion($1.names) }
  }

  private func payloadTexts(on platform: Platform) -> [Template] {
    native[platform].map { [$0] } ?? [title, body, sound].compactMap { $0 } + data.values
  }

  /// Throws if a service would refuse the template whatever the values: a payload or a header field into which none
  /// are inserted, or a reserved key of the data.
  package func check() throws(ContentFault) {
    let none = TemplateValues(properties: [:])
    var fixed: [String: String] = [:]
    for (name, template) in headers where template.names.isEmpty {
      do throws(PushOutcome) {
        fixed[name] = String(decoding: try template.render(none, limit: PushHeader.maximumLength), as: UTF8.self)
      } catch { throw .badHeader(name, "must have at most \(PushHeader.maximumLength) characters") }
    }
    for platform in coveredPlatforms.platforms {
      guard payloadTexts(on: platform).allSatisfy({ $0.names.isEmpty }) else {
        let message = content.native[platform] == nil ? content.message : nil
        try platform.vocabulary.checkParts(of: message, headers: fixed)
        continue
      }
      let rendered: Content
      do throws(PushOutcome) { rendered = try render(for: platform, none) } catch {
        throw ContentFault(
          content.native[platform] == nil ? "message" : "native.\(platform)", "is too large for the service", error)
      }
      do throws(ContentFault) {
        try platform.vocabulary.check(
          Content(message: rendered.message, native: rendered.native, headers: fixed), collapseKey: nil)
      } catch  where content.hasNothing(for: platform, error) {
        // Of a sound alone the others show something.
      }
    }
  }

  /// The content for one platform with the values inserted; empty if the template does not cover the platform.
  ///
  /// Throws `.payloadTooLarge` for one that exceeds the platform's limit, at a cost of little more than the limit.
  package func render(for platform: Platform, _ values: TemplateValues) throws(PushOutcome) -> Content {
    var space = platform.payloadLimit
    func text(_ template: Template) throws(PushOutcome) -> String {
      let text = try template.render(values, limit: space)
      space -= text.count
      return String(decoding: text, as: UTF8.self)
    }
    do {
      // A field whose expressions have no value is left out: push services refuse an empty one.
      let headers = try headers.mapValues {
        String(decoding: try $0.render(values, limit: platform.payloadLimit), as: UTF8.self)
      }.filter { field in !field.value.utf8.allSatisfy { $0 == UInt8(ascii: " ") } }
      if let template = native[platform] {
        let vocabulary = platform.vocabulary
        let payload = try template.render(values, limit: vocabulary.templateLimit)
        let native: NativePayload =
          vocabulary.nativeForm == .json ? .json(payload) : .text(String(decoding: payload, as: UTF8.self))
        return Content(native: NativePayloads(platform, native), headers: headers)
      }
      guard let message = content.message else { return Content() }
      return Content(
        message: Message(
          title: try title.map(text), body: try body.map(text), data: try data.mapValues { try text($0) },
          badge: message.badge, sound: try sound.map(text)),
        headers: headers)
    } catch {
      // The only error; `mapValues` does not keep its type.
      throw .payloadTooLarge
    }
  }
}
