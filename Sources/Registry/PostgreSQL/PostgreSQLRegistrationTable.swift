import FanfareCore
import PostgreSQL

/// The registrations of one hub within one transaction.
///
/// Rows are locked in a fixed order: the installation, then the handle, then the registration.
struct PostgreSQLRegistrationTable: RegistrationTable {
  let connection: PostgreSQLConnection
  let hub: HubName

  init(_ connection: PostgreSQLConnection, _ hub: HubName) {
    self.connection = connection
    self.hub = hub
  }

  func registration(_ id: RegistrationID) throws -> Registration? { try find(id, locking: false)?.registration }

  func registration(holding address: String) throws -> Registration? {
    try follow(Self.selectHolder, address) { $0.address.hasSameBytes(as: address) }
  }

  func registrations(ofHandle handle: String) throws -> [Registration] {
    let rows = try connection.query(
      Self.selectHolders, [.text(hub.rawValue), .text(handle), .text(TemplateRow.end(ofHandle: handle))])
    guard rows.count > 0 else { return [] }
    return try registrations((0..<rows.count).map { try rows.identifier($0, 0) })
      .filter { $0.handle.hasSameBytes(as: handle) }.sorted { $0.address < $1.address }
  }

  func registration(ofInstallation installation: String) throws -> Registration? {
    try follow(Self.selectInstallation, installation) { $0.heldInstallation?.hasSameBytes(as: installation) == true }
  }

  func registrations(_ ids: [RegistrationID]) throws -> [Registration] {
    let rows = try connection.query(Self.selectAll, [.text(hub.rawValue), .ids(ids)])
    return try (0..<rows.count).compactMap { try StoredRegistration(rows, $0, hub: hub).registration }.sorted {
      $0.id < $1.id
    }
  }

  func holders(of handles: [String], at now: UnixTime) throws -> [StoredRegistration] {
    try handles.compactMap { try holder(of: $0) }.compactMap { try find($0) }.filter { $0.isLive(at: now) }
  }

  func claim(_ id: RegistrationID, address: String, at now: UnixTime) throws -> RegistrationClaim {
    let holder = try claim(handle: address, for: id, at: now)
    return RegistrationClaim(id: id, stored: try find(id).flatMap { $0.isLive(at: now) ? $0 : nil }, holder: holder)
  }

  func claim(installation: String, handle: String, at now: UnixTime) throws -> RegistrationClaim {
    let id = try claim(installation: installation, at: now)
    let holder = try claim(handle: handle, for: id, at: now)
    return RegistrationClaim(id: id, stored: try find(id), holder: holder)
  }

  /// Locks in the order of `install`: the installation, the handle, the registration.
  ///
  /// Other changes (registering by handle, merging, removing a former holder) lock installations or other handles
  /// later. If that ends in a deadlock, the server cancels one of the transactions and the pool retries it.
  func findToRemove(_ id: RegistrationID, at now: UnixTime) throws -> StoredRegistration? {
    guard let seen = try find(id, locking: false) else { return nil }
    let installation = seen.registration?.heldInstallation
    if let installation { try connection.query(Self.lockInstallation, [.text(hub.rawValue), .text(installation)]) }
    if let handle = seen.handle { _ = try holder(of: handle) }
    guard let row = try find(id), row.isLive(at: now) else { return nil }
    guard row.handle == seen.handle, row.registration?.heldInstallation == installation else {
      throw PostgreSQLError.overtaken
    }
    return row
  }

  func insertPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws {
    if let handle, case let holder = try claim(handle: handle, for: id, at: now), holder != id {
      // An expired row that was not purged yet.
      try connection.query(Self.delete, [.text(hub.rawValue), .id(holder)])
    }
    try connection.query(
      Self.insertPending,
      [.text(hub.rawValue), .id(id), .text(handle), .time(now), .time(now + RegistrationRules.pendingLifetime)])
    if let handle {
      try connection.query(Self.updateHandle, [.text(hub.rawValue), .text(handle), .id(id), .int2(nil), .time(now)])
    }
  }

