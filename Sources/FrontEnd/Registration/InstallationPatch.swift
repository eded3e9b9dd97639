import FanfareCore

/// A JSON Patch (RFC 6902) of an installation in the form of its `GET`.
/// It may change platform, handle, tags, locale, time zone, attributes and templates.
///
/// Two extensions: `remove` also accepts the name of a tag (`/tags/news`), because clients do not know its index, and
/// `test` of all tags ignores their order. To remove or replace a tag that the registry adds itself is refused;
/// `replace` of all tags leaves these out.
struct InstallationPatch: Hashable {
  /// The most operations in one patch.
  static let maximumCount = 100

  private let operations: [InstallationPatchOperation]

  /// Reads and checks a body. Throws a refusal that names the operation by its index.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var operations: [InstallationPatchOperation] = []
    do throws(JSONError) {
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      try reader.readArray { (reader) throws(JSONError) in
        guard operations.count < Self.maximumCount else {
          throw reader.error("exceeds the limit of \(Self.maximumCount) operations")
        }
        operations.append(try InstallationPatchOperation(from: &reader))
      }
      try reader.finish()
    } catch {
      throw Refusal(error)
    }
    self.operations = operations
  }

  /// Returns the changed installation.
  ///
  /// Throws a refusal that names the operation by index and path; `.conflict` if it does not fit the present values.
  func applied(to installation: Installation) throws(Refusal) -> InstallationRequest {
    let former = installation.registration
    var device = PatchedDevice(installation)
    var lastOfAddress: Int?
    for (index, operation) in operations.enumerated() {
      if operation.changesAddress { lastOfAddress = index }
      if let problem = device.apply(operation) {
        throw Refusal(.conflict, "[\(index)] \(operation.path) \(problem); nothing was changed")
      }
    }
    if let index = lastOfAddress,
      let problem = DeviceHandle.problem(with: device.handle, platform: device.platform)
    {
      throw Refusal(.invalidField, "[\(index)] \(operations[index].path) leaves a handle that \(problem)")
    }
    let given = Set(device.tags).count { !Tag.isReserved($0) }
    guard given <= Tag.maximumCount else {
      throw Refusal(.invalidField, "/tags would have \(given) tags; at most \(Tag.maximumCount) are allowed")
    }
    do throws(JSONError) { try device.check() } catch { throw Refusal(error) }
    return InstallationRequest(
      installation: former.installation ?? "", hub: former.hub, user: former.user, platform: device.platform,
      handle: device.handle, tags: device.tags,
      profile: device.profile.isEmpty ? nil : device.profile, templates: device.templates,
      tiles: device.platform == .wns ? installation.tiles : [], validUntil: former.validUntil)
  }
}

/// An installation to which the operations of a patch are applied one by one.
private struct PatchedDevice {
  var platform: Platform
  var handle: String
  var tags: [String]
  var profile: DeviceProfile
  var templates: [InstallationRequest.Template]
  /// The tags that the registry adds.
  private let own: Set<String>

  init(_ installation: Installation) {
    let registration = installation.registration
    let installed = registration.installation.map { Tag.installationPrefix + $0 }
    own = Set(
      [Tag.username(registration.user), installed, registration.profile?.timeZone.map(Tag.timeZone)].compactMap(\.self))
    (platform, handle, tags) = (registration.platform, registration.handle, registration.tags)
    (profile, templates) = (registration.profile ?? DeviceProfile(), installation.templates)
  }

  /// Throws an error about profile or templates that a device of the platform cannot have.
  func check() throws(JSONError) {
    guard profile.attributes.count <= DeviceProfile.maximumAttributes else {
      throw JSONError(field: "/attributes", problem: "would have more than \(DeviceProfile.maximumAttributes) values")
    }
    guard templates.count <= InstallationRequest.maximumTemplates else {
      throw JSONError(
        field: "/templates", problem: "would have more than \(InstallationRequest.maximumTemplates) templates")
    }
    try profile.check()
    for template in templates { try template.template.check(on: platform, as: "templates.\(template.template.name)") }
  }

