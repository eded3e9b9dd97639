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
  static let common = """
    id, username, platform, handle, installation, tags, registered_at, created_at, seen_at, profile, valid_until
    """
  private static let names = common.split(separator: ", ")
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
      let (platform, tags) = (try row.integer(2), try row.texts(5))
      let profile = try row.optionalText(9).map(Self.profile)
      let isTemplate = platform >= TemplateRow.firstCode
      registration = Registration(
        id: id, hub: hub, user: user, platform: try Platform(row: platform),
        handle: isTemplate ? TemplateRow.handle(in: handle) : handle, tags: tags,
        installation: try isTemplate || profile?.tile != nil
          ? Registration.installation(in: tags) : row.optionalText(4),
        registeredAt: registeredAt, createdAt: try row.time(7), seenAt: try row.optionalTime(8), profile: profile,
        validUntil: try row.optionalTime(10))
    }
    self.init(
      id: id, handle: handle, registeredAt: registeredAt, expiresAt: try row.optionalTime(11),
      registration: registration)
  }

  private static func profile(stored text: String) throws -> DeviceProfile {
    do { return try DeviceProfile.read(Array(text.utf8)[...]) } catch { throw damaged }
  }

  /// The values for an upsert, without those of the columns that only one of the tables has.
  static func values(of registration: Registration) -> [Value] {
    [
      .hub(registration.hub), .id(registration.id), .text(registration.user),
      .integer(Int64(registration.storedPlatform)), .text(registration.address), .text(registration.heldInstallation),
      .texts(registration.tags), .time(registration.registeredAt), .time(registration.createdAt),
      .time(registration.laterSeenAt), .text(registration.profileText), .time(registration.validUntil),
    ]
  }

  /// Writes the row of one of the registrations, with the columns `hub` and `common`.
  ///
  /// Reads member by member: copying a whole registration would retain every reference in it.
  static func write(_ registrations: [Registration], _ place: Int, to rows: inout CopyWriter) throws {
    try rows.row(columns: 12)
    rows.text(registrations[place].hub.rawValue)
    rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
    rows.text(registrations[place].user)
    rows.int2(registrations[place].storedPlatform)
    rows.text(registrations[place].address)
    rows.text(registrations[place].heldInstallation)
    rows.texts(registrations[place].tags)
    rows.int8(registrations[place].registeredAt.milliseconds)
    rows.int8(registrations[place].createdAt.milliseconds)
    rows.int8(registrations[place].laterSeenAt?.milliseconds)
    rows.text(registrations[place].profileText)
    rows.int8(registrations[place].validUntil?.milliseconds)
  }

  /// Updates the registrations of a hub, from arrays of the values.
  static let updateAll = PreparedStatement(updateText)

  /// The values of `updateAll`, without the hub.
  static func arrays(of all: [Registration]) -> [Parameter] {
    [
      .ids(all.map(\.id)), .texts(all.map(\.user)), .int2s(all.map(\.storedPlatform)), .texts(all.map(\.address)),
      .texts(all.map(\.heldInstallation)), .texts(all.map { $0.tags.joined(separator: "\n") }),
      .int8s(all.map(\.registeredAt.milliseconds)), .int8s(all.map(\.createdAt.milliseconds)),
      .int8s(all.map(\.laterSeenAt?.milliseconds)), .texts(all.map(\.profileText)),
      .int8s(all.map(\.validUntil?.milliseconds)),
    ]
  }

  private static var updateText: String {
    let changes = names.dropFirst().map { name in
      "\(name) = " + (name == "tags" ? "string_to_array(k.tags, E'\\n')" : "k.\(name)")
    }.joined(separator: ", ")
    let parameters = names.indices.map { "$\($0 + 2)" }.joined(separator: ", ")
    return """
      UPDATE registrations SET expires_at = NULL, \(changes) FROM unnest(\(parameters)) AS k (\(common))
      WHERE registrations.hub = $1 AND registrations.id = k.id
      """
  }

  private static func upsertText(_ table: String, with others: String) -> String {
    let columns = names + others.split(separator: ", ")
    let parameters = (0...columns.count).map { "?\($0 + 1)" }.joined(separator: ", ")
    let changes = columns.dropFirst().map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return """
      INSERT INTO \(table) (hub, \(columns.joined(separator: ", "))) VALUES (\(parameters))
      ON CONFLICT (hub, id) DO UPDATE SET \(changes)
      """
  }
}

/// The values of columns that are not those of a member.
extension Registration {
  /// The address that is stored: no other registration of the hub has it.
  var address: String {
    profile?.template.map { TemplateRow.address(handle: handle, of: $0) } ?? handle
  }

  /// The platform that is stored.
  var storedPlatform: Int16 { Int16(platform.code) + (isTemplate ? Int16(TemplateRow.firstCode) : 0) }

  /// The installation whose native row this is: an installation has one.
  /// That of a template or a tile is known by its tag.
  var heldInstallation: String? { isPart ? nil : installation }

  /// When the app was last seen, if that was after `registeredAt`.
  var laterSeenAt: UnixTime? { seenAt > registeredAt ? seenAt : nil }

  /// The profile as it is stored.
  var profileText: String? { profile.map { String(decoding: JSONWriter.bytes(of: $0), as: UTF8.self) } }
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