  func renewPending(_ id: RegistrationID, at now: UnixTime) throws {
    try connection.query(
      Self.renew, [.text(hub.rawValue), .id(id), .time(now), .time(now + RegistrationRules.pendingLifetime)])
  }

  func put(_ registration: Registration, in claim: RegistrationClaim) throws {
    let former = claim.stored?.registration
    if let installation = former?.heldInstallation,
      registration.heldInstallation?.hasSameBytes(as: installation) != true
    {
      try release(installation: installation, of: registration.id)
    }
    if claim.holder != registration.id, let holder = try find(claim.holder) {
      let tombstone = Tombstone(cause: .merged, detail: registration.id.description, at: registration.registeredAt)
      try remove(holder, leaving: tombstone, keepingHandle: true)
    }
    let address = registration.address
    if let handle = claim.stored?.handle, !handle.hasSameBytes(as: address) {
      try release(handle, of: registration.id)
    }
    let (hub, id, platform) = (
      Parameter.text(hub.rawValue), Parameter.id(registration.id), Parameter.int2(registration.storedPlatform)
    )
    try connection.query(
      Self.upsert,
      [
        hub, id, .text(registration.user), platform, .text(address), .text(registration.heldInstallation),
        .texts(registration.tags), .time(registration.registeredAt), .time(registration.createdAt),
        .time(registration.seenAt > registration.registeredAt ? registration.seenAt : nil),
        .text(registration.profileText), .time(registration.validUntil),
      ])
    try connection.query(
      Self.updateHandle, [hub, .text(address), id, platform, .time(registration.registeredAt)])
    // Usually an app starts and registers with the same tags again.
    if let tags = former?.tags, !tags.elementsEqual(registration.tags, by: { $0.hasSameBytes(as: $1) }) {
      try deleteTags(tags, of: registration.id)
    }
    try connection.query(
      Self.upsertTags,
      [
        hub, .texts(registration.tags), id, platform, .text(address), .time(registration.registeredAt),
        .time(registration.createdAt),
      ])
    if registration.isTemplate { try release(registration.handle, of: Self.nobody) }
  }

