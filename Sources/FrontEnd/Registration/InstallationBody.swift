import FanfareCore

/// What an app says to register by installation: `{"platform":"ios","instId":"…","deviceToken":"…"}`, on Windows with
/// `channelUri`.
struct InstallationBody: Hashable {
  let platform: Platform
  let installation: String
  let handle: String

  /// Reads and checks the body; a member that is missing or not known is an error that names it.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var members: [String: String] = [:]
    do throws(JSONError) {
      var reader = try JSONReader(body)
      try reader.readObject { (key, reader) throws(JSONError) in
        guard let name = ["platform", "instId", "deviceToken", "channelUri"].first(where: { key.matches($0) }) else {
          throw reader.error("is not a known member")
        }
        guard members.updateValue(try reader.readString(), forKey: name) == nil else { throw reader.duplicateMember() }
      }
      try reader.finish()
      self = try Self(members)
    } catch {
      throw Refusal(error)
    }
  }

  private init(_ members: [String: String]) throws(JSONError) {
    func required(_ name: String) throws(JSONError) -> String {
      guard let value = members[name] else { throw JSONError(field: name, problem: "is missing") }
      return value
    }
    let handleMember: String
    switch try required("platform").lowercased() {
    case "ios": (platform, handleMember) = (.apns, "deviceToken")
    case "android": (platform, handleMember) = (.fcm, "deviceToken")
    case "windows": (platform, handleMember) = (.wns, "channelUri")
    default: throw JSONError(field: "platform", problem: "must be \"ios\", \"android\" or \"windows\"")
    }
    let other = handleMember == "deviceToken" ? "channelUri" : "deviceToken"
    guard members[other] == nil else { throw JSONError(field: other, problem: "does not belong to this platform") }
    installation = try required("instId")
    guard Tag.isInstallation(installation) else {
      throw JSONError(field: "instId", problem: "must be \(Tag.installationRule)")
    }
    handle = try required(handleMember)
    if let complaint = DeviceHandle.problem(with: handle, platform: platform) {
      throw JSONError(field: handleMember, problem: complaint)
    }
  }
}