  /// Applies one operation.
  /// Returns the problem, as the end of a sentence that begins with the path, or nil.
  mutating func apply(_ operation: InstallationPatchOperation) -> String? {
    switch operation.change {
    case .setPlatform(let platform): self.platform = platform
    case .setHandle(let handle): self.handle = handle
    case .setTags(let tags): self.tags = tags
    case .insertTag(let tag, let index?):
      guard index <= tags.count else { return Self.beyondLastTag }
      tags.insert(tag, at: index)
    case .insertTag(let tag, nil): tags.append(tag)
    case .replaceTag(let tag, let index):
      guard index < tags.count else { return Self.beyondLastTag }
      guard !own.contains(tags[index]) || tag == tags[index] else { return Self.isOwn }
      tags[index] = tag
    case .removeTag(let index):
      guard index < tags.count else { return Self.beyondLastTag }
      guard !own.contains(tags[index]) else { return Self.isOwn }
      tags.remove(at: index)
    case .removeTagNamed(let tag):
      guard tags.contains(tag) else { return Self.missing }
      guard !own.contains(tag) else { return Self.isOwn }
      tags.removeAll { $0 == tag }
    case .setLocale(let locale):
      guard locale != nil || profile.locale != nil else { return Self.missing }
      profile.locale = locale
    case .setTimeZone(let zone):
      guard zone != nil || profile.timeZone != nil else { return Self.missing }
      profile.timeZone = zone
    case .setAttributes(let attributes): profile.attributes = attributes
    case .setAttribute(let name, let value):
      guard value != nil || profile.attributes[name] != nil else { return Self.missing }
      profile.attributes[name] = value
    case .setTemplates(let templates): self.templates = templates
    case .setTemplate(let name, let template):
      guard template != nil || templates.contains(where: { $0.template.name == name }) else { return Self.missing }
      templates.removeAll { $0.template.name == name }
      if let template { templates.append(template) }
    case .testLocale(let locale): return profile.locale == locale ? nil : Self.testFailed
    case .testTimeZone(let zone): return profile.timeZone == zone ? nil : Self.testFailed
    case .testAttribute(let name, let value): return profile.attributes[name] == value ? nil : Self.testFailed
    case .testPlatform(let platform): return self.platform == platform ? nil : Self.testFailed
    case .testHandle(let handle):
      // An earlier operation may have set it in any letter case.
      let (present, tested) = (
        DeviceHandle.normalized(self.handle, platform: platform), DeviceHandle.normalized(handle, platform: platform)
      )
      return present == tested ? nil : Self.testFailed
    case .testTags(let tags): return Set(self.tags) == Set(tags) ? nil : Self.testFailed
    case .testTag(let tag, let index):
      guard index < tags.count else { return Self.beyondLastTag }
      return tags[index] == tag ? nil : Self.testFailed
    }
    return nil
  }

  private static let missing = "does not exist"
  private static let beyondLastTag = "is beyond the last tag"
  private static let isOwn = "is a tag of the registry's own, which follows user, installation and time zone"
  private static let testFailed = "does not have the tested value"
}

/// One operation of a patch, checked as far as possible without the installation.
struct InstallationPatchOperation: Hashable {
  /// The change or test to perform.
  enum Change: Hashable {
    case setPlatform(Platform)
    case setHandle(String)
    case setTags([String])
    /// Inserts before the tag at the index; nil: at the end.
    case insertTag(String, at: Int?)
    case replaceTag(String, at: Int)
    case removeTag(at: Int)
    case removeTagNamed(String)
    /// Nil: removes it.
    case setLocale(String?)
    case setTimeZone(String?)
    case setAttributes([String: String])
    case setAttribute(String, String?)
    case setTemplates([InstallationRequest.Template])
    case setTemplate(String, InstallationRequest.Template?)
    case testLocale(String)
    case testTimeZone(String)
    case testAttribute(String, String)
    case testPlatform(Platform)
    case testHandle(String)
    case testTags([String])
    case testTag(String, at: Int)
  }

  let change: Change
  /// The path for error messages, without the name of a tag.
  let path: String

