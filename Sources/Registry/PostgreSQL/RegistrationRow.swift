import FanfareCore
import PostgreSQL

/// A row of the table of registrations: an issued id that waits to be completed, or a registration.
struct RegistrationRow {
  let id: RegistrationID
  /// Of an issued id, too, if one was given when it was issued.
  let handle: String?
  /// When the id was issued or the app reported its handle last.
  let registeredAt: UnixTime
  /// Until when an issued id waits; nil for a registration.
  let expiresAt: UnixTime?
  /// Nil for an id that is only issued.
  let registration: Registration?

  /// What `init(_:_:hub:)` reads.
  static let columns =
    "id, username, platform, handle, installation, tags, registered_at, created_at, expires_at, seen_at"

  /// Reads a row. Throws when it is not one that this release could have written.
  init(_ rows: ResultRows, _ row: Int, hub: HubName) throws {
    id = try rows.identifier(row, 0)
    handle = try rows.optionalText(row, 3)
    registeredAt = UnixTime(milliseconds: try rows.integer(row, 6))
    expiresAt = try rows.optionalInteger(row, 8).map { UnixTime(milliseconds: $0) }
    guard let user = try rows.optionalText(row, 1) else {
      registration = nil
      return
    }
    guard let platform = Platform(stored: try rows.integer(row, 2)), let handle else {
      throw StoredRegistration.damaged
    }
    registration = Registration(
      id: id, hub: hub, user: user, platform: platform, handle: handle, tags: try rows.texts(row, 5),
      installation: try rows.optionalText(row, 4), registeredAt: registeredAt,
      createdAt: UnixTime(milliseconds: try rows.integer(row, 7)),
      seenAt: try rows.optionalInteger(row, 9).map { UnixTime(milliseconds: $0) })
  }

  /// Whether the rules of ownership let the registration take this one's place.
  func mayBeReplaced(by new: Registration) -> Bool {
    guard let registration else { return true }
    return RegistrationRules.mayReplace(registration, user: new.user, platform: new.platform, handle: new.handle)
  }
}

extension ResultRows {
  /// A `uuid` column as an identifier.
  func identifier<Subject>(_ row: Int, _ column: Int32) throws -> Identifier<Subject> {
    let words = try uuid(row, column)
    return Identifier(high: words.high, low: words.low)
  }
}

extension Parameter {
  /// An identifier for a `uuid` column.
  static func id<Subject>(_ id: Identifier<Subject>) -> Self { .uuid(high: id.high, low: id.low) }

  /// Identifiers as an array.
  static func ids<Subject>(_ ids: [Identifier<Subject>]) -> Self { .uuids(ids.map { (high: $0.high, low: $0.low) }) }

  /// A moment.
  static func time(_ time: UnixTime?) -> Self { .int8(time?.milliseconds) }

  /// A platform's bit.
  static func platform(_ platform: Platform) -> Self { .int2(Int16(PlatformSet(platform).rawValue)) }
}
