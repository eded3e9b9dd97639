import FanfareCore
import PostgreSQL

/// The registrations of one hub and what belongs to them, within one transaction.
struct PostgreSQLRegistrationTable {
  private let connection: PostgreSQLConnection
  private let hub: HubName

  /// Looks at a hub's rows through a connection that is inside a transaction.
  init(_ connection: PostgreSQLConnection, _ hub: HubName) {
    self.connection = connection
    self.hub = hub
  }

  /// What has that id and has not expired; a pending one is found whatever its age where no moment is given. With
  /// `locking`, nobody else changes it until the transaction ends.
  func find(_ id: RegistrationID, locking: Bool = true, at now: UnixTime? = nil) throws -> RegistrationRow? {
    let rows = try connection.query(locking ? Self.selectLocking : Self.select, [.text(hub.rawValue), .id(id)])
    guard rows.count == 1 else { return nil }
    let row = try RegistrationRow(rows, 0, hub: hub)
    if let now, let expiry = row.expiresAt, expiry <= now { return nil }
    return row
  }

  /// What has that id, locked in the order of installing: first its installation, then the handle that it holds, then
  /// itself. Registering by handle, merging and what `put` takes over from a former holder come to installations or
  /// other handles later: the database ends one of two that wait for each other, and its transaction is repeated.
  func findLockingAll(_ id: RegistrationID, at now: UnixTime) throws -> RegistrationRow? {
    guard let seen = try find(id, locking: false) else { return nil }
    let installation = seen.registration?.installation
    if let installation { try connection.query(Self.lockInstallation, [.text(hub.rawValue), .text(installation)]) }
    if let handle = seen.handle { _ = try holder(of: handle) }
    let row = try find(id, at: now)
    if let row, row.handle != seen.handle || row.registration?.installation != installation {
      throw PostgreSQLError.overtaken
    }
    return row
  }

  /// The registration of the installation, nobody being kept from changing it.
  func find(installation: String) throws -> Registration? {
    try afterAll(Self.selectInstallation, installation) { $0.installation?.hasSameBytes(as: installation) == true }
  }

  /// The registration whose id the statement finds for the text, if it `fits` by the time that it is read; else the one
  /// that the statement finds by then: the text may have become another's in between.
  private func afterAll(_ statement: PreparedStatement, _ text: String, fits: (Registration) -> Bool) throws
    -> Registration?
  {
    for _ in 0..<2 {
      let rows = try connection.query(statement, [.text(hub.rawValue), .text(text)])
      guard rows.count == 1 else { return nil }
      if let found = try find(rows.identifier(0, 0), locking: false)?.registration, fits(found) { return found }
    }
    return nil
  }

  /// The registrations of those ids that there are, by ascending ids.
  func registrations(_ ids: [RegistrationID]) throws -> [Registration] {
    let rows = try connection.query(Self.selectAll, [.text(hub.rawValue), .ids(ids)])
    return try (0..<rows.count).compactMap { try RegistrationRow(rows, $0, hub: hub).registration }.sorted {
      $0.id < $1.id
    }
  }

  /// Who holds the handle (in its normal form); it keeps it until the transaction ends.
  func holder(of handle: String) throws -> RegistrationID? {
    let rows = try connection.query(Self.lockHandle, [.text(hub.rawValue), .text(handle)])
    return rows.count == 0 ? nil : try rows.identifier(0, 0)
  }

  /// The registration that holds the handle; nobody is kept from changing it.
  func registration(holding handle: String) throws -> Registration? {
    try afterAll(Self.selectHolder, handle) { $0.handle.hasSameBytes(as: handle) }
  }

  /// Who holds the handle; where nobody does, `id` from now on.
  func claim(handle: String, for id: RegistrationID, at now: UnixTime) throws -> RegistrationID {
    if let holder = try holder(of: handle) { return holder }
    let claim = try connection.query(Self.insertHandle, [.text(hub.rawValue), .text(handle), .id(id), .time(now)])
    guard claim.affected == 1 else { throw PostgreSQLError.overtaken }
    return id
  }

  /// The installation's registration; where there is none, `id` from now on.
  func claim(installation: String, for id: RegistrationID) throws -> RegistrationID {
    let rows = try connection.query(Self.lockInstallation, [.text(hub.rawValue), .text(installation)])
    if rows.count == 1 { return try rows.identifier(0, 0) }
    let claim = try connection.query(Self.insertInstallation, [.text(hub.rawValue), .text(installation), .id(id)])
    guard claim.affected == 1 else { throw PostgreSQLError.overtaken }
    return id
  }