  /// Whether it changes the platform or the handle.
  var changesAddress: Bool {
    switch change {
    case .setPlatform, .setHandle: true
    default: false
    }
  }

  /// Reads an operation. Unknown members are ignored, as RFC 6902 requires.
  init(from reader: inout JSONReader) throws(JSONError) {
    var (kind, pointer, value): (Kind?, String?, Value?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "op":
        guard kind == nil else { throw reader.duplicateMember() }
        guard let known = Kind(rawValue: try reader.readString()) else {
          throw reader.error("must be add, replace, remove or test")
        }
        kind = known
      case "path":
        guard pointer == nil else { throw reader.duplicateMember() }
        pointer = try reader.readString()
      case "value":
        guard value == nil else { throw reader.duplicateMember() }
        value = try Value(from: &reader)
      default: try reader.skipValue()
      }
    }
    guard let kind else { throw reader.error("must have an op") }
    guard let pointer, let place = Place(pointer) else { throw reader.error("must have a path: \(Place.expectation)") }
    path =
      switch place {
      case .name: "/tags/TAG"
      case .attribute: "/attributes/NAME"
      case .template: "/templates/NAME"
      default: pointer
      }
    do throws(Invalid) {
      change = try Self.change(kind, place, value)
    } catch {
      throw reader.error("\(path) \(error.problem)")
    }
  }

  private enum Kind: String {
    case add, replace, remove, test
  }

  private struct Invalid: Error {
    let problem: String
  }

  private enum Value {
    case text(String)
    case texts([String])
    case object(ArraySlice<UInt8>)
    case other

    init(from reader: inout JSONReader) throws(JSONError) {
      switch try reader.nextKind() {
      case .string: self = .text(try reader.readString())
      case .array: self = .texts(try reader.readTags())
      case .object: self = .object(try reader.readRaw())
      default:
        try reader.skipValue()
        self = .other
      }
    }
  }

  /// The target of a path (RFC 6901).
  private enum Place {
    case platform, handle, tags, end, locale, timeZone, attributes, templates
    case index(Int)
    case name(String)
    case attribute(String)
    case template(String)

    static let expectation = """
      /platform, /handle, /deviceToken, /channelUri, /tags, /tags/-, /tags/INDEX, /tags/TAG, /locale, /timeZone, \
      /attributes, /attributes/NAME, /templates or /templates/NAME
      """

    init?(_ pointer: String) {
      let prefix = "/tags/"
      switch pointer {
      case "/platform": self = .platform
      case "/handle", "/deviceToken", "/channelUri": self = .handle
      case "/tags": self = .tags
      case "/tags/-": self = .end
      case "/locale": self = .locale
      case "/timeZone": self = .timeZone
      case "/attributes": self = .attributes
      case "/templates": self = .templates
      case _ where pointer.hasPrefix("/attributes/"):
        let name = Self.unescaped(pointer.dropFirst("/attributes/".count)).lowercased()
        guard TemplateContent.isPropertyName(name) else { return nil }
        self = .attribute(name)
      case _ where pointer.hasPrefix("/templates/"):
        let name = Self.unescaped(pointer.dropFirst("/templates/".count))
        guard DeviceTemplate.isName(name) else { return nil }
        self = .template(name)
      case _ where pointer.hasPrefix(prefix):
        let token = String(pointer.dropFirst(prefix.count))
        if let index = Int(token), "\(index)" == token, index >= 0 {
          self = .index(index)
        } else {
          // Tags contain no characters that need escapes, but user names may.
          let tag = Self.unescaped(token[...])
          guard Tag.isAddressable(tag) else { return nil }
          self = .name(tag)
        }
      default: return nil
      }
    }

    private static func unescaped(_ token: Substring) -> String {
      String(token).replacing("~1", with: "/").replacing("~0", with: "~")
    }
  }

  private static func change(_ kind: Kind, _ place: Place, _ value: Value?) throws(Invalid) -> Change {
    switch (kind, place) {
    case (.remove, .tags): return .setTags([])
    case (.remove, .index(let index)): return .removeTag(at: index)
    case (.remove, .name(let tag)): return .removeTagNamed(tag)
    case (.remove, .locale): return .setLocale(nil)
    case (.remove, .timeZone): return .setTimeZone(nil)
    case (.remove, .attributes): return .setAttributes([:])
    case (.remove, .attribute(let name)): return .setAttribute(name, nil)
    case (.remove, .templates): return .setTemplates([])
    case (.remove, .template(let name)): return .setTemplate(name, nil)
    case (.test, .locale): return .testLocale(try locale(value))
    case (_, .locale): return .setLocale(try locale(value))
    case (.test, .timeZone): return .testTimeZone(try text(value))
    case (_, .timeZone): return .setTimeZone(try zone(value))
    case (.test, .attribute(let name)): return .testAttribute(name, try text(value))
    case (_, .attribute(let name)): return .setAttribute(name, try text(value))
    case (.test, .attributes), (.test, .templates), (.test, .template): throw Invalid(problem: "cannot be tested")
    case (_, .attributes):
      return .setAttributes(
        try object(value) { (reader) throws(JSONError) in
          try reader.readTemplateValues(maximum: DeviceProfile.maximumAttributes)
        })
    case (_, .templates):
      return .setTemplates(try object(value) { (reader) throws(JSONError) in try reader.readDeviceTemplates() })
    case (_, .template(let name)):
      return .setTemplate(
        name, try object(value) { (reader) throws(JSONError) in try reader.readDeviceTemplate(named: name) })
    case (.remove, .platform), (.remove, .handle): throw Invalid(problem: "cannot be removed")
    case (_, .name): throw Invalid(problem: "can only be removed")
    case (let kind, .end) where kind != .add: throw Invalid(problem: "can only be added to")
    case (.test, .platform): return .testPlatform(try platform(value))
    case (_, .platform): return .setPlatform(try platform(value))
    case (.test, .handle): return .testHandle(try text(value))
    case (_, .handle): return .setHandle(try text(value))
    case (_, .tags):
      guard case .texts(let tags)? = value else { throw Invalid(problem: "must have a value that is an array of tags") }
      return kind == .test ? .testTags(tags) : .setTags(tags)
    case (_, .end): return .insertTag(try tag(value), at: nil)
    case (.add, .index(let index)): return .insertTag(try tag(value), at: index)
    case (.test, .index(let index)): return .testTag(try tag(value), at: index)
    case (_, .index(let index)): return .replaceTag(try tag(value), at: index)
    }
  }

  private static func text(_ value: Value?) throws(Invalid) -> String {
    guard case .text(let text)? = value else { throw Invalid(problem: "must have a value that is a string") }
    return text
  }

  private static func object<Result>(
    _ value: Value?, _ read: (inout JSONReader) throws(JSONError) -> Result
  ) throws(Invalid) -> Result {
    guard case .object(let bytes)? = value else { throw Invalid(problem: "must have a value that is an object") }
    do throws(JSONError) {
      var reader = try JSONReader(bytes, refusesLoneSurrogates: true)
      return try read(&reader)
    } catch {
      throw Invalid(problem: "has a value whose \(error.field) \(error.problem)")
    }
  }

  private static func locale(_ value: Value?) throws(Invalid) -> String {
    let tag = try text(value)
    guard LanguageTag.isValid(tag) else { throw Invalid(problem: "must have a value that is \(LanguageTag.rule)") }
    return tag
  }

  private static func zone(_ value: Value?) throws(Invalid) -> String {
    let name = try text(value)
    guard TimeZoneName.isKnown(name) else { throw Invalid(problem: "has a value that \(TimeZoneName.expectation)") }
    return name
  }

  private static func tag(_ value: Value?) throws(Invalid) -> String {
    let tag = try text(value)
    guard Tag.isAddressable(tag) else { throw Invalid(problem: "must have a value of \(Tag.rule)") }
    return tag
  }

  private static func platform(_ value: Value?) throws(Invalid) -> Platform {
    guard let platform = Platform(systemOrName: try text(value)) else { throw Invalid(problem: Platform.expectation) }
    return platform
  }
}
