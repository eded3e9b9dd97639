import FanfareCore

/// A JSON Patch (RFC 6902) of an installation in the form of its `GET`.
/// It may change platform, handle, tags, locale, time zone, attributes and templates.
///
/// Two extensions: `remove` also accepts the name of a tag (`/tags/news`), because clients do not know its index, and
/// `test` of all tags ignores their order. To remove or replace a tag that the registry adds itself is refused;
/// `replace` of all tags leaves these out.
struct InstallationPatch {
  private let changes: [PatchChange]

  /// Reads and checks a body, as far as possible without the installation. Throws a refusal that names the operation by
  /// its index.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    do throws(JSONError) {
      var changes: [PatchChange] = []
      for operation in try JSONPatch(body, .standard).operations { changes.append(try PatchChange(operation)) }
      self.changes = changes
    } catch {
      throw Refusal(error)
    }
  }

  /// Returns the changed installation.
  ///
  /// Throws a refusal that names the operation by index and path; `.conflict` if it does not fit the present values.
  func applied(to installation: Installation) throws(Refusal) -> DeviceRequest {
    var device = PatchedDevice(installation)
    var lastOfAddress: Int?
    for (index, change) in changes.enumerated() {
      if change.changesAddress { lastOfAddress = index }
      if let problem = change.apply(&device) {
        throw Refusal(.conflict, "[\(index)] \(change.path) \(problem); nothing was changed")
      }
    }
    if let index = lastOfAddress,
      let problem = DeviceHandle.problem(with: device.handle, platform: device.platform)
    {
      throw Refusal(.invalidField, "[\(index)] \(changes[index].path) leaves a handle that \(problem)")
    }
    let given = Set(device.tags).count { !Tag.isReserved($0) }
    guard given <= Tag.maximumCount else {
      throw Refusal(.invalidField, "/tags would have \(given) tags; at most \(Tag.maximumCount) are allowed")
    }
    do throws(JSONError) { try device.check() } catch { throw Refusal(error) }
    var request = DeviceRequest(again: installation.registration)
    (request.platform, request.handle, request.tags) = (device.platform, device.handle, device.tags)
    (request.profile, request.templates) = (device.profile.isEmpty ? nil : device.profile, device.templates)
    request.tiles = device.platform.vocabulary.hasTiles ? installation.tiles : []
    return request
  }
}

/// An installation to which the operations of a patch are applied one by one.
private struct PatchedDevice {
  var platform: Platform
  var handle: String
  var tags: [String]
  var profile: DeviceProfile
  var templates: [DeviceRequest.Template]
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
    guard templates.count <= DeviceRequest.maximumTemplates else {
      throw JSONError(
        field: "/templates", problem: "would have more than \(DeviceRequest.maximumTemplates) templates")
    }
    try profile.check()
    for template in templates { try template.template.check(on: platform, as: "templates.\(template.template.name)") }
  }

  /// Whether the tag is one that the registry adds.
  func isOwn(_ tag: String) -> Bool { own.contains(tag) }
}

/// The effect of an operation on an installation.
private struct PatchChange: Sendable {
  /// Returns the problem, as the end of a sentence that begins with the path, or nil.
  typealias Application = @Sendable (inout PatchedDevice) -> String?

  /// The path for error messages, without the name of a tag, an attribute or a template.
  let path: String
  /// Whether it changes the platform or the handle.
  let changesAddress: Bool
  let apply: Application

  private static let handles = ["handle"] + Platform.handleMembers
  private static let addresses = Set(["platform"] + handles.map { $0[...] })
  private static let places = """
    /platform, \(handles.map { "/\($0)" }.joined(separator: ", ")), \
    /tags, /tags/-, /tags/INDEX, /tags/TAG, /locale, /timeZone, /attributes, /attributes/NAME, /templates or \
    /templates/NAME
    """
  private static let missing = "does not exist"
  private static let beyondLastTag = "is beyond the last tag"
  private static let isOwn = "is a tag of the registry's own, which follows user, installation and time zone"

