package import FanfareCore
import Logging
import PostgreSQL

extension PostgreSQLRegistry: DeviceRegistry {
  package func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    try await write(at: now) { try PostgreSQLRegistrationTable($0, hub).issue(handle: handle, at: now) }
  }

  package func complete(
    _ request: RegistrationRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration {
    let draft = try RegistrationDraft(request)
    let (registration, surplus) = try await write(at: now) { [limits] in
      try PostgreSQLRegistrationTable($0, request.hub)
        .complete(request.id, draft, if: condition, within: limits, at: now)
    }
    SurplusDevices.count(surplus, of: request.hub)
    return registration
  }

  package func install(_ request: InstallationRequest, at now: UnixTime) async throws -> Registration {
    let draft = try InstallationDraft(request)
    let (registration, surplus) = try await write(at: now) { [limits] in
      try PostgreSQLRegistrationTable($0, request.hub).install(request.installation, draft, within: limits, at: now)
    }
    SurplusDevices.count(surplus, of: request.hub)
    return registration
  }

  package func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws {
    try await write(at: now) { try PostgreSQLRegistrationTable($0, hub).remove(id, of: user, if: condition, at: now) }
  }

  package func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await read { try PostgreSQLRegistrationTable($0, hub).registration(id) }
  }

  package func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    guard !queries.isEmpty else { return [] }
    return try await read { [tagWeights, templates] connection in
      try PostgreSQLAudienceLookup(queries, weights: tagWeights, templates: templates, limit: limit).run(connection)
    }
  }

  package func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await read { [tagWeights, templates] connection in
      let table = PostgreSQLRegistrationTable(connection, query.hub)
      let selection = try AudienceSelection(query, templates: templates, in: table)
      return try AudiencePager(table, query, selection, weights: tagWeights)
        .page(AudienceRange(slice: slice, createdBefore: createdBefore, limit: max(1, limit)))
    }
  }

  package func hubs() async throws -> [HubName] {
    try await read { connection in
      let rows = try connection.execute(HubList.statement, [])
      return try (0..<rows.count).compactMap { HubName(try rows.text($0, 0)) }
    }
  }

  /// See `DeviceRegistry`. Throws only when no device was dropped before the error. The devices that were not reached
  /// are reported dead again with their next pushes.
  package func drop(_ devices: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    // Sorted: two workers with the same reports then wait for each other without a deadlock.
    try await remove(devices.sorted { $0.registration < $1.registration }, at: now) {
      [limits] connection, device in
      try PostgreSQLRegistrationTable(connection, device.hub).drop(device, within: limits, at: now)
    }.removed
  }

  /// The maximum number of registrations removed in one transaction, for which an app may have to wait.
  private static let removalBatch = 100

  /// Removes elements in batches, one transaction each; `body` removes one and returns the removed ids.
  ///
  /// Returns the removed ids and the number of elements examined, which is less than all after an error. Throws the
  /// error only when nothing was removed before.
  private func remove<Element: Sendable>(
    _ elements: [Element], at now: UnixTime,
    _ body: @escaping @Sendable (PostgreSQLConnection, Element) throws -> [RegistrationID]
  ) async throws -> (removed: [RegistrationID], examined: Int) {
    var removed: [RegistrationID] = []
    for start in stride(from: 0, to: elements.count, by: Self.removalBatch) {
      let batch = elements[start..<min(start + Self.removalBatch, elements.count)]
      do {
        removed += try await write(at: now) { connection in try batch.flatMap { try body(connection, $0) } }
      } catch {
        guard !removed.isEmpty else { throw error }
        logger.warning("Some registrations could not be removed", metadata: [LogKeys.error: "\(error)"])
        return (removed, start)
      }
    }
    return (removed, elements.count)
  }
}

extension PostgreSQLRegistry: RegistrationDirectory {
  package func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? {
    guard installation.isStorable else { return nil }
    return try await read { try PostgreSQLRegistrationTable($0, hub).registration(ofInstallation: installation) }
  }

