package import FanfareCore
import Logging
import PostgreSQL

extension PostgreSQLRegistry: DeviceRegistry {
  /// Issues an id, or gives back the one that holds the handle; see `DeviceRegistry`.
  package func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    let forms = handle.map(RegistrationRules.forms(ofHandle:)) ?? []
    return try await write(at: now) { connection in
      let table = PostgreSQLRegistrationTable(connection, hub)
      let holders = try forms.compactMap { try table.holder(of: $0) }.compactMap { try table.find($0, at: now) }
      guard let newest = holders.max(by: { $0.registeredAt < $1.registeredAt }) else {
        let id = RegistrationID.random()
        let former = try forms.last.map { try table.claim(handle: $0, for: id, at: now) }
        try table.putPending(id, handle: forms.last, formerHolder: former, at: now)
        return id
      }
      for holder in holders where holder.id != newest.id {
        try table.remove(holder, leaving: Tombstone(cause: .merged, detail: newest.id.description, at: now))
      }
      if newest.registration == nil { try table.renewPending(newest.id, at: now) }
      return newest.id
    }
  }

  /// Completes, replaces or takes over a registration; see `DeviceRegistry`.
  package func complete(_ application: RegistrationRequest, at now: UnixTime) async throws -> Registration {
    let tags = try RegistrationRules.tags(of: application.user, given: application.tags)
    let handle = DeviceHandle.normalized(application.handle, platform: application.platform)
    return try await write(at: now) { connection in
      let table = PostgreSQLRegistrationTable(connection, application.hub)
      let holder = try table.claim(handle: handle, for: application.id, at: now)
      guard let stored = try table.find(application.id, at: now) else { throw RegistrationRules.gone }
      let registration = Registration(
        id: application.id, hub: application.hub, user: application.user, platform: application.platform,
        handle: handle,
        tags: tags, installation: nil, registeredAt: now,
        createdAt: RegistrationRules.createdAt(by: application.user, replacing: stored.registration, at: now))
      guard stored.mayBeReplaced(by: registration) else { throw RegistrationRules.gone }
      if let installation = stored.registration?.installation {
        // From now on it is registered by its handle.
        try table.forget(installation: installation, of: stored.id)
      }
      try table.put(registration, replacing: stored, handleHeldBy: holder)
      return registration
    }
  }

  /// Creates or replaces the registration of an installation; see `DeviceRegistry`.
  package func install(_ application: InstallationRequest, at now: UnixTime) async throws -> Registration {
    let tags = try RegistrationRules.tags(
      of: application.user, given: application.tags, installation: application.installation)
    let handle = DeviceHandle.normalized(application.handle, platform: application.platform)
    return try await write(at: now) { connection in
      let table = PostgreSQLRegistrationTable(connection, application.hub)
      let id = try table.claim(installation: application.installation, for: .random())
      let holder = try table.claim(handle: handle, for: id, at: now)
      let stored = try table.find(id)
      let registration = Registration(
        id: id, hub: application.hub, user: application.user, platform: application.platform, handle: handle,
        tags: tags,
        installation: application.installation, registeredAt: now,
        createdAt: RegistrationRules.createdAt(by: application.user, replacing: stored?.registration, at: now))
      guard stored?.mayBeReplaced(by: registration) ?? true else {
        throw RegistryError(.gone, "the installation belongs to somebody else")
      }
      try table.put(registration, replacing: stored, handleHeldBy: holder)
      return registration
    }
  }

  /// Removes a registration of the user; see `DeviceRegistry`.
  package func remove(_ id: RegistrationID, hub: HubName, user: String, at now: UnixTime) async throws {
    try await write(at: now) { connection in
      let table = PostgreSQLRegistrationTable(connection, hub)
      guard let stored = try table.findLockingAll(id, at: now), let owner = stored.registration?.user,
        owner.hasSameBytes(as: user)
      else { throw RegistryError(.notFound, "there is no such registration") }
      try table.remove(stored, leaving: Tombstone(cause: .removed, detail: "", at: now))
    }
  }

  /// The live registration of that id; see `DeviceRegistry`.
  package func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await read { connection in
      try PostgreSQLRegistrationTable(connection, hub).find(id, locking: false)?.registration
    }
  }

  /// The devices of each audience; see `DeviceRegistry`.
  package func resolve(_ queries: [AudienceQuery]) async throws -> [[Target]] {
    guard !queries.isEmpty else { return [] }
    return try await read { [tagWeights] connection in
      try PostgreSQLAudienceLookup(queries, weights: tagWeights).run(connection)
    }
  }

  /// The next devices of an audience in a slice of the ids; see `DeviceRegistry`.
  package func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await read { [tagWeights] connection in
      try PostgreSQLAudiencePager(connection, query, weights: tagWeights)
        .page(of: slice, createdBefore: createdBefore, limit: limit)
    }
  }

  /// Drops devices that a push service called dead; see `DeviceRegistry`. Throws only where nothing was dropped before
  /// the error; the devices that it did not come to are called dead again with their next pushes.
  package func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    // In one order: two workers that were told of the same devices wait for each other, and not in a circle.
    try await remove(verdicts.sorted { $0.registration < $1.registration }, at: now) { connection, verdict in
      let table = PostgreSQLRegistrationTable(connection, verdict.hub)
      guard let stored = try table.findLockingAll(verdict.registration, at: now),
        let registration = stored.registration,
        registration.handle.hasSameBytes(as: verdict.handle),
        verdict.since.map({ registration.registeredAt < $0 }) ?? true
      else { return nil }
      try table.remove(stored, leaving: Tombstone(cause: .dead, detail: verdict.reason, at: now))
      return stored.id
    }.removed
  }

  /// Removes what the closure removes for each of the elements; it gives what it has removed. A few at a time are one
  /// transaction: whoever registers one of them anew waits for no more than these. Gives what was removed, and to how
  /// many of the elements it came, which are fewer where an error has ended it; throws that one only where nothing was
  /// removed.
  func remove<Element: Sendable>(
    _ elements: [Element], at now: UnixTime,
    _ body: @escaping @Sendable (PostgreSQLConnection, Element) throws -> RegistrationID?
  ) async throws -> (removed: [RegistrationID], examined: Int) {
    var removed: [RegistrationID] = []
    for start in stride(from: 0, to: elements.count, by: Self.removalsAtOnce) {
      let some = elements[start..<min(start + Self.removalsAtOnce, elements.count)]
      do {
        removed += try await write(at: now) { connection in try some.compactMap { try body(connection, $0) } }
      } catch {
        guard !removed.isEmpty else { throw error }
        logger.warning("Some registrations were not removed and stay for now", metadata: [LogKeys.error: "\(error)"])
        return (removed, start)
      }
    }
    return (removed, elements.count)
  }

  /// The most registrations that one transaction removes.
  private static let removalsAtOnce = 100
}
