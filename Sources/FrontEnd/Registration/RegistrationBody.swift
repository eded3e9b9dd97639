import FanfareCore

/// What an app says to complete its registration: `{"Platform":"apns","Handle":"…","Tags":["news"]}`, names in any
/// letter case, members that are not known ignored.
struct RegistrationBody: Hashable {
  let platform: Platform
  let handle: String
  let tags: [String]

  /// Reads and checks the body.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var (platform, handle, tags): (Platform?, String?, [String]?)
    do throws(JSONError) {
      var reader = try JSONReader(body)
      try reader.readObject { (key, reader) throws(JSONError) in
        if key.matches("platform") {
          guard platform == nil else { throw reader.duplicateMember() }
          guard let known = Platform(name: try reader.readString()) else {
            throw reader.error("must be \"apns\", \"gcm\", \"fcm\" or \"wns\"")
          }
          platform = known
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
      try reader.finish()
      guard let platform else { throw JSONError(field: "Platform", problem: "is missing") }
      guard let handle else { throw JSONError(field: "Handle", problem: "is missing") }
      if let complaint = DeviceHandle.problem(with: handle, platform: platform) {
        throw JSONError(field: "Handle", problem: complaint)
      }
      self.platform = platform
      self.handle = handle
      self.tags = tags ?? []
    } catch {
      throw Refusal(error)
    }
  }
}
