import FanfareCore
import Store

/// Imports a batch of lines within one transaction.
///
/// Lines that seem to be new are copied directly; a unique violation shows that they were not. Otherwise all rows that
/// the batch concerns are read at once, an ``ImportPlan`` computes the changes, new rows are copied and only the others
/// are updated.
struct PostgreSQLImport {
  /// The number of handles looked up to guess whether a batch is new.
  private static let sample = 16

  private let connection: PostgreSQLConnection
  private let hub: HubName
  private let limits: RegistrationLimits
  private let now: UnixTime

  init(_ connection: PostgreSQLConnection, _ hub: HubName, within limits: RegistrationLimits, at now: UnixTime) {
    self.connection = connection
    self.hub = hub
    self.limits = limits
    self.now = now
  }

  func take(_ batch: ImportBatch) throws -> ImportOutcome {
    // The statistics of a table that grows from nothing are out of date, and the planner would scan the whole table.
    try connection.execute("SET LOCAL enable_seqscan = off")
    var outcome = ImportOutcome(counts: batch.counts)
    if try seemsNew(batch.lines), try copyNew(batch.lines) {
      outcome.counts.imported += batch.lines.count
      try settleOwners(batch.lines)
      outcome.surplus = try removeSurplus(batch.lines)
      return outcome
    }
    var plan = try lookUp(batch.lines)
    for line in batch.lines { plan.take(line, outcome: &outcome) }
    let places = Array(plan.places.values)
    try bury(places.filter { $0.registration == nil && $0.successor != nil })
    try change(places.filter { $0.stored != nil && $0.isWritten })
    try insert(places.filter { $0.stored == nil && $0.isWritten }.compactMap(\.registration))
    try settle(handles: plan)
    try settle(installations: plan)
    try settleOwners(batch.lines)
    outcome.surplus = try removeSurplus(batch.lines)
    return outcome
  }

  /// Removes devices beyond the limit of the users who have several in the batch. Returns how many. Where other batches
  /// bring more, the user's next registration removes them: looking at every user would slow down the import.
  private func removeSurplus(_ lines: [RegistrationLine]) throws -> Int {
    guard limits.maximumDevicesPerUser > 0 else { return 0 }
    var removed = 0
    var users: [[UInt8]: (first: Int, count: Int)] = [:]
    for (index, line) in lines.enumerated() {
      users[Array(line.registration.user.utf8), default: (index, 0)].count += 1
    }
    let table = RegistrationTable(Session(.postgreSQL(connection)), hub)
    let fewest = min(limits.maximumDevicesPerUser / 4, 10)
    for (first, count) in users.values where count > fewest {
      let kept = lines[first].registration
      // Several steps, because each removes a bounded number.
      for _ in 0...(count / RegistrationLimits.surplusBatch) {
        removed += try table.removeSurplus(of: kept.user, keeping: kept, within: limits, at: now)
      }
    }
    return removed
  }

  /// Gives devices that have templates to their last users.
  ///
  /// Rows that two transactions claim are locked or meet at a unique key, so that none is lost or doubled. But a user
  /// who registers the handle of an imported template at the same moment, or a template of an imported handle, is not
  /// seen here, and does not see the import: each then keeps a part of the device, until a third registration of it.
  private func settleOwners(_ lines: [RegistrationLine]) throws {
    guard try connection.query(Self.findTemplate, [.text(hub.rawValue)]).count > 0 else { return }
    let handles = Set(lines.map(\.registration.handle))
    let rows = try connection.query(Self.findShared, [.text(hub.rawValue), .texts(Array(handles))])
    let table = RegistrationTable(Session(.postgreSQL(connection)), hub)
    for row in 0..<rows.count { try table.settleOwner(ofHandle: try rows.text(row, 0), at: now) }
  }

  /// Whether none of a sample of the handles is stored. In a file that was imported before, nearly all are.
  private func seemsNew(_ lines: [RegistrationLine]) throws -> Bool {
    guard !lines.isEmpty else { return false }
    let sample = stride(from: 0, to: lines.count, by: lines.count / Self.sample + 1).map {
      lines[$0].registration.address
    }
    return try connection.query(Self.findHandles, [.text(hub.rawValue), .texts(sample)]).count == 0
  }