  package func registrations(ofInstallation installation: String, hub: HubName) async throws -> [Registration] {
    guard installation.isStorable else { return [] }
    return try await read { try PostgreSQLRegistrationTable($0, hub).registrations(ofInstallation: installation) }
  }

  package func tags(withPrefix prefix: String, hub: HubName, limit: Int) async throws -> [String] {
    try await read { try PostgreSQLRegistrationTable($0, hub).tags(withPrefix: prefix, limit: max(1, limit)) }
  }

  package func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage {
    try await read { [tagWeights] connection in
      try PostgreSQLRegistrationTable(connection, hub).list(audience, of: slice, limit: limit, weights: tagWeights)
    }
  }

  package func revise(
    _ former: Registration, by request: InstallationRequest, at now: UnixTime
  ) async throws -> Registration {
    let draft = try InstallationDraft(request)
    return try await write(at: now) {
      try PostgreSQLRegistrationTable($0, former.hub).revise(former, by: draft, at: now)
    }
  }

  package func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    // Read without locks: usually there is nothing to remove.
    let scan = try await read {
      try PostgreSQLRegistrationTable($0, hub).scan(seenBefore: seenBefore, of: slice, limit: max(1, limit), at: now)
    }
    let (removed, examined) = try await remove(scan.stale, at: now) { connection, id in
      try PostgreSQLRegistrationTable(connection, hub).expire(id, seenBefore: seenBefore, at: now)
    }
    // After an error the next step begins with the first registration that was not examined.
    return ExpiryStep(removed: removed.count, last: examined < scan.stale.count ? scan.stale[examined - 1] : scan.last)
  }
}

extension PostgreSQLRegistry: TombstoneStore {
  private static let page = PreparedStatement(
    """
    SELECT registration, cause, detail, at FROM tombstones
    WHERE hub = $1 AND (at, registration) >= ($2, $3) AND ($4::text IS NULL OR cause = $4) ORDER BY at, registration LIMIT $5
    """)

  package func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration] {
    let limit = max(1, limit)
    // The page begins with the last tombstone of the page before, which is dropped.
    let first = (at: last?.tombstone.at ?? since, registration: last?.registration ?? RegistrationSlice.whole.first)
    let buried = try await read { connection in
      let rows = try connection.query(
        Self.page,
        [
          .text(hub.rawValue), .time(first.at), .id(first.registration), .text(cause?.rawValue),
          .int8(Int64(limit) + 1),
        ])
      return try (0..<rows.count).map { row in
        guard let cause = Tombstone.Cause(rawValue: try rows.text(row, 1)) else { throw StoredRegistration.damaged }
        let tombstone = Tombstone(
          cause: cause, detail: try rows.text(row, 2), at: UnixTime(milliseconds: try rows.integer(row, 3)))
        return BuriedRegistration(registration: try rows.identifier(row, 0), tombstone: tombstone)
      }
    }
    return Array(buried.drop { $0 == last }.prefix(limit))
  }
}

extension PostgreSQLRegistry: RegistrationInquiry {
  private static let countTag = PreparedStatement(
    "SELECT count(*) FROM (SELECT 1 FROM tags WHERE hub = $1 AND tag = $2 LIMIT $3) AS counted")
  private static let selectRemoved = PreparedStatement(
    """
    SELECT t.registration, t.cause, t.detail, t.at, q.platform, q.handle, q.ends_at FROM tombstones AS t
    LEFT JOIN quarantine AS q ON q.hub = t.hub AND q.id = t.registration AND q.ends_at > $5
    WHERE t.hub = $1 AND t.username = $2 AND (t.at, t.registration) < ($3, $4)
    ORDER BY t.at DESC, t.registration DESC LIMIT $6
    """)

