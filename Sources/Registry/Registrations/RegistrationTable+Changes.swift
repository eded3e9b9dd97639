import FanfareCore
import Store

/// The statements that change registrations. In SQLite two unique indexes of the registrations keep one holder of each
/// handle and installation; in PostgreSQL tables of their own do, whose rows are claimed and locked here.
extension RegistrationTable {
  /// Claims the address for the registration with the id, and finds its unexpired row.
  func claim(_ id: RegistrationID, address: String, at now: UnixTime) throws -> RegistrationClaim {
    let holder = try claim(handle: address, for: id, at: now)
    return RegistrationClaim(id: id, stored: try find(id).flatMap { $0.isLive(at: now) ? $0 : nil }, holder: holder)
  }

  /// Claims the installation and the handle, for the installation's registration or for a new id.
  func claim(installation: String, handle: String, at now: UnixTime) throws -> RegistrationClaim {
    let id = try claim(installation: installation, at: now)
    let holder = try claim(handle: handle, for: id, at: now)
    return RegistrationClaim(id: id, stored: try find(id), holder: holder)
  }

  /// Claims the id, address and installation of the registration; nil when any of them is taken.
  func claimVacant(_ registration: Registration, at now: UnixTime) throws -> RegistrationClaim? {
    if let installation = registration.heldInstallation, try owner(of: installation) != nil { return nil }
    guard try holder(of: registration.address) == nil, try find(registration.id) == nil else { return nil }
    if let installation = registration.heldInstallation { try insert(installation: installation, of: registration.id) }
    guard try claim(handle: registration.address, for: registration.id, at: now) == registration.id else {
      throw StoreError.overtaken
    }
    return RegistrationClaim(id: registration.id, stored: nil, holder: registration.id)
  }

  /// The unexpired row with the id, with everything locked that `remove` changes, in the order of `install`: the
  /// installation, the handle, the registration.
  ///
  /// Other changes (registering by handle, merging, removing a former holder) lock installations or other handles
  /// later. If that ends in a deadlock, the server cancels one of the transactions and the store runs it again.
  func findToRemove(_ id: RegistrationID, at now: UnixTime) throws -> StoredRegistration? {
    guard let seen = try find(id, locking: false) else { return nil }
    guard session.hasRowLocks else { return seen.isLive(at: now) ? seen : nil }
    let installation = seen.registration?.heldInstallation
    if let installation { _ = try owner(of: installation) }
    if let handle = seen.handle { _ = try holder(of: handle) }
    guard let row = try find(id), row.isLive(at: now) else { return nil }
    guard row.handle == seen.handle, row.registration?.heldInstallation == installation else {
      throw StoreError.overtaken
    }
    return row
  }

  /// Stores a new issued id. No live row may hold the handle, if one is given.
  func insertPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws {
    if let handle, case let holder = try claim(handle: handle, for: id, at: now), holder != id {
      // An expired row that was not purged yet.
      try session.run(Self.delete, [.hub(hub), .id(holder)])
    }
    try session.run(
      Self.insertPending,
      [.hub(hub), .id(id), .text(handle), .time(now), .time(now + RegistrationRules.pendingLifetime)])
    if let handle { try update(handle: handle, [.id(id), .integer(nil), .time(now)]) }
  }

  /// Restarts the lifetime of an issued id.
  func renewPending(_ id: RegistrationID, at now: UnixTime) throws {
    try session.run(Self.renew, [.hub(hub), .id(id), .time(now), .time(now + RegistrationRules.pendingLifetime)])
  }

