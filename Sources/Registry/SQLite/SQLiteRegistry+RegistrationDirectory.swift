package import FanfareCore
import GRDB

extension SQLiteRegistry: RegistrationDirectory {
  /// The registration of the installation; see `RegistrationDirectory`.
  package func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? {
    guard installation.isStorable else { return nil }
    return try await read { db in try RegistrationTable(db, hub).find(installation: installation)?.registration }
  }

  /// A page of the registrations that an audience reaches; see `RegistrationDirectory`.
  package func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage {
    try await read { db in
      let query = AudienceQuery(hub: hub, audience: audience, platforms: .all)
      let page = try AudiencePager(db, query, weights: tagWeights)
        .page(of: slice, createdBefore: UnixTime(milliseconds: .max), limit: limit)
      let table = RegistrationTable(db, hub)
      return RegistrationPage(
        registrations: try page.targets.compactMap { try table.find($0.registration)?.registration }, last: page.last)
    }
  }

  /// Replaces an installation's registration if it is still what it was; see `RegistrationDirectory`.
  package func revise(
    _ former: Registration, by application: InstallationRequest, at now: UnixTime
  ) async throws -> Registration {
    let next = try RegistrationRules.revision(of: former, by: application, at: now)
    return try await write(at: now) { db in
      let table = RegistrationTable(db, former.hub)
      guard let stored = try table.find(former.id), let registration = stored.registration else {
        throw RegistryError(.notFound, "there is no such installation")
      }
      guard registration == former else { throw RegistryError(.conflict, "the installation has changed meanwhile") }
      try table.put(next, replacing: stored)
      return next
    }
  }

  /// Removes registrations whose apps were not heard of for long; see `RegistrationDirectory`.
  package func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    let limit = max(1, limit)
    // Looked for without the write lock: nearly always there is nothing to remove.
    let (examined, last, stale) = try await read { db in
      let sql = """
        SELECT id, user IS NOT NULL AND max(registered_at, coalesce(seen_at, 0)) < ? FROM registrations
        WHERE hub = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?
        """
      let statement = try db.cachedStatement(sql: sql)
      let rows = try Row.fetchCursor(
        statement, arguments: [seenBefore.milliseconds, hub.rawValue, slice.first.data, slice.last.data, limit])
      var (examined, last, stale): (Int, RegistrationID?, [RegistrationID]) = (0, nil, [])
      while let row = try rows.next() {
        guard let id = statement.registrationID(at: 0) else { throw StoredRegistration.damaged }
        (examined, last) = (examined + 1, id)
        if row[1] { stale.append(id) }
      }
      return (examined, last, stale)
    }
    let end = examined < limit || last == slice.last ? nil : last
    guard !stale.isEmpty else { return ExpiryStep(removed: 0, last: end) }
    let removed = try await write(at: now) { db in
      let table = RegistrationTable(db, hub)
      var removed = 0
      for id in stale {
        // The app may have come back in between.
        guard let stored = try table.find(id), let registration = stored.registration, registration.seenAt < seenBefore
        else {
          continue
        }
        try table.remove(stored, leaving: Tombstone(cause: .expired, detail: "", at: now))
        removed += 1
      }
      return removed
    }
    return ExpiryStep(removed: removed, last: end)
  }
}
