extension Audience {
  /// Appends the `to` member's value.
  func append(to output: inout [UInt8]) {
    switch self {
    case .user(let name):
      output.append(literal: #"{"user":"#)
      output.appendJSON(name)
      output.append(UInt8(ascii: "}"))
    case .tag(let tag):
      output.append(literal: #"{"tag":"#)
      output.appendJSON(tag)
      output.append(UInt8(ascii: "}"))
    case .registration(let id):
      output.append(literal: #"{"registration":"#)
      output.appendJSON(id)
      output.append(UInt8(ascii: "}"))
    case .device(let platform, let handle):
      output.append(literal: #"{"device":{"platform":"#)
      output.appendJSON(platform.rawValue)
      output.append(literal: #","handle":"#)
      output.appendJSON(handle)
      output.append(literal: "}}")
    }
  }

  /// Reads the `to` member's value: an object with exactly one audience. Another member is an error even in a record: a send whose audience
  /// is not wholly understood must not go out.
  package static func read(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var (audience, count): (Audience?, Int) = (nil, 0)
    try reader.readObject { (key, reader) throws(JSONError) in
      count += 1
      switch key {
      case "user":
        let name = try reader.readString()
        guard UserName.isSound(name) else { throw reader.error("must be \(UserName.rule)") }
        audience = .user(name)
      case "tag":
        let tag = try reader.readString()
        guard Tag.isSound(tag) || Tag.user(of: tag).map(UserName.isSound) == true else {
          throw reader.error("must be \(Tag.rule)")
        }
        audience = .tag(tag)
      case "registration":
        guard let id = RegistrationID(utf8: try reader.readUTF8()) else {
          throw reader.error("must be a registration id (a UUID)")
        }
        audience = .registration(id)
      case "device": audience = try readDevice(from: &reader)
      default: throw reader.error("is not a supported audience; user, tag, registration and device are")
      }
    }
    guard let audience, count == 1 else {
      throw reader.error("must have exactly one of user, tag, registration and device")
    }
    return audience
  }

  private static func readDevice(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var (platform, handle): (Platform?, String?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "platform":
        guard platform == nil else { throw reader.givenTwice() }
        guard let known = Platform(name: try reader.readString()) else {
          throw reader.error("must be \"apns\", \"fcm\" or \"wns\"")
        }
        platform = known
      case "handle":
        guard handle == nil else { throw reader.givenTwice() }
        handle = try reader.readString()
      default: throw reader.error("is not a known member")
      }
    }
    guard let platform else { throw reader.error("must have a platform") }
    guard let handle else { throw reader.error("must have a handle") }
    if let complaint = DeviceHandle.complaint(about: handle, platform: platform) {
      throw reader.error("has a handle that \(complaint)")
    }
    return .device(platform, handle: DeviceHandle.normalized(handle, platform: platform))
  }
}