  func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone) throws {
    try remove(stored, leaving: tombstone, keepingHandle: false)
  }

  func holdings(of tag: String, limit: Int) throws -> [Holding] {
    let rows = try connection.query(Self.selectHoldings, [.text(hub.rawValue), .text(tag), .int8(Int64(limit))])
    return try (0..<rows.count).map { Holding(try rows.identifier($0, 0), address: try rows.text($0, 1)) }
  }

  func tags(withPrefix prefix: String, limit: Int) throws -> [String] {
    guard prefix.isStorable else { return [] }
    let rows = try connection.query(
      Self.selectTags, [.text(hub.rawValue), .text(prefix), .int8(Int64(min(limit, 1_000_000)))])
    return try (0..<rows.count).map { try rows.text($0, 0) }
  }

  func quarantined(_ key: QuarantineKey, at now: UnixTime) throws -> Registration? {
    let (statement, value): (PreparedStatement, Parameter) =
      switch key {
      case .id(let id): (Self.selectQuarantined, .id(id))
      case .handle(let handle): (Self.selectQuarantinedHandle, .text(handle))
      case .installation(let installation): (Self.selectQuarantinedInstallation, .text(installation))
      }
    let rows = try connection.query(statement, [.text(hub.rawValue), value, .time(now)])
    return rows.count == 0 ? nil : try StoredRegistration(rows, 0, hub: hub).registration
  }

  func quarantinedTemplates(ofHandle handle: String, at now: UnixTime) throws -> [Registration] {
    let rows = try connection.query(
      Self.selectQuarantinedTemplates,
      [.text(hub.rawValue), .text(handle), .text(TemplateRow.end(ofHandle: handle)), .time(now)])
    return try (0..<rows.count).compactMap { try StoredRegistration(rows, $0, hub: hub).registration }
  }

  func quarantine(_ registration: Registration, at now: UnixTime, until end: UnixTime) throws {
    try connection.query(
      Self.insertQuarantined,
      [
        .text(hub.rawValue), .id(registration.id), .text(registration.user), .int2(registration.storedPlatform),
        .text(registration.address), .text(registration.heldInstallation), .texts(registration.tags),
        .time(registration.registeredAt), .time(registration.createdAt), .time(registration.seenAt), .time(now),
        .time(end), .text(registration.profileText), .time(registration.validUntil),
      ])
  }

  func endQuarantine(of id: RegistrationID) throws {
    try connection.query(Self.deleteQuarantined, [.text(hub.rawValue), .id(id)])
    try connection.query(Self.deleteTombstone, [.text(hub.rawValue), .id(id)])
  }

  func claimVacant(_ registration: Registration, at now: UnixTime) throws -> RegistrationClaim? {
    if let installation = registration.heldInstallation {
      let rows = try connection.query(Self.lockInstallation, [.text(hub.rawValue), .text(installation)])
      guard rows.count == 0 else { return nil }
    }
    guard try holder(of: registration.address) == nil, try find(registration.id) == nil else { return nil }
    if let installation = registration.heldInstallation { try insert(installation: installation, of: registration.id) }
    guard try claim(handle: registration.address, for: registration.id, at: now) == registration.id else {
      throw PostgreSQLError.overtaken
    }
    return RegistrationClaim(id: registration.id, stored: nil, holder: registration.id)
  }

  /// The tombstone of the registration.
  func tombstone(of id: RegistrationID) throws -> Tombstone? {
    let rows = try connection.query(Self.selectTombstone, [.text(hub.rawValue), .id(id)])
    guard rows.count == 1, let cause = Tombstone.Cause(rawValue: try rows.text(0, 0)) else { return nil }
    return Tombstone(cause: cause, detail: try rows.text(0, 1), at: UnixTime(milliseconds: try rows.integer(0, 2)))
  }

  func scan(
    seenBefore moment: UnixTime, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) throws -> ExpiryScan {
    let rows = try connection.query(
      Self.scanSeen,
      [
        .text(hub.rawValue), .id(slice.first), .id(slice.last), .int8(Int64(limit)), .time(moment), .time(now),
      ])
    var row = 0
    return try ExpiryScan(of: slice, limit: limit) {
      guard row < rows.count else { return nil }
      defer { row += 1 }
      return (try rows.identifier(row, 0), try rows.bool(row, 1))
    }
  }

  /// The row with the id, whether it has expired or not.
  private func find(_ id: RegistrationID, locking: Bool = true) throws -> StoredRegistration? {
    let rows = try connection.query(locking ? Self.selectLocking : Self.select, [.text(hub.rawValue), .id(id)])
    return rows.count == 1 ? try StoredRegistration(rows, 0, hub: hub) : nil
  }

  /// Reads the registration whose id the statement finds for a text. If the registration no longer `fits`, because the
  /// text changed its owner between the two statements, tries once more.
  private func follow(_ statement: PreparedStatement, _ text: String, fits: (Registration) -> Bool) throws
    -> Registration?
  {
    for _ in 0..<2 {
      let rows = try connection.query(statement, [.text(hub.rawValue), .text(text)])
      guard rows.count == 1 else { return nil }
      if let found = try registration(rows.identifier(0, 0)), fits(found) { return found }
    }
    return nil
  }

  /// Locks the holder of the address. Nil when there is none.
  private func holder(of handle: String) throws -> RegistrationID? {
    let rows = try connection.query(Self.lockHandle, [.text(hub.rawValue), .text(handle)])
    return rows.count == 0 ? nil : try rows.identifier(0, 0)
  }

  /// Locks the holder of the address; makes `id` the holder when there is none.
  ///
  /// A template locks the row of its handle first, and takes it until it is `put` where there is none: another user who
  /// claims the handle meanwhile, with a template or without, waits for it, and then sees this template.
  private func claim(handle address: String, for id: RegistrationID, at now: UnixTime) throws -> RegistrationID {
    let handle = TemplateRow.handle(in: address)
    if !handle.hasSameBytes(as: address), try holder(of: handle) == nil {
      try insert(handle: handle, of: Self.nobody, at: now)
    }
    if let holder = try holder(of: address) { return holder }
    try insert(handle: address, of: id, at: now)
    return id
  }

  private func insert(handle: String, of id: RegistrationID, at now: UnixTime) throws {
    let claim = try connection.query(Self.insertHandle, [.text(hub.rawValue), .text(handle), .id(id), .time(now)])
    guard claim.affected == 1 else { throw PostgreSQLError.overtaken }
  }

  /// Locks the installation's registration; when there is none, chooses an id for it.
  private func claim(installation: String, at now: UnixTime) throws -> RegistrationID {
    let rows = try connection.query(Self.lockInstallation, [.text(hub.rawValue), .text(installation)])
    if rows.count == 1 { return try rows.identifier(0, 0) }
    let id = try idOfNew(installation: installation, at: now)
    try insert(installation: installation, of: id)
    return id
  }

  private func insert(installation: String, of id: RegistrationID) throws {
    let claim = try connection.query(Self.insertInstallation, [.text(hub.rawValue), .text(installation), .id(id)])
    guard claim.affected == 1 else { throw PostgreSQLError.overtaken }
  }

  private func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone, keepingHandle: Bool) throws {
    let (hub, id) = (Parameter.text(hub.rawValue), Parameter.id(stored.id))
    try connection.query(Self.delete, [hub, id])
    if let registration = stored.registration {
      try deleteTags(registration.tags, of: stored.id)
      if let installation = registration.heldInstallation { try release(installation: installation, of: stored.id) }
    }
    if let handle = stored.handle, !keepingHandle { try release(handle, of: stored.id) }
    try connection.query(
      Self.insertTombstone,
      [
        hub, id, .text(tombstone.cause.rawValue), .text(tombstone.detail), .time(tombstone.at),
        .text(stored.registration?.user),
      ])
  }

  private func release(_ handle: String, of id: RegistrationID) throws {
    try connection.query(Self.deleteHandle, [.text(hub.rawValue), .text(handle), .id(id)])
  }

  private func release(installation: String, of id: RegistrationID) throws {
    try connection.query(Self.deleteInstallation, [.text(hub.rawValue), .text(installation), .id(id)])
  }

  private func deleteTags(_ tags: [String], of id: RegistrationID) throws {
    guard !tags.isEmpty else { return }
    try connection.query(Self.deleteTags, [.text(hub.rawValue), .texts(tags), .id(id)])
  }
}

