import FanfareCore

/// The body that stores a template: `{"defaultLocale":"en","variants":{"en":{"message":{…},"native":{…}}}}`.
///
/// Each variant has the form of a send's content; its texts may be expressions.
struct TemplateBody {
  let defaultLocale: String
  /// By locale, in canonical form.
  let variants: [String: Content]

  /// Reads, checks and compiles a body. Throws a refusal that names the member, and in an expression the character.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    guard body.count <= HubTemplate.maximumLength else {
      throw Refusal(.tooLarge, "the template has more than \(HubTemplate.maximumLength) bytes")
    }
    var (defaultLocale, variants): (String?, [String: Content]?)
    try readBody(body) { (key, reader) throws(JSONError) in
      switch key {
      case "defaultLocale":
        guard defaultLocale == nil else { throw reader.duplicateMember() }
        defaultLocale = try reader.readLocale()
      case "variants":
        guard variants == nil else { throw reader.duplicateMember() }
        variants = try Self.readVariants(&reader)
      default: throw reader.error("is not a known member")
      }
    }
    guard let variants else { throw Refusal(.invalidField, "variants is missing") }
    guard let defaultLocale else { throw Refusal(.invalidField, "defaultLocale is missing") }
    guard variants[defaultLocale] != nil else {
      throw Refusal(.invalidField, "defaultLocale must be one of the variants")
    }
    (self.defaultLocale, self.variants) = (defaultLocale, variants)
  }

  private static func readVariants(_ reader: inout JSONReader) throws(JSONError) -> [String: Content] {
    var variants: [String: Content] = [:]
    try reader.readObject { (key, reader) throws(JSONError) in
      guard LanguageTag.isValid(key.text) else { throw reader.error("must be \(LanguageTag.rule)") }
      guard variants.count < HubTemplate.maximumLocales else {
        throw reader.error("is one locale more than the \(HubTemplate.maximumLocales) allowed")
      }
      let content = try readContent(&reader)
      guard variants.updateValue(content, forKey: LanguageTag.canonical(key.text)) == nil else {
        throw reader.duplicateMember()
      }
    }
    return variants
  }

  private static func readContent(_ reader: inout JSONReader) throws(JSONError) -> Content {
    var fields = SendFields()
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "message", "native": _ = try fields.read(key, from: &reader, strict: true)
      default: throw reader.error("is not a known member")
      }
    }
    guard let content = try? fields.content() else {  // The error has no path.
      throw reader.error("must have a message or a native payload")
    }
    let template: ContentTemplate
    do throws(TemplateError) { template = try ContentTemplate(content) } catch {
      throw JSONError(error, in: reader.error("").field)
    }
    do throws(ContentFault) { try template.check() } catch {
      throw JSONError(field: "\(reader.error("").field).\(error.field)", problem: error.problem)
    }
    return content
  }
}

extension JSONError {
  /// An error in a template that is the member `member`, or a part of it.
  init(_ error: TemplateError, in member: String) {
    let place = [member, error.field].filter { !$0.isEmpty }.joined(separator: ".")
    self.init(
      field: error.character.map { "\(place), character \($0)" } ?? place, problem: error.problem)
  }
}

extension JSONReader {
  /// Reads a language tag. Returns it in canonical form.
  mutating func readLocale() throws(JSONError) -> String {
    let tag = try readString()
    guard LanguageTag.isValid(tag) else { throw error("must be \(LanguageTag.rule)") }
    return LanguageTag.canonical(tag)
  }
}

/// The body of a preview: values, and for whom they are inserted: a registration, or a platform and a locale.
struct PreviewBody {
  private(set) var registration: RegistrationID?
  private(set) var platform: Platform?
  private(set) var locale: String?
  private(set) var version: Int?
  private(set) var properties: [String: String] = [:]

  /// Reads a body. Throws a refusal that names the member.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var given: Set<String> = []
    var preview = PreviewBody()
    try readBody(body) { (key, reader) throws(JSONError) in
      guard given.insert(key.text).inserted else { throw reader.duplicateMember() }
      switch key {
      case "registration":
        preview.registration = try reader.readRegistrationID()
        guard preview.registration != nil else { throw reader.error("must be a registration id (a UUID)") }
      case "platform": preview.platform = try reader.readPlatform()
      case "locale": preview.locale = try reader.readLocale()
      case "version":
        let number = try reader.readInteger()
        guard (1...Int64(Int32.max)).contains(number) else { throw reader.error("must be 1 to \(Int32.max)") }
        preview.version = Int(number)
      case "properties":
        preview.properties = try reader.readTemplateValues(maximum: TemplateContent.maximumProperties)
      default: throw reader.error("is not a known member")
      }
    }
    guard preview.registration == nil || preview.platform == nil && preview.locale == nil else {
      throw Refusal(.invalidField, "registration takes the place of platform and locale; give one of them")
    }
    self = preview
  }

  private init() {}
}
