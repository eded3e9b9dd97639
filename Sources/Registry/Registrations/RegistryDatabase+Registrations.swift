package import FanfareCore
import Logging
import Store

extension RegistryDatabase: DeviceRegistry {
  package func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    try await write(at: now) { try RegistrationTable($0, hub).issue(handle: handle, at: now) }
  }

  package func complete(
    _ request: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration {
    guard let id = request.id else { throw RegistrationRules.gone }
    let draft = try RegistrationDraft(request)
    let (registration, surplus) = try await write(at: now) { [limits] in
      try RegistrationTable($0, request.hub).complete(id, draft, if: condition, within: limits, at: now)
    }
    SurplusDevices.count(surplus, of: request.hub)
    return registration
  }

  package func install(_ request: DeviceRequest, at now: UnixTime) async throws -> Registration {
    try await install([request], at: now)[0]
  }

  /// Creates or replaces the registrations of many installations in one transaction: all, or none if one is refused.
  package func install(_ requests: [DeviceRequest], at now: UnixTime) async throws -> [Registration] {
    let drafts = try requests.map { try InstallationDraft($0) }
    let stored = try await write(at: now) { [limits] session in
      try drafts.map { try RegistrationTable(session, $0.native.hub).install($0, within: limits, at: now) }
    }
    for (registration, surplus) in stored { SurplusDevices.count(surplus, of: registration.hub) }
    return stored.map(\.registration)
  }

  package func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws {
    try await write(at: now) { try RegistrationTable($0, hub).remove(id, of: user, if: condition, at: now) }
  }

  package func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await read { try RegistrationTable($0, hub).registration(id) }
  }

  package func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    guard !queries.isEmpty else { return [] }
    return try await read { [tagWeights, templates] session in
      switch session.engine {
      case .sqlite(let db):
        try SQLiteAudienceLookup(queries, weights: tagWeights, templates: templates, limit: limit).run(db)
      case .postgreSQL(let connection):
        try PostgreSQLAudienceLookup(queries, weights: tagWeights, templates: templates, limit: limit).run(connection)
      }
    }
  }

  package func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await read { [tagWeights, templates] session in
      let table = RegistrationTable(session, query.hub)
      let selection = try AudienceSelection(query, templates: templates, in: table)
      return try AudiencePager(table, query, selection, weights: tagWeights)
        .page(AudienceRange(slice: slice, createdBefore: createdBefore, limit: max(1, limit)))
    }
  }

  package func hubs() async throws -> [HubName] {
    try await read { try $0.all(Self.selectHubs) { HubName(try $0.text(0)) } }.compactMap(\.self)
  }

  /// See `DeviceRegistry`. Throws only when no device was dropped before the error. The devices that were not reached
  /// are reported dead again with their next pushes.
  package func drop(_ devices: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    // Sorted: two workers with the same reports then wait for each other without a deadlock.
    try await remove(devices.sorted { $0.registration < $1.registration }, at: now) { [limits] session, device in
      try RegistrationTable(session, device.hub).drop(device, within: limits, at: now)
    }.removed
  }

  /// The maximum number of registrations removed in one transaction, for which an app may have to wait.
  private static let removalBatch = 100

  /// Reads one row per hub: each step searches the primary key, which begins with the hub, for the next one.
  private static let selectHubs = PreparedStatement(
    """
    WITH RECURSIVE found(hub) AS (
      SELECT min(hub) FROM registrations
      UNION ALL SELECT (SELECT min(hub) FROM registrations WHERE hub > found.hub) FROM found WHERE found.hub IS NOT NULL
    ) SELECT hub FROM found WHERE hub IS NOT NULL LIMIT 1000
    """)

  /// Removes elements in batches, one transaction each; `body` removes one and returns the removed ids.
  ///
  /// Returns the removed ids and the number of elements examined, which is less than all after an error. Throws the
  /// error only when nothing was removed before.
  private func remove<Element: Sendable>(
    _ elements: [Element], at now: UnixTime,
    _ body: @escaping @Sendable (Session, Element) throws -> [RegistrationID]
  ) async throws -> (removed: [RegistrationID], examined: Int) {
    var removed: [RegistrationID] = []
    for start in stride(from: 0, to: elements.count, by: Self.removalBatch) {
      let batch = elements[start..<min(start + Self.removalBatch, elements.count)]
      do {
        removed += try await write(at: now) { session in try batch.flatMap { try body(session, $0) } }
      } catch {
        guard !removed.isEmpty else { throw error }
        logger.warning("Some registrations could not be removed", metadata: [LogKeys.error: "\(error)"])
        return (removed, start)
      }
    }
    return (removed, elements.count)
  }
}

extension RegistryDatabase: RegistrationDirectory, RegistrationExpiryStore {
  package func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? {
    guard installation.isStorable else { return nil }
    return try await read { try RegistrationTable($0, hub).registration(ofInstallation: installation) }
  }

  package func registrations(ofInstallation installation: String, hub: HubName) async throws -> [Registration] {
    guard installation.isStorable else { return [] }
    return try await read { try RegistrationTable($0, hub).registrations(ofInstallation: installation) }
  }

  package func tags(withPrefix prefix: String, hub: HubName, limit: Int) async throws -> [String] {
    try await read { try RegistrationTable($0, hub).tags(withPrefix: prefix, limit: max(1, limit)) }
  }

  package func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage {
    try await read { [tagWeights] session in
      try RegistrationTable(session, hub).list(audience, of: slice, limit: limit, weights: tagWeights)
    }
  }

  package func revise(
    _ former: Registration, by request: DeviceRequest, at now: UnixTime
  ) async throws -> Registration {
    let draft = try InstallationDraft(request)
    return try await write(at: now) { try RegistrationTable($0, former.hub).revise(former, by: draft, at: now) }
  }

  package func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    // Read without locks: usually there is nothing to remove.
    let scan = try await read {
      try RegistrationTable($0, hub).scan(seenBefore: seenBefore, of: slice, limit: max(1, limit), at: now)
    }
    let (removed, examined) = try await remove(scan.stale, at: now) { session, id in
      try RegistrationTable(session, hub).expire(id, seenBefore: seenBefore, at: now)
    }
    // After an error the next step begins with the first registration that was not examined.
    return ExpiryStep(removed: removed.count, last: examined < scan.stale.count ? scan.stale[examined - 1] : scan.last)
  }
}