  /// Copies the lines without reading. Returns false, with nothing changed, when one is not new or two share a key.
  private func copyNew(_ lines: [RegistrationLine]) throws -> Bool {
    try connection.execute("SAVEPOINT new_lines")
    do {
      // In the order of all locks: installations, handles, registrations.
      let copy = RegistrationCopy(connection, hub, lines.map(\.registration))
      try copy.copyInstallations()
      try copy.copyHandles()
      try copy.copyRegistrations()
      try copy.copyTags()
    } catch let error as PostgreSQLError where error.sqlState == RegistrationCopy.uniqueViolation {
      try connection.execute("ROLLBACK TO SAVEPOINT new_lines")
      return false
    }
    try revive(lines.lazy.map(\.registration.id))
    return true
  }

  /// Reads the rows that the lines concern, and locks them: installations, handles, registrations.
  private func lookUp(_ lines: [RegistrationLine]) throws -> ImportPlan {
    let installed = try owners(Self.lockInstallations, lines.compactMap(\.registration.heldInstallation))
    let holders = try owners(Self.lockHandles, lines.map(\.registration.address))
    var ids = lines.filter(\.isIDGiven).map(\.registration.id)
    ids += holders.values
    ids += installed.values
    guard !ids.isEmpty else { return ImportPlan(holders: [:], installations: [:], rows: []) }
    let rows = try connection.query(Self.lockRegistrations, [.text(hub.rawValue), .ids(ids)])
    return ImportPlan(
      holders: holders, installations: installed,
      rows: try (0..<rows.count).map { try StoredRegistration(Row(rows, $0), hub: hub) })
  }

  private func owners(_ statement: PreparedStatement, _ keys: [String]) throws -> [String: RegistrationID] {
    guard !keys.isEmpty else { return [:] }
    let rows = try connection.query(statement, [.text(hub.rawValue), .texts(keys)])
    var owners: [String: RegistrationID] = [:]
    for row in 0..<rows.count { owners[try rows.text(row, 0)] = try rows.identifier(row, 1) }
    return owners
  }

  /// Removes registrations that others replaced, except their handles and installations: `settle` updates those.
  private func bury(_ places: [ImportPlan.Place]) throws {
    let gone = places.compactMap { place in place.stored.map { (row: $0, successor: place.successor) } }
    guard !gone.isEmpty else { return }
    let ids = Parameter.ids(gone.map(\.row.id))
    try connection.query(Self.deleteRegistrations, [.text(hub.rawValue), ids])
    try deleteTags(gone.flatMap { gone in (gone.row.registration?.tags ?? []).map { ($0, gone.row.id) } })
    try connection.query(
      Self.insertTombstones,
      [
        .text(hub.rawValue), ids, .text(Tombstone.Cause.merged.rawValue),
        .texts(gone.map { $0.successor?.description ?? "" }), .time(now), .texts(gone.map(\.row.registration?.user)),
      ])
  }

  /// Updates the registrations that keep their ids.
  private func change(_ places: [ImportPlan.Place]) throws {
    guard !places.isEmpty else { return }
    let new = places.compactMap(\.registration)
    try deleteTags(
      places.flatMap { place -> [(String, RegistrationID)] in
        guard let former = place.stored?.registration, let new = place.registration else { return [] }
        let kept = Set(new.tags.map { Array($0.utf8) })
        return former.tags.filter { !kept.contains(Array($0.utf8)) }.map { ($0, former.id) }
      })
    try connection.query(
      StoredRegistration.updateAll, [.text(hub.rawValue)] + StoredRegistration.arrays(of: new))
    let tags = new.flatMap { registration in registration.tags.map { (tag: $0, of: registration) } }
    try connection.query(
      Self.upsertTags,
      [
        .text(hub.rawValue), .texts(tags.map(\.tag)), .ids(tags.map(\.of.id)), platforms(tags.map(\.of)),
        .texts(tags.map(\.of.address)), .int8s(tags.map(\.of.registeredAt.milliseconds)),
        .int8s(tags.map(\.of.createdAt.milliseconds)),
      ])
  }

