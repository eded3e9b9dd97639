import FanfareCore
import Store

/// A row of the table of registrations: a registration, or an issued id that has not been completed.
struct StoredRegistration {
  let id: RegistrationID
  /// The address (``FanfareCore/Registration/address``); an issued id has one if a handle was given when it was issued.
  let handle: String?
  /// When the id was issued or the app last reported its handle.
  let registeredAt: UnixTime
  /// The end of an issued id's lifetime; nil for a registration.
  let expiresAt: UnixTime?
  /// Nil for an issued id.
  let registration: Registration?

  /// Thrown for a row that no release can have written.
  static let damaged = RegistryError(.unavailable, "the registry has a row that it cannot read")

  /// Whether the rules of ownership allow the new registration to replace this row.
  func mayBeReplaced(by new: Registration) -> Bool {
    guard let registration else { return true }
    return RegistrationRules.mayReplace(registration, user: new.user, platform: new.platform, handle: new.handle)
  }

  /// Whether the row counts at the moment. Rows count without a moment given, until they are purged.
  func isLive(at now: UnixTime?) -> Bool {
    guard let now, let expiresAt else { return true }
    return expiresAt > now
  }
}

/// The columns of the tables `registrations` and `quarantine`: how they are read and written.
extension StoredRegistration {
  /// The columns that a registration has in both tables, in the order of `values(of:)`.
  private static let common = """
    id, username, platform, handle, installation, tags, registered_at, created_at, seen_at, profile, valid_until
    """
  /// The columns that `init(_:hub:)` reads.
  static let columns = common + ", expires_at"
  /// Those of a quarantined registration.
  static let quarantineColumns = common + ", NULL"

  static let upsert = PreparedStatement(upsertText("registrations", with: "expires_at"))
  static let upsertQuarantined = PreparedStatement(upsertText("quarantine", with: "dropped_at, ends_at"))

  /// Reads a row of ``columns``. Throws ``damaged``.
  init(_ row: Row, hub: HubName) throws {
    let id: RegistrationID = try row.id(0)
    let handle = try row.optionalText(3)
    let registeredAt = try row.time(6)
    var registration: Registration?
    if let user = try row.optionalText(1) {
      guard let handle else { throw StoredRegistration.damaged }
      registration = try Registration(
        stored: id, hub: hub, user: user, platform: row.integer(2), address: handle, tags: row.texts(5),
        installation: row.optionalText(4), registeredAt: registeredAt, createdAt: row.time(7),
        seenAt: row.optionalTime(8), profile: row.optionalText(9), validUntil: row.optionalTime(10))
    }
    self.init(
      id: id, handle: handle, registeredAt: registeredAt, expiresAt: try row.optionalTime(11),
      registration: registration)
  }

  /// The values for an upsert, without those of the columns that only one of the tables has.
  static func values(of registration: Registration) -> [Value] {
    [
      .hub(registration.hub), .id(registration.id), .text(registration.user),
      .integer(Int64(registration.storedPlatform)), .text(registration.address), .text(registration.heldInstallation),
      .texts(registration.tags), .time(registration.registeredAt), .time(registration.createdAt),
      .time(registration.seenAt > registration.registeredAt ? registration.seenAt : nil),
      .text(registration.profileText), .time(registration.validUntil),
    ]
  }

  private static func upsertText(_ table: String, with others: String) -> String {
    let columns = "\(common), \(others)".split(separator: ", ")
    let parameters = (0...columns.count).map { "?\($0 + 1)" }.joined(separator: ", ")
    let changes = columns.dropFirst().map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return """
      INSERT INTO \(table) (hub, \(columns.joined(separator: ", "))) VALUES (\(parameters))
      ON CONFLICT (hub, id) DO UPDATE SET \(changes)
      """
  }
}

/// A place claimed for a registration: its id, the row with that id, and the present holder of its handle.
struct RegistrationClaim {
  let id: RegistrationID
  /// Nil for a new id.
  let stored: StoredRegistration?
  /// The id of the row that holds the handle; equal to `id` when no other row does.
  let holder: RegistrationID
}

extension RegistrationClaim {
  /// Whether the rules of ownership allow the new registration in the place; `quarantined` was there before.
  func mayBecome(_ new: Registration, insteadOf quarantined: Registration?) -> Bool {
    if let stored { return stored.mayBeReplaced(by: new) }
    return quarantined.map {
      RegistrationRules.mayReplace($0, user: new.user, platform: new.platform, handle: new.handle)
    } ?? true
  }
}

/// The result of one step of looking for registrations that have not been seen for long.
struct ExpiryScan {
  let stale: [RegistrationID]
  /// The last registration examined; nil at the end of the slice.
  let last: RegistrationID?

  /// `rows` has ids and whether they are stale, by ascending ids.
  init(_ rows: [(id: RegistrationID, isStale: Bool)], of slice: RegistrationSlice, limit: Int) {
    stale = rows.filter(\.isStale).map(\.id)
    let last = rows.last?.id
    self.last = rows.count < limit || last == slice.last ? nil : last
  }
}
