package import FanfareCore

/// A registration as a line of a file has it, read and checked as far as that can be done without looking at what is
/// registered.
///
/// One JSON object:
/// `{"id":"…","user":"alice","platform":"apns","handle":"…","installation":"…","tags":["news"],"registeredAt":"…","createdAt":"…",
/// "lastSeen":"…"}`, which is what `GET /api/registrations/{id}` answers.
/// - `user`, `platform` (`apns`, `fcm` or `gcm`, `wns`) and `handle` must be there; what they may be is what an app may
///   register.
/// - `id`: a random UUID (version 4). Without it, that of the registration that the installation has or that holds the
///   handle; a new one where there is none.
/// - `installation`: the id by which the app registers, if it registers by installation.
/// - `tags`: may be missing. The user's and the installation's own need not be among them.
/// - `registeredAt`: when the app reported the handle last (RFC 3339). Without it `lastSeen`; without both, the time of
///   the import.
/// - `createdAt`: when the user registered the device first; `registeredAt` where it is missing or later.
/// - `lastSeen`: when the app was heard of last; `registeredAt` where it is missing or earlier.
package struct RegistrationLine: Sendable {
  /// The most bytes of a line.
  package static let maximumLength = 64 * 1024
  /// How far a time may lie in the future: the clocks of machines differ.
  private static let leeway: Duration = .seconds(300)

  /// Its number in the file, from 1.
  package let number: Int
  /// What it says; with a random id where it names none.
  package let registration: Registration
  /// Whether it names an id.
  package let isIDGiven: Bool
  /// Whether it says since when the registration is its user's.
  package let isCreationGiven: Bool

  /// Reads a line. Throws what is wrong with it: the member, never its value.
  package init(_ bytes: ArraySlice<UInt8>, number: Int, hub: HubName, at now: UnixTime) throws(JSONError) {
    var members = Members()
    var reader = try JSONReader(bytes)
    let latest = now + Self.leeway
    try reader.readObject { (key, reader) throws(JSONError) in try members.read(key, from: &reader, notAfter: latest) }
    try reader.finish()
    self.number = number
    isIDGiven = members.id != nil
    isCreationGiven = members.createdAt != nil
    registration = try members.registration(hub: hub, at: now)
  }

  /// The members that were read so far.
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
        // Ids that sort by time or count upwards would all be in one page of a broadcast, and the others empty.
        guard known.high & 0xF000 == 0x4000, known.low >> 62 == 0b10 else {
          throw reader.error("must be a random UUID (version 4)")
        }
        id = known
      case "user": user = try text(user, &reader)
      case "platform":
        guard platform == nil else { throw reader.duplicateMember() }
        guard let known = Platform(name: try reader.readString()) else {
          throw reader.error("must be \"apns\", \"fcm\", \"gcm\" or \"wns\"")
        }
        platform = known
      case "handle": handle = try text(handle, &reader)
      case "installation":
        if installation == nil, try reader.readNull() { return }
        installation = try text(installation, &reader)
      case "tags":
        guard tags == nil else { throw reader.duplicateMember() }
        tags = try reader.readTags()
      case "registeredAt": registeredAt = try time(registeredAt, &reader)
      case "createdAt": createdAt = try time(createdAt, &reader)
      case "lastSeen": seenAt = try time(seenAt, &reader)
      default: throw JSONError(field: "", problem: "has a member that is not known")
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
      if let complaint = DeviceHandle.problem(with: handle, platform: platform) {
        throw JSONError(field: "handle", problem: complaint)
      }
      let registeredAt = registeredAt ?? seenAt ?? now
      let tags: [String]
      do throws(RegistryError) {
        tags = try RegistrationRules.tags(of: user, given: self.tags ?? [], installation: installation)
      } catch {
        throw JSONError(field: "", problem: error.message)
      }
      return Registration(
        id: id ?? .random(), hub: hub, user: user, platform: platform,
        handle: DeviceHandle.normalized(handle, platform: platform), tags: tags, installation: installation,
        registeredAt: registeredAt, createdAt: min(createdAt ?? registeredAt, registeredAt), seenAt: seenAt)
    }
  }
}