extension PostgreSQLRegistrationTable {
  /// No registration has this id: ids are random.
  private static let nobody = RegistrationID(high: 0, low: 0)

  private static let select = PreparedStatement(
    "SELECT \(StoredRegistration.postgreSQLColumns) FROM registrations WHERE hub = $1 AND id = $2")
  private static let selectLocking = PreparedStatement(
    "SELECT \(StoredRegistration.postgreSQLColumns) FROM registrations WHERE hub = $1 AND id = $2 FOR UPDATE")
  private static let selectAll = PreparedStatement(
    "SELECT \(StoredRegistration.postgreSQLColumns) FROM registrations WHERE hub = $1 AND id = ANY ($2)")
  private static let selectInstallation = PreparedStatement(
    "SELECT registration FROM installations WHERE hub = $1 AND installation = $2")
  private static let lockHandle = PreparedStatement(
    "SELECT registration FROM handles WHERE hub = $1 AND handle = $2 FOR UPDATE")
  private static let selectHolder = PreparedStatement("SELECT registration FROM handles WHERE hub = $1 AND handle = $2")
  private static let selectHolders = PreparedStatement(
    "SELECT registration FROM handles WHERE hub = $1 AND handle >= $2 AND handle < $3")
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
    INSERT INTO registrations (hub, id, username, platform, handle, installation, tags, registered_at, created_at,
      seen_at, profile, valid_until)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (hub, id) DO UPDATE SET username = excluded.username, platform = excluded.platform, handle = excluded.handle,
      installation = excluded.installation, tags = excluded.tags, registered_at = excluded.registered_at,
      created_at = excluded.created_at, seen_at = excluded.seen_at, profile = excluded.profile,
      valid_until = excluded.valid_until, expires_at = NULL
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
    INSERT INTO tombstones (hub, registration, cause, detail, at, username) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (hub, registration) DO UPDATE SET cause = excluded.cause, detail = excluded.detail, at = excluded.at,
      username = excluded.username
    """)
  private static let selectTombstone = PreparedStatement(
    "SELECT cause, detail, at FROM tombstones WHERE hub = $1 AND registration = $2")
  private static let selectHoldings = PreparedStatement(
    "SELECT registration, handle FROM tags WHERE hub = $1 AND tag = $2 ORDER BY registration LIMIT $3")
  /// Each step searches the key for the next tag.
  private static let selectTags = PreparedStatement(
    """
    WITH RECURSIVE found(tag) AS (
      SELECT min(tag) FROM tags WHERE hub = $1 AND tag >= $2
      UNION ALL SELECT (SELECT min(tag) FROM tags WHERE hub = $1 AND tag > found.tag) FROM found
        WHERE left(found.tag, length($2)) = $2
    ) SELECT tag FROM found WHERE left(tag, length($2)) = $2 LIMIT $3
    """)
  /// The columns of a quarantined registration, as `StoredRegistration` reads them.
  static let quarantineColumns = """
    id, username, platform, handle, installation, tags, registered_at, created_at, NULL::bigint, seen_at, profile,
    valid_until
    """
  private static let selectQuarantined = PreparedStatement(
    "SELECT \(quarantineColumns) FROM quarantine WHERE hub = $1 AND id = $2 AND ends_at > $3")
  private static let selectQuarantinedHandle = PreparedStatement(
    """
    SELECT \(quarantineColumns) FROM quarantine WHERE hub = $1 AND handle = $2 AND ends_at > $3
    ORDER BY dropped_at DESC LIMIT 1
    """)
  private static let selectQuarantinedInstallation = PreparedStatement(
    """
    SELECT \(quarantineColumns) FROM quarantine WHERE hub = $1 AND installation = $2 AND ends_at > $3
    ORDER BY dropped_at DESC LIMIT 1
    """)
  private static let selectQuarantinedTemplates = PreparedStatement(
    "SELECT \(quarantineColumns) FROM quarantine WHERE hub = $1 AND handle > $2 AND handle < $3 AND ends_at > $4")
  private static let insertQuarantined = PreparedStatement(
    """
    INSERT INTO quarantine (hub, id, username, platform, handle, installation, tags, registered_at, created_at, seen_at,
      dropped_at, ends_at, profile, valid_until)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (hub, id) DO UPDATE SET username = excluded.username, platform = excluded.platform,
      handle = excluded.handle, installation = excluded.installation, tags = excluded.tags,
      registered_at = excluded.registered_at, created_at = excluded.created_at, seen_at = excluded.seen_at,
      dropped_at = excluded.dropped_at, ends_at = excluded.ends_at, profile = excluded.profile,
      valid_until = excluded.valid_until
    """)
  private static let deleteQuarantined = PreparedStatement("DELETE FROM quarantine WHERE hub = $1 AND id = $2")
  private static let deleteTombstone = PreparedStatement(
    "DELETE FROM tombstones WHERE hub = $1 AND registration = $2")
  private static let scanSeen = PreparedStatement(
    """
    SELECT id, username IS NOT NULL AND (registered_at < $5 AND (seen_at IS NULL OR seen_at < $5)
      OR valid_until IS NOT NULL AND valid_until <= $6)
    FROM registrations
    WHERE hub = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
    """)
}
