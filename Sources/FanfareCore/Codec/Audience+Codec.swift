extension Audience: JSONWritable {
  /// Writes the value of the `to` member.
  package func write(to json: inout JSONWriter) {
    json.object { json in
      switch self {
      case .user(let name): json.member("user", name)
      case .tag(let tag): json.member("tag", tag)
      case .registration(let id): json.member("registration", id)
      case .device(let platform, let handle):
        json.object("device") { json in
          json.member("platform", platform)
          json.member("handle", handle)
        }
      case .tags(let tags): json.member("tags", tags)
      case .expression(let expression): json.member("expression", expression.description)
      case .everyone: json.member("everyone", true)
      }
    }
  }

  /// Reads the value of the `to` member: an object with exactly one audience.
  ///
  /// An unknown member is an error even in a record: a send must not go out unless its audience is fully understood.
  /// `limits` are those of an expression.
  package static func read(
    from reader: inout JSONReader, limits: TagExpression.Limits = .records
  ) throws(JSONError) -> Audience {
    var (audience, count): (Audience?, Int) = (nil, 0)
    try reader.readObject { (key, reader) throws(JSONError) in
      count += 1
      switch key {
      case "user":
        let name = try reader.readString()
        guard UserName.isValid(name) else { throw reader.error("must be \(UserName.rule)") }
        audience = .user(name)
      case "tag": audience = .tag(try reader.readTag())
      case "registration":
        guard let id = try reader.readRegistrationID() else {
          throw reader.error("must be a registration id (a UUID)")
        }
        audience = .registration(id)
      case "device": audience = try readDevice(from: &reader)
      case "tags": audience = try readTags(from: &reader)
      case "expression":
        let text = try reader.readString()
        do throws(TagExpressionError) { audience = .expression(try TagExpression(text, within: limits)) } catch {
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

  private static func readTags(from reader: inout JSONReader) throws(JSONError) -> Audience {
    let tags = try reader.readDistinctTags(upTo: maximumTags) { "is one more than the \($0) tags that there may be" }
    guard !tags.isEmpty else { throw reader.error("must name at least one tag") }
    return Audience(anyOf: tags)
  }

  private static func readDevice(from reader: inout JSONReader) throws(JSONError) -> Audience {
    var (platform, handle): (Platform?, String?)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "platform":
        guard platform == nil else { throw reader.duplicateMember() }
        platform = try reader.readPlatform()
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
