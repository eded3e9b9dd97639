/// The members of a send: the one list of their names, and how each is read, checked, written and described.
///
/// The HTTP body of a send and the `data` of its record have the same names and rules. A body has further members, which
/// `Submission` reads.
package struct SendFields: Sendable {
  package var hub: HubName?
  package var sender: String?
  package var audience: Audience?
  package var platforms: PlatformSet?
  package var message: Message?
  package var native = NativePayloads()
  package var headers: [String: String] = [:]
  package var template: TemplateContent?
  package var timeToLive: Int?
  package var priority: Priority?
  package var collapseKey: String?
  package var traceparent: String?
  /// Never a member of `data`: an attribute of the event, or a header of the request.
  package var tracestate: String?
  package var replay: ReplayID?
  package var maximumPerSecond: Int?
  /// See `SendRequest.unknownMembers`.
  private(set) var unknownMembers: [UInt8] = []

  package init() {}

  /// The numbers of the members that were read, as bits.
  private var given: UInt16 = 0

  /// Reads one member. Returns false and consumes nothing if a send has no member of that name.
  ///
  /// With `strict`, for callers, repeated members, unknown or repeated members of `message` and `native`, and a `ttl` of 0
  /// are errors, and members that callers may not give are unknown. In a record unknown members are ignored, and the last
  /// of several counts.
  package mutating func read(_ key: JSONReader.Key, from reader: inout JSONReader, strict: Bool = false)
    throws(JSONError) -> Bool
  {
    func once(_ number: UInt16) throws(JSONError) {
      guard !strict || given & 1 << number == 0 else { throw reader.duplicateMember() }
      given |= 1 << number
    }
    switch key {
    case "to":
      try once(0)
      audience = try Audience.read(from: &reader, limits: strict ? .callers : .records)
    case "message":
      try once(1)
      message = try Message.read(from: &reader, strict: strict)
    case "native":
      try once(2)
      try readNative(&reader, strict: strict)
    case "template":
      try once(3)
      template = try TemplateContent.read(from: &reader, strict: strict)
    case "platforms":
      try once(4)
      try readPlatforms(&reader)
    case "ttl":
      try once(5)
      let seconds = try reader.readInteger()
      // A send with 0 has expired before it is read, which no caller intends.
      let least: Int64 = strict ? 1 : 0
      guard (least...Int64(SendRequest.maximumTimeToLive)).contains(seconds) else {
        throw reader.error("must be \(least) to \(SendRequest.maximumTimeToLive) seconds")
      }
      timeToLive = Int(seconds)
    case "priority":
      try once(6)
      guard let value = Priority(rawValue: try reader.readString()) else {
        throw reader.error("must be \"high\" or \"normal\"")
      }
      priority = value
    case "collapseKey":
      try once(7)
      collapseKey = try Self.text(&reader, maximum: SendRequest.maximumCollapseKeyLength)
    case "maxPerSecond":
      try once(8)
      maximumPerSecond = try Self.readRate(&reader)
    // Callers may not give those that follow.
    case "hub" where !strict:
      guard let name = HubName(try reader.readString()) else { throw reader.error("must be \(HubName.rule)") }
      hub = name
    case "sender" where !strict: sender = try Self.text(&reader, maximum: 256)
    case "traceparent" where !strict: traceparent = try Self.text(&reader, maximum: 128)
    case "replay" where !strict:
      guard let id = try reader.readUTF8({ ReplayID(utf8: $0) }) else { throw reader.error("must be a UUID") }
      replay = id
    default: return false
    }
    return true
  }

  /// Throws an error if a caller gave a message or native payloads in addition to a template.
  package func checkTemplateIsAlone() throws(JSONError) {
    guard template != nil, given & 0b110 != 0 else { return }
    throw JSONError(field: given & 0b010 != 0 ? "message" : "native", problem: "must not be given with template")
  }

  /// Reads the value of `maxPerSecond`.
  package static func readRate(_ reader: inout JSONReader) throws(JSONError) -> Int {
    let rate = try reader.readInteger()
    guard (1...Int64(SendRequest.greatestMaximumPerSecond)).contains(rate) else {
      throw reader.error("must be 1 to \(SendRequest.greatestMaximumPerSecond)")
    }
    return Int(rate)
  }

  /// Keeps a member of a record that `read` does not know: its writer may be newer.
  mutating func keep(_ key: JSONReader.Key, from reader: inout JSONReader) throws(JSONError) {
    unknownMembers.append(UInt8(ascii: ","))
    unknownMembers.appendJSON(key.text)
    unknownMembers.append(UInt8(ascii: ":"))
    unknownMembers.append(contentsOf: try reader.readRaw())
  }

  /// Makes the send. Throws if `to` is missing, or all of `message`, `native` and `template` are.
  package func request(id: SendID, acceptedAt: UnixTime) throws(JSONError) -> SendRequest {
    guard let audience else { throw JSONError(field: "to", problem: "is missing") }
    let content = try content()
    return SendRequest(
      id: id, hub: hub ?? .default, sender: sender, acceptedAt: acceptedAt, audience: audience,
      platforms: platforms ?? .all, content: content, timeToLive: timeToLive, priority: priority ?? .high,
      collapseKey: collapseKey, traceparent: traceparent, tracestate: tracestate, replay: replay,
      maximumPerSecond: maximumPerSecond, unknownMembers: unknownMembers)
  }

  /// The content. Throws if there is none. A template takes the place of message and native payloads.
  package func content() throws(JSONError) -> Content {
    if let template { return Content(template: template) }
    let content = Content(message: message, native: native, headers: headers)
    guard !content.isEmpty else { throw JSONError(field: "message", problem: "or native or template must be given") }
    return content
  }

  private mutating func readPlatforms(_ reader: inout JSONReader) throws(JSONError) {
    var set = PlatformSet()
    try reader.readArray { (reader) throws(JSONError) in
      set.insert(PlatformSet(try reader.readPlatform()))
    }
    guard !set.isEmpty else { throw reader.error("must name at least one platform") }
    platforms = set
  }

  private mutating func readNative(_ reader: inout JSONReader, strict: Bool) throws(JSONError) {
    var native = NativePayloads()
    var headers: [String: String]?
    try reader.readObject { (key, reader) throws(JSONError) in
      if let platform = Platform(member: key) {
        guard !strict || native[platform] == nil else { throw reader.duplicateMember() }
        native[platform] = try reader.readNativePayload(as: platform.vocabulary.nativeForm)
      } else if "headers" ~= key {
        guard !strict || headers == nil else { throw reader.duplicateMember() }
        headers = try PushHeader.read(from: &reader)
      } else {
        guard !strict else { throw reader.error("is not a known member") }
        try reader.skipValue()
      }
    }
    (self.native, self.headers) = (native, headers ?? [:])
  }

  /// Reads a string of 1 to `maximum` bytes of UTF-8.
  static func text(_ reader: inout JSONReader, maximum: Int) throws(JSONError) -> String {
    let text = try reader.readString()
    guard (1...maximum).contains(text.utf8.count) else {
      throw reader.error("must have 1 to \(maximum) bytes of UTF-8")
    }
    return text
  }
}

