import FanfareCore
import PostgreSQL

extension StoredRegistration {
  /// The columns that `init(_:_:hub:)` reads.
  static let postgreSQLColumns = """
    id, username, platform, handle, installation, tags, registered_at, created_at, expires_at, seen_at, profile,
    valid_until
    """

  /// Reads a row of ``postgreSQLColumns``. Throws ``damaged``.
  init(_ rows: ResultRows, _ row: Int, hub: HubName) throws {
    let id: RegistrationID = try rows.identifier(row, 0)
    let handle = try rows.optionalText(row, 3)
    let registeredAt = UnixTime(milliseconds: try rows.integer(row, 6))
    var registration: Registration?
    if let user = try rows.optionalText(row, 1) {
      guard let handle else { throw StoredRegistration.damaged }
      registration = try Registration(
        stored: id, hub: hub, user: user, platform: try rows.integer(row, 2), address: handle,
        tags: try rows.texts(row, 5), installation: try rows.optionalText(row, 4), registeredAt: registeredAt,
        createdAt: UnixTime(milliseconds: try rows.integer(row, 7)),
        seenAt: try rows.optionalInteger(row, 9).map { UnixTime(milliseconds: $0) },
        profile: try rows.optionalText(row, 10),
        validUntil: try rows.optionalInteger(row, 11).map { UnixTime(milliseconds: $0) })
    }
    self.init(
      id: id, handle: handle, registeredAt: registeredAt,
      expiresAt: try rows.optionalInteger(row, 8).map { UnixTime(milliseconds: $0) }, registration: registration)
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

  /// Identifiers for a `uuid[]`.
  static func ids<Subject>(_ ids: [Identifier<Subject>]) -> Self { .uuids(ids.map { (high: $0.high, low: $0.low) }) }

  /// A time in Unix milliseconds; nil is NULL.
  static func time(_ time: UnixTime?) -> Self { .int8(time?.milliseconds) }
}
