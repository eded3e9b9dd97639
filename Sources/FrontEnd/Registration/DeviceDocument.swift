import FanfareCore

/// What the project's own routes take for a device: `{"platform":"apns","handle":"…","tags":["news"]}`. The platform
/// may also be named by its system (`ios`, `android`, `windows`), and the handle `deviceToken` or, on Windows,
/// `channelUri`.
struct DeviceDocument: Hashable {
  let platform: Platform
  let handle: String
  let tags: [String]

  /// Reads and checks the body; a member that is missing, unknown or twice there is an error that names it.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var (platform, handle, tags): (Platform?, (member: String, value: String)?, [String]?)
    do throws(JSONError) {
      var reader = try JSONReader(body)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "platform":
          guard platform == nil else { throw reader.duplicateMember() }
          guard let known = Platform(systemOrName: try reader.readString()) else {
            throw reader.error(Platform.expectation)
          }
          platform = known
        case "handle", "deviceToken", "channelUri":
          guard handle == nil else { throw reader.error("must be given once, as handle, deviceToken or channelUri") }
          handle = (key.text, try reader.readString())
        case "tags":
          guard tags == nil else { throw reader.duplicateMember() }
          tags = try reader.readTags()
        default: throw reader.error("is not a known member")
        }
      }
      try reader.finish()
      guard let platform else { throw JSONError(field: "platform", problem: "is missing") }
      guard let handle else { throw JSONError(field: "handle", problem: "is missing") }
      if (handle.member == "channelUri") != (platform == .wns), handle.member != "handle" {
        throw JSONError(field: handle.member, problem: "does not belong to this platform")
      }
      if let complaint = DeviceHandle.problem(with: handle.value, platform: platform) {
        throw JSONError(field: handle.member, problem: complaint)
      }
      self.platform = platform
      self.handle = handle.value
      self.tags = tags ?? []
    } catch {
      throw Refusal(error)
    }
  }
}

extension Platform {
  /// What must be given as a platform, as error messages state it.
  static let expectation = "must be \"apns\", \"fcm\" or \"wns\" (or \"ios\", \"gcm\", \"android\", \"windows\")"

  /// Reads the name of the push service, or of the system whose devices it reaches, in any letter case; nil for
  /// anything else.
  init?(systemOrName name: String) {
    switch name.lowercased() {
    case "ios": self = .apns
    case "android": self = .fcm
    case "windows": self = .wns
    default: self.init(name: name)
    }
  }
}