  package func count(tag: String, hub: HubName, limit: Int) async throws -> Int {
    guard tag.isStorable else { return 0 }
    return try await read { connection in
      let rows = try connection.query(Self.countTag, [.text(hub.rawValue), .text(tag), .int8(Int64(limit))])
      return Int(try rows.integer(0, 0))
    }
  }

  package func removedTogether(_ id: RegistrationID, hub: HubName) async throws -> Bool {
    try await tombstone(of: id, hub: hub)?.isOfPart ?? false
  }

  package func removed(
    from user: String, hub: HubName, before last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    guard user.isStorable else { return [] }
    return try await read { connection in
      let rows = try connection.query(
        Self.selectRemoved,
        [
          .text(hub.rawValue), .text(user), .int8(last?.at.milliseconds ?? .max),
          .id(last?.registration ?? RegistrationSlice.whole.last), .time(now), .int8(Int64(max(1, limit))),
        ])
      return try (0..<rows.count).map { row in
        try RemovedRegistration(
          try rows.identifier(row, 0), cause: try rows.text(row, 1), detail: try rows.text(row, 2),
          at: try rows.integer(row, 3), platform: try rows.optionalInteger(row, 4),
          handle: try rows.optionalText(row, 5), endsAt: try rows.optionalInteger(row, 6))
      }
    }
  }
}

extension PostgreSQLRegistry {
  private static let selectDead = PreparedStatement(
    """
    SELECT t.registration, t.cause, t.detail, t.at, q.platform, q.handle, q.ends_at FROM tombstones AS t
    LEFT JOIN quarantine AS q ON q.hub = t.hub AND q.id = t.registration AND q.ends_at > $5
    WHERE t.hub = $1 AND t.cause = $2 AND (t.at, t.registration) > ($3, $4)
    ORDER BY t.at, t.registration LIMIT $6
    """)

  package func dead(
    hub: HubName, after last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    try await read { connection in
      let rows = try connection.query(
        Self.selectDead,
        [
          .text(hub.rawValue), .text(Tombstone.Cause.dead.rawValue), .int8(last?.at.milliseconds ?? .min),
          .id(last?.registration ?? RegistrationSlice.whole.first), .time(now), .int8(Int64(max(1, limit))),
        ])
      return try (0..<rows.count).map { row in
        try RemovedRegistration(
          try rows.identifier(row, 0), cause: try rows.text(row, 1), detail: try rows.text(row, 2),
          at: try rows.integer(row, 3), platform: try rows.optionalInteger(row, 4),
          handle: try rows.optionalText(row, 5), endsAt: try rows.optionalInteger(row, 6))
      }
    }
  }
}

extension PostgreSQLRegistry: QuarantineStore {
  private static let quarantinePage = PreparedStatement(
    """
    SELECT \(PostgreSQLRegistrationTable.quarantineColumns), dropped_at FROM quarantine
    WHERE hub = $1 AND (dropped_at, id) > ($2, $3) AND dropped_at < $4 ORDER BY dropped_at, id LIMIT $5
    """)

  package func restore(_ page: QuarantinePage, isTrial: Bool, at now: UnixTime) async throws -> RestoreStep {
    let start = page.after ?? .before(page.dropped.lowerBound)
    return try await write { [limits] connection in
      let rows = try connection.query(
        Self.quarantinePage,
        [
          .text(page.hub.rawValue), .time(start.droppedAt), .id(start.registration), .time(page.dropped.upperBound),
          .int8(Int64(page.limit)),
        ])
      let found = try (0..<rows.count).map { row in
        guard let registration = try StoredRegistration(rows, row, hub: page.hub).registration else {
          throw StoredRegistration.damaged
        }
        return (registration, UnixTime(milliseconds: try rows.integer(row, 12)))
      }
      return try PostgreSQLRegistrationTable(connection, page.hub)
        .restore(found, of: page, isTrial: isTrial, within: limits, at: now)
    }
  }
}
