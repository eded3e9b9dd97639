package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: RegistrationDirectory {
  private static let seen = PreparedStatement(
    """
    SELECT id, username IS NOT NULL AND registered_at < $5 AND (seen_at IS NULL OR seen_at < $5) FROM registrations
    WHERE hub = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
    """)

  /// The registration of the installation; see `RegistrationDirectory`.
  package func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? {
    guard installation.isStorable else { return nil }
    return try await read { connection in
      try PostgreSQLRegistrationTable(connection, hub).find(installation: installation)
    }
  }

  /// A page of the registrations that an audience reaches; see `RegistrationDirectory`.
  package func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage {
    try await read { [tagWeights] connection in
      let query = AudienceQuery(hub: hub, audience: audience, platforms: .all)
      let page = try PostgreSQLAudiencePager(connection, query, weights: tagWeights)
        .page(of: slice, createdBefore: UnixTime(milliseconds: .max), limit: limit)
      let registrations = try PostgreSQLRegistrationTable(connection, hub).registrations(
        page.targets.map(\.registration))
      // One may have become somebody else's since the first statement.
      return RegistrationPage(registrations: registrations.filter { $0.isPlainlyOf(audience) }, last: page.last)
    }
  }

  /// Replaces an installation's registration if it is still what it was; see `RegistrationDirectory`.
  package func revise(
    _ former: Registration, by application: InstallationRequest, at now: UnixTime
  ) async throws -> Registration {
    let next = try RegistrationRules.revision(of: former, by: application, at: now)
    return try await write(at: now) { connection in
      let table = PostgreSQLRegistrationTable(connection, former.hub)
      let holder = try table.claim(handle: next.handle, for: next.id, at: now)
      guard let stored = try table.find(former.id), let registration = stored.registration else {
        throw RegistryError(.notFound, "there is no such installation")
      }
      guard registration == former else { throw RegistryError(.conflict, "the installation has changed meanwhile") }
      try table.put(next, replacing: stored, handleHeldBy: holder)
      return next
    }
  }

  /// Removes registrations whose apps were not heard of for long; see `RegistrationDirectory`.
  package func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    let limit = max(1, limit)
    // Looked for without a lock: nearly always there is nothing to remove.
    let (examined, last, stale) = try await read { connection in
      let rows = try connection.query(
        Self.seen,
        [.text(hub.rawValue), .id(slice.first), .id(slice.last), .int8(Int64(limit)), .time(seenBefore)])
      var (last, stale): (RegistrationID?, [RegistrationID]) = (nil, [])
      for row in 0..<rows.count {
        let id: RegistrationID = try rows.identifier(row, 0)
        last = id
        if try rows.bool(row, 1) { stale.append(id) }
      }
      return (rows.count, last, stale)
    }
    let end = examined < limit || last == slice.last ? nil : last
    guard !stale.isEmpty else { return ExpiryStep(removed: 0, last: end) }
    let (removed, examinedStale) = try await remove(stale, at: now) { connection, id in
      let table = PostgreSQLRegistrationTable(connection, hub)
      // The app may have come back in between.
      guard let stored = try table.findLockingAll(id, at: now), let registration = stored.registration,
        registration.seenAt < seenBefore
      else { return nil }
      try table.remove(stored, leaving: Tombstone(cause: .expired, detail: "", at: now))
      return id
    }
    // What an error has kept it from comes next.
    return ExpiryStep(removed: removed.count, last: examinedStale < stale.count ? stale[examinedStale - 1] : end)
  }
}

extension Registration {
  /// Whether it is of the audience, where one look at it shows that.
  fileprivate func isPlainlyOf(_ audience: Audience) -> Bool {
    switch audience {
    case .user(let name): user.hasSameBytes(as: name)
    case .tag(let tag): tags.contains { $0.hasSameBytes(as: tag) }
    default: true
    }
  }
}