extension SendRequest {
  /// Writes the members that are equal for all sends of one caller at one moment.
  func writeOriginMembers(to json: inout JSONWriter) {
    json.member("hub", hub)
    json.member("sender", ifPresent: sender)
  }

  /// Writes the other members.
  func writeMembers(to json: inout JSONWriter) {
    json.member("to", audience)
    if platforms != .all { json.member("platforms", platforms.platforms) }
    content.writeMembers(to: &json)
    json.member("ttl", ifPresent: timeToLive)
    if priority != .high { json.member("priority", priority) }
    json.member("collapseKey", ifPresent: collapseKey)
    json.member("maxPerSecond", ifPresent: maximumPerSecond)
    json.member("traceparent", ifPresent: traceparent)
    json.member("replay", ifPresent: replay)
    json.splice(unknownMembers)
  }
}

/// A member of a send as the descriptions of the HTTP API and of the topics have it.
package struct SendMember: Sendable {
  package enum Place: Sendable {
    case bodies, records, both
  }

  package let name: String
  package let place: Place
  /// The members of its JSON Schema, as JSON in lines.
  package let schema: String

  fileprivate init(_ name: String, in place: Place = .both, _ schema: String) {
    (self.name, self.place, self.schema) = (name, place, schema)
  }

  fileprivate static func reference(_ name: String) -> String { ##""$ref": "#/components/schemas/\##(name)""## }
}

extension SendFields {
  /// The members in the order of the descriptions; one with different rules in bodies and records occurs twice.
  ///
  /// `SchemaFileTests` holds openapi.json and asyncapi.yaml to the list.
  package static let members = [
    SendMember("hub", in: .records, SendMember.reference("HubName")),
    SendMember("sender", in: .records, #""type": "string", "minLength": 1, "x-maxBytes": 256"#),
    SendMember("to", SendMember.reference("Audience")), SendMember("message", SendMember.reference("Message")),
    SendMember("native", SendMember.reference("Native")), SendMember("template", SendMember.reference("SendTemplate")),
    SendMember(
      "platforms",
      #"""
      "type": "array", "description": "The platforms to send to; all if it is missing.", "minItems": 1,
      "items": {\#(SendMember.reference("PlatformName"))}
      """#),
    SendMember(
      "ttl", in: .bodies,
      """
      "type": "integer", "minimum": 1, "maximum": \(SendRequest.maximumTimeToLive),
      "description": "Time to live in seconds from acceptance or from `sendAt`. An expired send is never delivered."
      """),
    SendMember(
      "ttl", in: .records,
      """
      "type": "integer", "minimum": 0, "maximum": \(SendRequest.maximumTimeToLive),
      "description": "Seconds after `time` from which the send is expired and no longer delivered."
      """),
    SendMember(
      "priority",
      """
      "type": "string", "description": "`high` wakes the device at once, `normal` at a convenient time.",
      "enum": ["high", "normal"], "default": "high"
      """),
    SendMember(
      "collapseKey",
      """
      "type": "string", "minLength": 1, "x-maxBytes": \(SendRequest.maximumCollapseKeyLength),
      "description": "Sends with the same key replace each other on the device, whatever its platform."
      """),
    SendMember(
      "maxPerSecond",
      """
      "type": "integer", "minimum": 1, "maximum": \(SendRequest.greatestMaximumPerSecond),
      "description": "The maximum rate of a broadcast in pushes per second, over all workers. Has no effect on a send to \
      one user or device."
      """),
    SendMember("traceparent", in: .records, #""type": "string", "minLength": 1, "x-maxBytes": 128"#),
    SendMember(
      "replay", in: .records,
      """
      "type": "string", "format": "uuid",
      "description": "Set by `fanfare replay` on a send that is already in the log and has to be dispatched again. It is \
      the same send, and its pushes have the same ids. If the send had ended before, its status counts as a repetition. \
      Without this member a send that is posted again is a duplicate. A record with this member may have \
      \(SendRequest.maximumRewrittenSize) bytes, because a send may become longer when it is encoded again."
      """),
    // The front end reads those that follow, and holds the send until its time.
    SendMember(
      "sendAt", in: .bodies,
      #"""
      "type": "string", "description": "The scheduled time, at most 366 days ahead. A send whose time has passed is sent \#
      at once. Without an offset, `2026-12-01T08:00:00`, it is the time of day of each device, and `timeZone` is required.",
      "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?$"
      """#),
    SendMember(
      "timeZone", in: .bodies,
      """
      "type": "string", "const": "device",
      "description": "The send is divided into one scheduled send for each moment at which a time zone in use has the \
      time. Not for a registration or a handle, and not in a batch."
      """),
    SendMember(
      "defaultTimeZone", in: .bodies,
      """
      \(SendMember.reference("TimeZone")),
      "description": "With `timeZone`: the zone of devices that have none; UTC if it is missing."
      """),
  ]
}

extension Platform {
  /// The platform with the name or alias; nil for none.
  fileprivate init?(member key: JSONReader.Key) {
    let found = Self.allCases.first { platform in
      platform.name ~= key || platform.vocabulary.aliases.contains { $0 ~= key }
    }
    guard let found else { return nil }
    self = found
  }
}

extension JSONReader {
  fileprivate mutating func readNativePayload(as form: NativePayload.Form) throws(JSONError) -> NativePayload {
    switch form {
    case .json:
      guard try nextKind() == .object else { throw error("must be an object") }
      return .json(Array(try readRaw()))
    case .text:
      let text = try readString()
      guard !text.isEmpty else { throw error("must not be empty") }
      return .text(text)
    }
  }
}
