import FanfareCore

/// The body of a registration: a platform, a handle, tags, and what templates and local times need.
struct DeviceBody: Hashable {
  /// The kind of a body: a registration has at most one template, an installation several.
  enum Kind { case registration, installation }

  let platform: Platform
  let handle: String
  let tags: [String]
  let profile: DeviceProfile?
  let templates: [DeviceRequest.Template]

  /// Reads a body of the project's own routes: `{"platform":"apns","handle":"…","tags":["news"],"locale":"de"}`.
  ///
  /// The platform may also be named by its system (`ios`, `android`, `windows`), and the handle `deviceToken` or, on
  /// Windows, `channelUri`. Throws a refusal that names a missing, unknown, repeated or invalid member.
  init(_ body: ArraySlice<UInt8>, of kind: Kind) throws(Refusal) {
    var (platform, handle, tags): (Platform?, (member: String, value: String)?, [String]?)
    var (profile, profiled) = (DeviceProfile(), Set<String>())
    var templates: [DeviceRequest.Template]?
    try readBody(body) { (key, reader) throws(JSONError) in
      switch key {
      case "platform":
        guard platform == nil else { throw reader.duplicateMember() }
        platform = Platform(systemOrName: try reader.readString())
        guard platform != nil else { throw reader.error(Platform.expectation) }
      case _ where Self.handleMembers.contains { $0 ~= key }:
        guard handle == nil else {
          throw reader.error("must be given once, as \(Self.handleMembers.alternatives)")
        }
        handle = (key.text, try reader.readString())
      case "tags":
        guard tags == nil else { throw reader.duplicateMember() }
        tags = try reader.readTags()
      case "templates" where kind == .installation:
        guard templates == nil else { throw reader.duplicateMember() }
        templates = try reader.readDeviceTemplates()
      case "template" where kind == .installation: throw reader.error("is not a known member; templates is")
      default:
        guard try profile.readMember(key, from: &reader) else { throw reader.error("is not a known member") }
        guard profiled.insert(key.text).inserted else { throw reader.duplicateMember() }
        if "timeZone" ~= key, let name = profile.timeZone, !TimeZoneName.isKnown(name) {
          throw reader.error(TimeZoneName.expectation)
        }
      }
    }
    try self.init(
      platform, "platform", handle?.value, handle?.member ?? "handle", tags, profile: profile,
      templates: templates ?? [])
  }

  /// The members that may hold the handle.
  private static let handleMembers = ["handle"] + Platform.handleMembers

  /// Reads a body of the app-compatible route: `{"Platform":"apns","Handle":"…","Tags":["news"]}`.
  ///
  /// Names of members are matched in any letter case; unknown members are ignored. Throws a refusal that names the
  /// member.
  init(ofApp body: ArraySlice<UInt8>) throws(Refusal) {
    var (platform, handle, tags): (Platform?, String?, [String]?)
    try readBody(body) { (key, reader) throws(JSONError) in
      if key.matches("platform") {
        guard platform == nil else { throw reader.duplicateMember() }
        platform = Platform(name: try reader.readString())
        guard platform != nil else { throw reader.error("must be \(Platform.appNames.quoted.alternatives)") }
      } else if key.matches("handle") {
        guard handle == nil else { throw reader.duplicateMember() }
        handle = try reader.readString()
      } else if key.matches("tags") {
        guard tags == nil else { throw reader.duplicateMember() }
        tags = try reader.readTags()
      } else {
        try reader.skipValue()
      }
    }
    try self.init(platform, "Platform", handle, "Handle", tags, profile: DeviceProfile(), templates: [])
  }

  private init(
    _ platform: Platform?, _ platformMember: String, _ handle: String?, _ handleMember: String, _ tags: [String]?,
    profile: DeviceProfile, templates: [DeviceRequest.Template]
  ) throws(Refusal) {
    do throws(JSONError) {
      self.platform = try required(platform, platformMember)
      self.handle = try valid(try required(handle, handleMember), handleMember, on: self.platform)
      self.tags = tags ?? []
      try profile.check()
      try profile.template?.check(on: self.platform, as: "template")
      for template in templates {
        try template.template.check(on: self.platform, as: "templates.\(template.template.name)")
      }
    } catch {
      throw Refusal(error)
    }
    self.profile = profile.isEmpty ? nil : profile
    self.templates = templates
  }
}

extension DeviceBody {
  func request(id: RegistrationID? = nil, installation: String? = nil, by caller: Caller) -> DeviceRequest {
    DeviceRequest(
      id: id, installation: installation, hub: caller.hub.name, user: caller.user, platform: platform, handle: handle,
      tags: tags, profile: profile, templates: templates)
  }
}

