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
    case .tags(let tags):
      output.append(literal: #"{"tags":["#)
      for (index, tag) in tags.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        output.appendJSON(tag)
      }
      output.append(literal: "]}")
    case .expression(let expression):
      output.append(literal: #"{"expression":"#)
      output.appendJSON(expression.description)
      output.append(UInt8(ascii: "}"))
    case .everyone: output.append(literal: #"{"everyone":true}"#)
    }
  }

  /// Reads the `to` member's value: an object with exactly one audience. Another member is an error even in a record: a
  /// send whose audience is not wholly understood must not go out.
  package static func read(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var (audience, count): (Audience?, Int) = (nil, 0)
    try reader.readObject { (key, reader) throws(JSONError) in
      count += 1
      switch key {
      case "user":
        let name = try reader.readString()
        guard UserName.isValid(name) else { throw reader.error("must be \(UserName.rule)") }
        audience = .user(name)
      case "tag":
        audience = .tag(try readTag(from: &reader))
      case "registration":
        guard let id = try reader.readRegistrationID() else {
          throw reader.error("must be a registration id (a UUID)")
        }
        audience = .registration(id)
      case "device": audience = try readDevice(from: &reader)
      case "tags": audience = try readTags(from: &reader)
      case "expression":
        let text = try reader.readString()
        do throws(TagExpressionError) { audience = .expression(try TagExpression(text)) } catch {
          throw reader.error(error.description)
        }
      case "everyone":
        guard try reader.readBoolean() else { throw reader.error("must be true") }
        audience = .everyone
      default: throw reader.error("is not an audience; \(kinds) are")
      }
    }
    guard let audience, count == 1 else { throw reader.error("must have exactly one of \(kinds)") }
    return audience
  }

  private static let kinds = "user, tag, tags, expression, registration, device and everyone"

  private static func readTag(from reader: inout JSONReader) throws(JSONError) -> String {
    let tag = try reader.readString()
    guard Tag.isAddressable(tag) else { throw reader.error("must be \(Tag.rule)") }
    return tag
  }

  private static func readTags(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var tags: [String] = []
    try reader.readArray { (reader) throws(JSONError) in
      guard tags.count < maximumTags else {
        throw reader.error("is one more than the \(maximumTags) tags that there may be")
      }
      tags.append(try readTag(from: &reader))
    }
    guard !tags.isEmpty else { throw reader.error("must name at least one tag") }
    return Audience(anyOf: tags)
  }

  private static func readDevice(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var (platform, handle): (Platform?, String?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "platform":
        guard platform == nil else { throw reader.duplicateMember() }
        guard let known = Platform(name: try reader.readString()) else {
          throw reader.error("must be \"apns\", \"fcm\" or \"wns\"")
        }
        platform = known
      case "handle":
        guard handle == nil else { throw reader.duplicateMember() }
        handle = try reader.readString()
      default: throw reader.error("is not a known member")
      }
    }
    guard let platform else { throw reader.error("must have a platform") }
    guard let handle else { throw reader.error("must have a handle") }
    if let problem = DeviceHandle.problem(with: handle, platform: platform) {
      throw reader.error("has a handle that \(problem)")
    }
    return .device(platform, handle: DeviceHandle.normalized(handle, platform: platform))
  }
}