  init(_ operation: JSONPatch.Operation) throws(JSONError) {
    let parts = operation.pointer.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    let unknown = JSONError(field: "[\(operation.index)]", problem: "must have a path: \(Self.places)")
    guard parts.count > 1, parts[0].isEmpty else { throw unknown }
    let name = parts.count > 2 ? JSONPatch.unescaped(parts[2]) : nil
    let index = name.flatMap { Int($0) }.flatMap { $0 >= 0 && "\($0)" == parts[2] ? $0 : nil }
    path =
      if let name {
        parts[1] != "tags" ? "/\(parts[1])/NAME" : index != nil || name == "-" ? operation.pointer : "/tags/TAG"
      } else { operation.pointer }
    let value = PatchValue(operation, path)
    changesAddress = name == nil && Self.addresses.contains(parts[1]) && operation.kind != .test
    switch (parts[1], name) {
    case ("platform", nil): apply = try Self.platform(value)
    case (let member, nil) where Self.addresses.contains(member): apply = try Self.handle(value)
    case ("tags", nil): apply = try Self.tags(value)
    case ("tags", "-"?): apply = try Self.tagAtEnd(value)
    case ("tags", let name?):
      // Tags contain no characters that need escapes, but user names may.
      guard index != nil || Tag.isAddressable(name) else { throw unknown }
      apply = if let index { try Self.tag(at: index, value) } else { try Self.tag(named: name, value) }
    case ("locale", nil):
      apply = try Self.text(value, { $0.profile.locale }, { $0.profile.locale = $1 }) {
        LanguageTag.isValid($0) ? nil : "must have a value that is \(LanguageTag.rule)"
      }
    case ("timeZone", nil):
      apply = try Self.text(value, { $0.profile.timeZone }, { $0.profile.timeZone = $1 }) {
        value.kind == .test || TimeZoneName.isKnown($0) ? nil : "has a value that \(TimeZoneName.expectation)"
      }
    case ("attributes", nil): apply = try Self.attributes(value)
    case ("attributes", let name?):
      let name = name.lowercased()
      guard TemplateContent.isPropertyName(name) else { throw unknown }
      apply = try Self.text(value, { $0.profile.attributes[name] }, { $0.profile.attributes[name] = $1 })
    case ("templates", nil): apply = try Self.templates(value)
    case ("templates", let name?):
      guard DeviceTemplate.isName(name) else { throw unknown }
      apply = try Self.template(name, value)
    default: throw unknown
    }
  }

  private static func set(_ change: @escaping @Sendable (inout PatchedDevice) -> Void) -> Application {
    { device in
      change(&device)
      return nil
    }
  }

  private static func test(_ holds: @escaping @Sendable (PatchedDevice) -> Bool) -> Application {
    { holds($0) ? nil : "does not have the tested value" }
  }

  private static func platform(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind != .remove else { throw value.error("cannot be removed") }
    guard let platform = Platform(systemOrName: try value.text) else { throw value.error(Platform.expectation) }
    return value.kind == .test ? test { $0.platform == platform } : set { $0.platform = platform }
  }

  private static func handle(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind != .remove else { throw value.error("cannot be removed") }
    let handle = try value.text
    guard value.kind == .test else { return set { $0.handle = handle } }
    return test {
      // An earlier operation may have set it in any letter case.
      DeviceHandle.normalized($0.handle, platform: $0.platform)
        == DeviceHandle.normalized(handle, platform: $0.platform)
    }
  }

  private static func tags(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind != .remove else { return set { $0.tags = [] } }
    let tags = try value.tags
    return value.kind == .test ? test { Set($0.tags) == Set(tags) } : set { $0.tags = tags }
  }

  private static func tagAtEnd(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind == .add else { throw value.error("can only be added to") }
    let tag = try value.tag
    return set { $0.tags.append(tag) }
  }

  private static func tag(at index: Int, _ value: PatchValue) throws(JSONError) -> Application {
    let (kind, tag) = (value.kind, value.kind == .remove ? "" : try value.tag)
    return { device in
      guard index < device.tags.count || kind == .add && index == device.tags.count else { return beyondLastTag }
      switch kind {
      case .add: device.tags.insert(tag, at: index)
      case .test: return test { $0.tags[index] == tag }(&device)
      case .remove, .replace:
        guard tag == device.tags[index] || !device.isOwn(device.tags[index]) else { return isOwn }
        if kind == .remove { device.tags.remove(at: index) } else { device.tags[index] = tag }
      }
      return nil
    }
  }