/// The body of registering by installation: `{"platform":"ios","instId":"…","deviceToken":"…"}`.
///
/// The platform is named by its system. On Windows `channelUri` takes the place of `deviceToken`. Names of members are
/// matched in any letter case.
struct AppInstallationBody: Hashable {
  let platform: Platform
  let installation: String
  let handle: String

  /// Reads and checks a body. Throws a refusal that names a missing, unknown, repeated or invalid member.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var members: [String: String] = [:]
    try readBody(body) { (key, reader) throws(JSONError) in
      guard let name = Self.names.first(where: { key.matches($0) }) else {
        throw reader.error("is not a known member")
      }
      guard members.updateValue(try reader.readString(), forKey: name) == nil else { throw reader.duplicateMember() }
    }
    do throws(JSONError) { self = try Self(members) } catch { throw Refusal(error) }
  }

  private static let names = ["platform", "instId"] + Platform.handleMembers

  private init(_ members: [String: String]) throws(JSONError) {
    guard let platform = Platform(system: try required(members["platform"], "platform").lowercased()) else {
      let systems = Platform.allCases.map { $0.vocabulary.system }
      throw JSONError(field: "platform", problem: "must be \(systems.quoted.alternatives)")
    }
    self.platform = platform
    let handleMember = platform.vocabulary.handleMember
    for other in Platform.handleMembers where other != handleMember && members[other] != nil {
      throw JSONError(field: other, problem: "does not belong to this platform")
    }
    installation = try required(members["instId"], "instId")
    guard Tag.isInstallation(installation) else {
      throw JSONError(field: "instId", problem: "must be \(Tag.installationRule)")
    }
    handle = try valid(try required(members[handleMember], handleMember), handleMember, on: platform)
  }
}

/// Reads a body that is one JSON object; `member` reads the value of each member.
func readBody(
  _ body: ArraySlice<UInt8>, member: (JSONReader.Key, inout JSONReader) throws(JSONError) -> Void
) throws(Refusal) {
  do throws(JSONError) {
    var reader = try JSONReader(body, refusesLoneSurrogates: true)
    try reader.readObject(member)
    try reader.finish()
  } catch {
    throw Refusal(error)
  }
}

private func required<Value>(_ value: Value?, _ member: String) throws(JSONError) -> Value {
  guard let value else { throw JSONError(field: member, problem: "is missing") }
  return value
}

/// Returns the handle if it is valid on the platform, and its member's name is that of the platform.
private func valid(_ handle: String, _ member: String, on platform: Platform) throws(JSONError) -> String {
  if member != platform.vocabulary.handleMember, Platform.handleMembers.contains(member) {
    throw JSONError(field: member, problem: "does not belong to this platform")
  }
  if let problem = DeviceHandle.problem(with: handle, platform: platform) {
    throw JSONError(field: member, problem: problem)
  }
  return handle
}

extension Platform {
  /// The rule for names of platforms, as the end of an error message.
  static let expectation: String = {
    let others = allCases.flatMap { $0.vocabulary.aliases + [$0.vocabulary.system] }
    return "must be \(allCases.map(\.name).quoted.alternatives) (or \(others.quoted.joined(separator: ", ")))"
  }()

  /// The names that the tutorial apps give.
  static let appNames = allCases.flatMap { $0.vocabulary.aliases + [$0.name] }

  /// The members that hold a handle on some platform, each once.
  static let handleMembers = allCases.map { $0.vocabulary.handleMember }.reduce(into: [String]()) {
    if !$0.contains($1) { $0.append($1) }
  }

  /// The platform of the devices with that system, in lower case.
  init?(system: String) {
    guard let platform = Self.allCases.first(where: { $0.vocabulary.system == system }) else { return nil }
    self = platform
  }

  /// Reads the name of a push service, or of the system whose devices it reaches, in any letter case.
  init?(systemOrName name: String) {
    guard let platform = Platform(system: name.lowercased()) ?? Platform(name: name) else { return nil }
    self = platform
  }
}

extension [String] {
  /// The words in quotation marks.
  var quoted: [String] { map { "\"\($0)\"" } }
}

extension JSONReader.Key {
  /// Whether it is the name in any letter case: apps use the case that is usual on their platform.
  fileprivate func matches(_ name: String) -> Bool {
    let other = name.utf8Span.span
    guard count == other.count else { return false }
    for index in indices where Self.lowercased(self[index]) != Self.lowercased(other[index]) { return false }
    return true
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
  }
}