  /// Stores the registration in its claimed place. A former holder of the handle is removed with a tombstone.
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
    let (id, platform) = (Value.id(registration.id), Value.integer(Int64(registration.storedPlatform)))
    let registeredAt = Value.time(registration.registeredAt)
    try session.run(StoredRegistration.upsert, StoredRegistration.values(of: registration) + [.integer(nil)])
    try update(handle: address, [id, platform, registeredAt])
    // Usually an app starts and registers with the same tags again.
    if let tags = former?.tags, !tags.elementsEqual(registration.tags, by: { $0.hasSameBytes(as: $1) }) {
      try deleteTags(tags, of: registration.id)
    }
    let createdAt = Value.time(registration.createdAt)
    try session.run(
      Self.upsertTag,
      each: registration.tags.map { [.hub(hub), .text($0), id, platform, .text(address), registeredAt, createdAt] })
    if registration.isTemplate { try release(registration.handle, of: Self.placeholderHolder) }
  }

  /// Removes the row and everything that belongs to it, and leaves a tombstone.
  func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone) throws {
    try remove(stored, leaving: tombstone, keepingHandle: false)
  }

  private func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone, keepingHandle: Bool) throws {
    try session.run(Self.delete, [.hub(hub), .id(stored.id)])
    if let registration = stored.registration {
      try deleteTags(registration.tags, of: stored.id)
      if let installation = registration.heldInstallation { try release(installation: installation, of: stored.id) }
    }
    if let handle = stored.handle, !keepingHandle { try release(handle, of: stored.id) }
    try bury(stored, tombstone)
  }

  /// Locks the holder of the address; makes `id` the holder when there is none.
  ///
  /// A template locks the row of its handle first, and takes it until it is `put` where there is none: another user who
  /// claims the handle meanwhile, with a template or without, waits for it, and then sees this template.
  private func claim(handle address: String, for id: RegistrationID, at now: UnixTime) throws -> RegistrationID {
    let handle = TemplateRow.handle(in: address)
    if session.hasRowLocks, !handle.hasSameBytes(as: address), try holder(of: handle) == nil {
      try insert(handle: handle, of: Self.placeholderHolder, at: now)
    }
    if let holder = try holder(of: address) { return holder }
    try insert(handle: address, of: id, at: now)
    return id
  }

  /// Locks the installation's registration; when there is none, chooses an id for it.
  private func claim(installation: String, at now: UnixTime) throws -> RegistrationID {
    if let owner = try owner(of: installation) { return owner }
    let id = try idOfNew(installation: installation, at: now)
    try insert(installation: installation, of: id)
    return id
  }

  private func deleteTags(_ tags: [String], of id: RegistrationID) throws {
    try session.run(Self.deleteTags, [.hub(hub), .id(id)], any: tags.map { .text($0) })
  }

  static let delete = PreparedStatement("DELETE FROM registrations WHERE hub = ?1 AND id = ?2")
  private static let insertPending = PreparedStatement(
    "INSERT INTO registrations (hub, id, handle, registered_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)")
  private static let renew = PreparedStatement(
    "UPDATE registrations SET registered_at = ?3, expires_at = ?4 WHERE hub = ?1 AND id = ?2")
  private static let upsertTag = PreparedStatement(
    """
    INSERT INTO tags (hub, tag, registration, platform, handle, registered_at, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (hub, tag, registration) DO UPDATE SET platform = excluded.platform, handle = excluded.handle,
      registered_at = excluded.registered_at, created_at = excluded.created_at
    """)
  private static let deleteTags = PreparedStatement(
    "DELETE FROM tags WHERE hub = ?1 AND registration = ?2 AND tag = ANY (?3)")
}

/// The tables `handles` and `installations`, which SQLite does not have.
extension RegistrationTable {
  /// Holds a handle until the first template on it is stored. Ids are random, so no registration has this one.
  private static let placeholderHolder = RegistrationID(high: 0, low: 0)

  private func insert(handle: String, of id: RegistrationID, at now: UnixTime) throws {
    guard session.hasRowLocks else { return }
    guard try session.run(Self.insertHandle, [.hub(hub), .text(handle), .id(id), .time(now)]) == 1 else {
      throw StoreError.overtaken
    }
  }

  /// `values` are the registration, the platform and when it was registered.
  private func update(handle: String, _ values: [Value]) throws {
    guard session.hasRowLocks else { return }
    try session.run(Self.updateHandle, [.hub(hub), .text(handle)] + values)
  }

  private func release(_ handle: String, of id: RegistrationID) throws {
    guard session.hasRowLocks else { return }
    try session.run(Self.deleteHandle, [.hub(hub), .text(handle), .id(id)])
  }

  private func insert(installation: String, of id: RegistrationID) throws {
    guard session.hasRowLocks else { return }
    guard try session.run(Self.insertInstallation, [.hub(hub), .text(installation), .id(id)]) == 1 else {
      throw StoreError.overtaken
    }
  }

  private func release(installation: String, of id: RegistrationID) throws {
    guard session.hasRowLocks else { return }
    try session.run(Self.deleteInstallation, [.hub(hub), .text(installation), .id(id)])
  }

  private static let insertHandle = PreparedStatement(
    """
    INSERT INTO handles (hub, handle, registration, registered_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (hub, handle) DO NOTHING
    """)
  private static let updateHandle = PreparedStatement(
    "UPDATE handles SET registration = ?3, platform = ?4, registered_at = ?5 WHERE hub = ?1 AND handle = ?2")
  static let deleteHandle = PreparedStatement(
    "DELETE FROM handles WHERE hub = ?1 AND handle = ?2 AND registration = ?3")
  private static let insertInstallation = PreparedStatement(
    """
    INSERT INTO installations (hub, installation, registration) VALUES (?1, ?2, ?3)
    ON CONFLICT (hub, installation) DO NOTHING
    """)
  private static let deleteInstallation = PreparedStatement(
    "DELETE FROM installations WHERE hub = ?1 AND installation = ?2 AND registration = ?3")
}