  /// The installation has no registration from now on.
  func forget(installation: String, of id: RegistrationID) throws {
    try connection.query(Self.deleteInstallation, [.text(hub.rawValue), .text(installation), .id(id)])
  }

  /// Issues an id. The handle, if one is given, has been claimed, and no live registration holds it.
  func putPending(_ id: RegistrationID, handle: String?, formerHolder: RegistrationID?, at now: UnixTime) throws {
    if let formerHolder, formerHolder != id {
      // It has expired and is still there.
      try connection.query(Self.delete, [.text(hub.rawValue), .id(formerHolder)])
    }
    try connection.query(
      Self.insertPending,
      [.text(hub.rawValue), .id(id), .text(handle), .time(now), .time(now + RegistrationRules.pendingLifetime)])
    if let handle {
      try connection.query(Self.updateHandle, [.text(hub.rawValue), .text(handle), .id(id), .int2(nil), .time(now)])
    }
  }

  /// Gives an issued id its full time again.
  func renewPending(_ id: RegistrationID, at now: UnixTime) throws {
    try connection.query(
      Self.renew, [.text(hub.rawValue), .id(id), .time(now), .time(now + RegistrationRules.pendingLifetime)])
  }

  /// Creates the registration or replaces what was stored under its id. Its handle has been claimed, and is taken from
  /// the holder.
  func put(_ registration: Registration, replacing stored: RegistrationRow?, handleHeldBy holder: RegistrationID) throws
  {
    if holder != registration.id, let row = try find(holder) {
      let tombstone = Tombstone(cause: .merged, detail: registration.id.description, at: registration.registeredAt)
      try remove(row, leaving: tombstone, keepingHandle: true)
    }
    if let former = stored?.handle, !former.hasSameBytes(as: registration.handle) {
      try release(former, of: registration.id)
    }
    let (hub, id, platform) = (
      Parameter.text(hub.rawValue), Parameter.id(registration.id), Parameter.platform(registration.platform)
    )
    try connection.query(
      Self.upsert,
      [
        hub, id, .text(registration.user), platform, .text(registration.handle), .text(registration.installation),
        .texts(registration.tags), .time(registration.registeredAt), .time(registration.createdAt),
        .time(registration.seenAt > registration.registeredAt ? registration.seenAt : nil),
      ])
    try connection.query(
      Self.updateHandle, [hub, .text(registration.handle), id, platform, .time(registration.registeredAt)])
    let former = stored?.registration?.tags ?? []
    // The usual case is an app that starts and says again what it said before.
    if !former.elementsEqual(registration.tags, by: { $0.hasSameBytes(as: $1) }) {
      try deleteTags(former, of: registration.id)
    }
    try connection.query(
      Self.upsertTags,
      [
        hub, .texts(registration.tags), id, platform, .text(registration.handle), .time(registration.registeredAt),
        .time(registration.createdAt),
      ])
  }

  /// Removes a registration and leaves a tombstone.
  func remove(_ row: RegistrationRow, leaving tombstone: Tombstone, keepingHandle: Bool = false) throws {
    let (hub, id) = (Parameter.text(hub.rawValue), Parameter.id(row.id))
    try connection.query(Self.delete, [hub, id])
    if let registration = row.registration {
      try deleteTags(registration.tags, of: row.id)
      if let installation = registration.installation { try forget(installation: installation, of: row.id) }
    }
    if let handle = row.handle, !keepingHandle { try release(handle, of: row.id) }
    try connection.query(
      Self.insertTombstone, [hub, id, .text(tombstone.cause.rawValue), .text(tombstone.detail), .time(tombstone.at)])
  }

  /// Why the registration is gone.
  func tombstone(of id: RegistrationID) throws -> Tombstone? {
    let rows = try connection.query(Self.selectTombstone, [.text(hub.rawValue), .id(id)])
    guard rows.count == 1, let cause = Tombstone.Cause(rawValue: try rows.text(0, 0)) else { return nil }
    return Tombstone(cause: cause, detail: try rows.text(0, 1), at: UnixTime(milliseconds: try rows.integer(0, 2)))
  }

