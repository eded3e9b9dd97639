package import FanfareCore

/// A line of an import file: a registration, validated as far as possible without the stored ones.
///
/// One JSON object, as `GET /api/registrations/{id}` answers:
/// `{"id":"…","user":"alice","platform":"apns","handle":"…","installation":"…","tags":["news"],"registeredAt":"…",
/// "createdAt":"…","lastSeen":"…"}`
/// - `user`, `platform` (`apns`, `fcm` or `gcm`, `wns`) and `handle` are required, with the same limits as for apps.
/// - `id`: a random UUID (version 4), or one that stands for another system's id (version 8). By default that of the
///   installation's registration or of the handle's holder, or a new one.
/// - `installation`: the installation id, if the app registers by installation.
/// - `tags`: optional. The user's and the installation's own tags are added.
/// - `registeredAt`: when the app last reported the handle (RFC 3339). By default `lastSeen`, or else the time of the
///   import.
/// - `createdAt`: when the user first registered the device; at most `registeredAt`, which is the default.
/// - `lastSeen`: when the app was last seen; at least `registeredAt`, which is the default.
/// - `validUntil`: when the registration ends unless its app renews it, optional.
/// - `template`, `locale`, `timeZone`, `attributes`, `tile`: the device's profile, optional. A registration with a
///   template exists for it alone, beside the one without; one of an installation needs a name.
package struct RegistrationLine: Sendable {
  /// The maximum number of bytes of a line.
  package static let maximumLength = 64 * 1024
  /// The most tags besides reserved ones: a template has those of its installation, its own and its name.
  private static let maximumTags = 2 * Tag.maximumCount + 1
  /// How far in the future a time may be, because clocks differ.
  private static let leeway: Duration = .seconds(300)

  /// The number in the file, from 1.
  package let number: Int
  /// The registration; with a random id if the line has none.
  package let registration: Registration
  /// Whether the line has an id.
  package let isIDGiven: Bool
  /// Whether the line has `createdAt`.
  package let isCreationGiven: Bool

  /// Decodes a line. The error names the member, never its value.
  package init(_ bytes: ArraySlice<UInt8>, number: Int, hub: HubName, at now: UnixTime) throws(JSONError) {
    var members = Members()
    var reader = try JSONReader(bytes, refusesLoneSurrogates: true)
    let latest = now + Self.leeway
    try reader.readObject { (key, reader) throws(JSONError) in try members.read(key, from: &reader, notAfter: latest) }
    try reader.finish()
    self.number = number
    isIDGiven = members.id != nil
    isCreationGiven = members.createdAt != nil
    registration = try members.registration(hub: hub, at: now)
  }

  /// The members read so far.
  private struct Members {
    var id: RegistrationID?
    var user: String?
    var platform: Platform?
    var handle: String?
    var installation: String?
    var tags: [String]?
    var registeredAt: UnixTime?
    var createdAt: UnixTime?
    var seenAt: UnixTime?
    var validUntil: UnixTime?
    var profile = DeviceProfile()
    private var profiled: Set<String> = []

    mutating func read(
      _ key: JSONReader.Key, from reader: inout JSONReader, notAfter latest: UnixTime
    ) throws(JSONError) {
      func time(_ former: UnixTime?, _ reader: inout JSONReader) throws(JSONError) -> UnixTime {
        guard former == nil else { throw reader.duplicateMember() }
        guard let time = try reader.readTime() else { throw reader.error("must be a time (RFC 3339)") }
        guard time <= latest else { throw reader.error("must not be in the future") }
        return time
      }
      func text(_ former: String?, _ reader: inout JSONReader) throws(JSONError) -> String {
        guard former == nil else { throw reader.duplicateMember() }
        return try reader.readString()
      }
      switch key {
      case "id":
        guard id == nil else { throw reader.duplicateMember() }
        guard let known = try reader.readRegistrationID() else { throw reader.error("must be a UUID") }
        // Ids ordered by time or a counter would all be in one page of a broadcast, and leave the others empty.
        // Version 8 is made of a digest, for ids of another system.
        guard [0x4000, 0x8000].contains(known.high & 0xF000), known.low >> 62 == 0b10 else {
          throw reader.error("must be a random UUID (version 4), or of version 8")
        }
        id = known
      case "user": user = try text(user, &reader)
      case "platform":
        guard platform == nil else { throw reader.duplicateMember() }
        guard let known = Platform(name: try reader.readString()) else {
          let names = Platform.allCases.flatMap { [$0.name] + $0.vocabulary.aliases }
          throw reader.error("must be \(names.map { "\"\($0)\"" }.alternatives)")
        }
        platform = known
      case "handle": handle = try text(handle, &reader)
      case "installation":
        if installation == nil, try reader.readNull() { return }
        installation = try text(installation, &reader)
      case "tags":
        guard tags == nil else { throw reader.duplicateMember() }
        tags = try reader.readTags(upTo: RegistrationLine.maximumTags)
      case "registeredAt": registeredAt = try time(registeredAt, &reader)
      case "createdAt": createdAt = try time(createdAt, &reader)
      case "lastSeen": seenAt = try time(seenAt, &reader)
      case "validUntil":
        guard validUntil == nil else { throw reader.duplicateMember() }
        validUntil = try reader.readTime()
        guard validUntil != nil else { throw reader.error("must be a time (RFC 3339)") }
      default:
        guard try profile.readStoredMember(key, from: &reader) else {
          throw JSONError(field: "", problem: "has an unknown member")
        }
        guard profiled.insert(key.text).inserted else { throw reader.duplicateMember() }
      }
    }

    func registration(hub: HubName, at now: UnixTime) throws(JSONError) -> Registration {
      func required<Value>(_ value: Value?, _ name: String) throws(JSONError) -> Value {
        guard let value else { throw JSONError(field: name, problem: "is missing") }
        return value
      }
      let (user, platform, handle) = (
        try required(user, "user"), try required(platform, "platform"), try required(handle, "handle")
      )
      if let problem = DeviceHandle.problem(with: handle, platform: platform) {
        throw JSONError(field: "handle", problem: problem)
      }
      let tagCount = tags?.count { !Tag.isReserved($0) } ?? 0
      guard profile.template != nil || tagCount <= Tag.maximumCount else {
        throw JSONError(field: "tags", problem: "must be at most \(Tag.maximumCount) without a template")
      }
      let registeredAt = registeredAt ?? seenAt ?? now
      let (tags, profile): ([String], DeviceProfile?)
      do throws(RegistryError) {
        profile = try RegistrationRules.profile(self.profile, for: platform)
        if let zone = profile?.timeZone, !TimeZoneName.isKnown(zone) {
          throw RegistryError(.forbidden, "timeZone: \(TimeZoneName.expectation)")
        }
        tags = try RegistrationRules.tags(
          of: user, given: self.tags ?? [], installation: installation, timeZone: profile?.timeZone,
          // A client of Azure may give the tag of an installation that the registration is not.
          isTrusted: installation == nil)
      } catch {
        throw JSONError(field: "", problem: error.message)
      }
      return Registration(
        id: id ?? .random(), hub: hub, user: user, platform: platform,
        handle: DeviceHandle.normalized(handle, platform: platform), tags: tags, installation: installation,
        registeredAt: registeredAt, createdAt: min(createdAt ?? registeredAt, registeredAt), seenAt: seenAt,
        profile: profile, validUntil: validUntil)
    }
  }
}