  private static func tag(named tag: String, _ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind == .remove else { throw value.error("can only be removed") }
    return { device in
      guard device.tags.contains(tag) else { return missing }
      guard !device.isOwn(tag) else { return isOwn }
      device.tags.removeAll { $0 == tag }
      return nil
    }
  }

  /// A text that a device need not have.
  private static func text(
    _ value: PatchValue, _ present: @escaping @Sendable (PatchedDevice) -> String?,
    _ change: @escaping @Sendable (inout PatchedDevice, String?) -> Void,
    problem: (String) -> String? = { _ in nil }
  ) throws(JSONError) -> Application {
    let text = value.kind == .remove ? nil : try value.text
    if let problem = text.flatMap(problem) { throw value.error(problem) }
    guard value.kind != .test else { return test { present($0) == text } }
    return { device in
      guard text != nil || present(device) != nil else { return missing }
      change(&device, text)
      return nil
    }
  }

  private static func attributes(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind != .remove else { return set { $0.profile.attributes = [:] } }
    let attributes = try value.object { (reader) throws(JSONError) in
      try reader.readTemplateValues(maximum: DeviceProfile.maximumAttributes)
    }
    return set { $0.profile.attributes = attributes }
  }

  private static func templates(_ value: PatchValue) throws(JSONError) -> Application {
    guard value.kind != .remove else { return set { $0.templates = [] } }
    let templates = try value.object { (reader) throws(JSONError) in try reader.readDeviceTemplates() }
    return set { $0.templates = templates }
  }

  private static func template(_ name: String, _ value: PatchValue) throws(JSONError) -> Application {
    let template =
      value.kind == .remove
      ? nil : try value.object { (reader) throws(JSONError) in try reader.readDeviceTemplate(named: name) }
    return { device in
      guard template != nil || device.templates.contains(where: { $0.template.name == name }) else { return missing }
      device.templates.removeAll { $0.template.name == name }
      if let template { device.templates.append(template) }
      return nil
    }
  }
}

/// The value of an operation, read as its path requires.
private struct PatchValue {
  private let operation: JSONPatch.Operation
  private let path: String

  init(_ operation: JSONPatch.Operation, _ path: String) { (self.operation, self.path) = (operation, path) }

  var kind: JSONPatch.Kind { operation.kind }

  func error(_ problem: String) -> JSONError {
    JSONError(field: "[\(operation.index)]", problem: "\(path) \(problem)")
  }

  var text: String {
    get throws(JSONError) {
      guard let text = try operation.text else { throw error("must have a value that is a string") }
      return text
    }
  }

  var tag: String {
    get throws(JSONError) {
      let tag = try text
      guard Tag.isAddressable(tag) else { throw error("must have a value of \(Tag.rule)") }
      return tag
    }
  }

  var tags: [String] {
    get throws(JSONError) {
      var reader = try reader(of: .array, "an array of tags")
      do throws(JSONError) { return try reader.readTags() } catch {
        throw JSONError(field: "[\(operation.index)].value\(error.field)", problem: error.problem)
      }
    }
  }

  func object<Result>(_ read: (inout JSONReader) throws(JSONError) -> Result) throws(JSONError) -> Result {
    guard kind != .test else { throw error("cannot be tested") }
    var reader = try reader(of: .object, "an object")
    do throws(JSONError) { return try read(&reader) } catch {
      throw self.error("has a value whose \(error.field) \(error.problem)")
    }
  }

  private func reader(of kind: JSONReader.Kind, _ name: String) throws(JSONError) -> JSONReader {
    var reader = try JSONReader((operation.value ?? [])[...], refusesLoneSurrogates: true)
    guard operation.value != nil, try reader.nextKind() == kind else {
      throw error("must have a value that is \(name)")
    }
    return reader
  }
}