  /// Copies new registrations and their tags.
  private func insert(_ new: [Registration]) throws {
    guard !new.isEmpty else { return }
    try revive(new.lazy.map(\.id))
    try copying {
      let copy = RegistrationCopy(connection, hub, new)
      try copy.copyRegistrations()
      try copy.copyTags()
    }
  }

  /// Deletes the tombstones of ids that exist again; with one statement only when the hub has no tombstones at all.
  private func revive(_ ids: some Collection<RegistrationID>) throws {
    guard try connection.query(Self.findTombstone, [.text(hub.rawValue)]).count > 0 else { return }
    try connection.query(Self.deleteTombstones, [.text(hub.rawValue), .ids(Array(ids))])
  }

  /// Writes the new holders of the handles.
  private func settle(handles plan: ImportPlan) throws {
    var (gone, changed, new): ([(String, RegistrationID)], [Registration], [Registration]) = ([], [], [])
    for (handle, owner) in plan.handles {
      guard let current = owner.current, let place = plan.places[current], let registration = place.registration else {
        // A handle that an issued id keeps is left as it is.
        if let stored = owner.stored, owner.current == nil { gone.append((handle, stored)) }
        continue
      }
      if owner.stored == nil {
        new.append(registration)
      } else if place.isWritten {
        changed.append(registration)
      }
    }
    if !gone.isEmpty {
      try connection.query(Self.deleteHandles, [.text(hub.rawValue), .texts(gone.map(\.0)), .ids(gone.map(\.1))])
    }
    if !changed.isEmpty {
      try connection.query(
        Self.updateHandles,
        [
          .text(hub.rawValue), .texts(changed.map(\.address)), .ids(changed.map(\.id)), platforms(changed),
          .int8s(changed.map(\.registeredAt.milliseconds)),
        ])
    }
    guard !new.isEmpty else { return }
    try copying { try RegistrationCopy(connection, hub, new).copyHandles() }
  }

  /// Writes the new registrations of the installations.
  private func settle(installations plan: ImportPlan) throws {
    let gone = plan.installations.compactMap { name, owner in
      owner.current == nil ? owner.stored.map { (name, $0) } : nil
    }
    if !gone.isEmpty {
      try connection.query(Self.deleteInstallations, [.text(hub.rawValue), .texts(gone.map(\.0)), .ids(gone.map(\.1))])
    }
    var (changed, new): ([(String, RegistrationID)], [Registration]) = ([], [])
    for (name, owner) in plan.installations {
      guard let current = owner.current, current != owner.stored else { continue }
      if owner.stored != nil {
        changed.append((name, current))
      } else if let registration = plan.places[current]?.registration {
        new.append(registration)
      }
    }
    if !changed.isEmpty {
      try connection.query(
        Self.updateInstallations, [.text(hub.rawValue), .texts(changed.map(\.0)), .ids(changed.map(\.1))])
    }
    guard !new.isEmpty else { return }
    try copying { try RegistrationCopy(connection, hub, new).copyInstallations() }
  }

  private func deleteTags(_ tags: [(String, RegistrationID)]) throws {
    guard !tags.isEmpty else { return }
    try connection.query(Self.deleteTags, [.text(hub.rawValue), .texts(tags.map(\.0)), .ids(tags.map(\.1))])
  }

  private func platforms(_ registrations: [Registration]) -> Parameter {
    .int2s(registrations.map(\.storedPlatform))
  }

  /// Copies rows that were not stored. After a unique violation the whole transaction is retried, and reads the rows
  /// that another transaction has inserted.
  private func copying(_ body: () throws -> Void) throws {
    do { try body() } catch let error as PostgreSQLError where error.sqlState == RegistrationCopy.uniqueViolation {
      throw StoreError.overtaken
    }
  }
}