  private func release(_ handle: String, of id: RegistrationID) throws {
    try connection.query(Self.deleteHandle, [.text(hub.rawValue), .text(handle), .id(id)])
  }

  private func deleteTags(_ tags: [String], of id: RegistrationID) throws {
    guard !tags.isEmpty else { return }
    try connection.query(Self.deleteTags, [.text(hub.rawValue), .texts(tags), .id(id)])
  }
}

/// What is said to the database.
extension PostgreSQLRegistrationTable {
  private static let select = PreparedStatement(
    "SELECT \(RegistrationRow.columns) FROM registrations WHERE hub = $1 AND id = $2")
  private static let selectLocking = PreparedStatement(
    "SELECT \(RegistrationRow.columns) FROM registrations WHERE hub = $1 AND id = $2 FOR UPDATE")
  private static let selectAll = PreparedStatement(
    "SELECT \(RegistrationRow.columns) FROM registrations WHERE hub = $1 AND id = ANY ($2)")
  private static let selectInstallation = PreparedStatement(
    "SELECT registration FROM installations WHERE hub = $1 AND installation = $2")
  private static let lockHandle = PreparedStatement(
    "SELECT registration FROM handles WHERE hub = $1 AND handle = $2 FOR UPDATE")
  private static let selectHolder = PreparedStatement("SELECT registration FROM handles WHERE hub = $1 AND handle = $2")
  private static let insertHandle = PreparedStatement(
    "INSERT INTO handles (hub, handle, registration, registered_at) VALUES ($1, $2, $3, $4) ON CONFLICT (hub, handle) DO NOTHING"
  )
  private static let updateHandle = PreparedStatement(
    "UPDATE handles SET registration = $3, platform = $4, registered_at = $5 WHERE hub = $1 AND handle = $2")
  private static let deleteHandle = PreparedStatement(
    "DELETE FROM handles WHERE hub = $1 AND handle = $2 AND registration = $3")
  private static let lockInstallation = PreparedStatement(
    "SELECT registration FROM installations WHERE hub = $1 AND installation = $2 FOR UPDATE")
  private static let insertInstallation = PreparedStatement(
    "INSERT INTO installations (hub, installation, registration) VALUES ($1, $2, $3) ON CONFLICT (hub, installation) DO NOTHING"
  )
  private static let deleteInstallation = PreparedStatement(
    "DELETE FROM installations WHERE hub = $1 AND installation = $2 AND registration = $3")
  private static let insertPending = PreparedStatement(
    "INSERT INTO registrations (hub, id, handle, registered_at, expires_at) VALUES ($1, $2, $3, $4, $5)")
  private static let renew = PreparedStatement(
    "UPDATE registrations SET registered_at = $3, expires_at = $4 WHERE hub = $1 AND id = $2")
  private static let upsert = PreparedStatement(
    """
    INSERT INTO registrations (hub, id, username, platform, handle, installation, tags, registered_at, created_at, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (hub, id) DO UPDATE SET username = excluded.username, platform = excluded.platform, handle = excluded.handle,
      installation = excluded.installation, tags = excluded.tags, registered_at = excluded.registered_at,
      created_at = excluded.created_at, seen_at = excluded.seen_at, expires_at = NULL
    """)
  private static let upsertTags = PreparedStatement(
    """
    INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at)
    SELECT $1, t.tag, $3, $4, $5, $6, $7 FROM unnest($2) AS t (tag)
    ON CONFLICT (hub, tag, registration) DO UPDATE SET platform = excluded.platform, handle = excluded.handle,
      registered_at = excluded.registered_at, created_at = excluded.created_at
    """)
  private static let deleteTags = PreparedStatement(
    "DELETE FROM tags WHERE hub = $1 AND tag = ANY ($2) AND registration = $3")
  private static let delete = PreparedStatement("DELETE FROM registrations WHERE hub = $1 AND id = $2")
  private static let insertTombstone = PreparedStatement(
    """
    INSERT INTO tombstones (hub, registration, cause, detail, at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hub, registration) DO UPDATE SET cause = excluded.cause, detail = excluded.detail, at = excluded.at
    """)
  private static let selectTombstone = PreparedStatement(
    "SELECT cause, detail, at FROM tombstones WHERE hub = $1 AND registration = $2")
}