extension PostgreSQLImport {
  /// The condition is that of an index. Nearly all hubs have no such rows.
  private static let findTemplate = PreparedStatement("SELECT 1 FROM handles WHERE hub = $1 AND platform > 63 LIMIT 1")
  private static let findShared = PreparedStatement(
    """
    SELECT k.handle FROM unnest($2) AS k (handle)
    WHERE 1 <
      (SELECT count(*) FROM handles AS h WHERE h.hub = $1 AND h.handle >= k.handle AND h.handle < k.handle || ' ')
    """)
  private static let findHandles = PreparedStatement(
    "SELECT 1 FROM handles WHERE hub = $1 AND handle = ANY ($2) LIMIT 1")
  private static let lockInstallations = PreparedStatement(
    "SELECT installation, registration FROM installations WHERE hub = $1 AND installation = ANY ($2) ORDER BY installation FOR UPDATE"
  )
  private static let lockHandles = PreparedStatement(
    "SELECT handle, registration FROM handles WHERE hub = $1 AND handle = ANY ($2) ORDER BY handle FOR UPDATE")
  private static let lockRegistrations = PreparedStatement(
    """
    SELECT \(StoredRegistration.columns) FROM registrations
    WHERE hub = $1 AND id = ANY ($2) ORDER BY id FOR UPDATE
    """)
  private static let deleteRegistrations = PreparedStatement(
    "DELETE FROM registrations WHERE hub = $1 AND id = ANY ($2)")
  private static let deleteTags = PreparedStatement(
    """
    DELETE FROM tags USING unnest($2, $3) AS k (tag, registration)
    WHERE tags.hub = $1 AND tags.tag = k.tag AND tags.registration = k.registration
    """)
  private static let insertTombstones = PreparedStatement(
    """
    INSERT INTO tombstones (hub, registration, cause, detail, at, username)
    SELECT $1, k.registration, $3, k.detail, $5, k.username
    FROM unnest($2, $4, $6) AS k (registration, detail, username)
    ON CONFLICT (hub, registration) DO UPDATE SET cause = excluded.cause, detail = excluded.detail, at = excluded.at,
      username = excluded.username
    """)
  private static let findTombstone = PreparedStatement("SELECT 1 FROM tombstones WHERE hub = $1 LIMIT 1")
  private static let deleteTombstones = PreparedStatement(
    "DELETE FROM tombstones WHERE hub = $1 AND registration = ANY ($2)")
  private static let upsertTags = PreparedStatement(
    """
    INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at)
    SELECT $1, k.tag, k.registration, k.platform, k.handle, k.registered_at, k.created_at
    FROM unnest($2, $3, $4, $5, $6, $7) AS k (tag, registration, platform, handle, registered_at, created_at)
    ON CONFLICT (hub, tag, registration) DO UPDATE SET platform = excluded.platform, handle = excluded.handle,
      registered_at = excluded.registered_at, created_at = excluded.created_at
    """)
  private static let deleteHandles = PreparedStatement(
    """
    DELETE FROM handles USING unnest($2, $3) AS k (handle, registration)
    WHERE handles.hub = $1 AND handles.handle = k.handle AND handles.registration = k.registration
    """)
  private static let updateHandles = PreparedStatement(
    """
    UPDATE handles SET registration = k.registration, platform = k.platform, registered_at = k.registered_at
    FROM unnest($2, $3, $4, $5) AS k (handle, registration, platform, registered_at)
    WHERE handles.hub = $1 AND handles.handle = k.handle
    """)
  private static let deleteInstallations = PreparedStatement(
    """
    DELETE FROM installations USING unnest($2, $3) AS k (installation, registration)
    WHERE installations.hub = $1 AND installations.installation = k.installation
      AND installations.registration = k.registration
    """)
  private static let updateInstallations = PreparedStatement(
    """
    UPDATE installations SET registration = k.registration FROM unnest($2, $3) AS k (installation, registration)
    WHERE installations.hub = $1 AND installations.installation = k.installation
    """)
}
