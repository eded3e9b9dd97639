package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: DeviceRegistry {
  package func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    try await write(at: now) { db in try SQLiteRegistrationTable(db, hub).issue(handle: handle, at: now) }
  }

  package func complete(
    _ request: RegistrationRequest, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws -> Registration {
    let draft = try RegistrationDraft(request)
    let (registration, surplus) = try await write(at: now) { db in
      try SQLiteRegistrationTable(db, request.hub)
        .complete(request.id, draft, if: condition, within: limits, at: now)
    }
    SurplusDevices.count(surplus, of: request.hub)
    return registration
  }

  package func install(_ request: InstallationRequest, at now: UnixTime) async throws -> Registration {
    try await install([request], at: now)[0]
  }

  /// Creates or replaces the registrations of many installations in one transaction: all, or none if one is refused.
  package func install(_ requests: [InstallationRequest], at now: UnixTime) async throws -> [Registration] {
    let drafts = try requests.map { try InstallationDraft($0) }
    let stored = try await write(at: now) { db in
      try zip(requests, drafts).map { request, draft in
        try SQLiteRegistrationTable(db, request.hub).install(request.installation, draft, within: limits, at: now)
      }
    }
    for (registration, surplus) in stored { SurplusDevices.count(surplus, of: registration.hub) }
    return stored.map(\.registration)
  }

  package func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) async throws {
    try await write(at: now) { db in
      try SQLiteRegistrationTable(db, hub).remove(id, of: user, if: condition, at: now)
    }
  }

  package func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await read { db in try SQLiteRegistrationTable(db, hub).registration(id) }
  }

  package func resolve(_ queries: [AudienceQuery], limit: Int) async throws -> [AudiencePage] {
    guard !queries.isEmpty else { return [] }
    return try await read { db in
      try SQLiteAudienceLookup(queries, weights: tagWeights, templates: templates, limit: limit).run(db)
    }
  }

  package func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await read { db in
      let table = SQLiteRegistrationTable(db, query.hub)
      let selection = try AudienceSelection(query, templates: templates, in: table)
      return try AudiencePager(table, query, selection, weights: tagWeights)
        .page(AudienceRange(slice: slice, createdBefore: createdBefore, limit: max(1, limit)))
    }
  }

  package func hubs() async throws -> [HubName] {
    try await read { db in try String.fetchAll(db, sql: HubList.statement).compactMap { HubName($0) } }
  }

  package func drop(_ devices: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    guard !devices.isEmpty else { return [] }
    return try await write(at: now) { db in
      try devices.flatMap { try SQLiteRegistrationTable(db, $0.hub).drop($0, within: limits, at: now) }
    }
  }
}

extension SQLiteRegistry: RegistrationDirectory {
  package func registration(ofInstallation installation: String, hub: HubName) async throws -> Registration? {
    guard installation.isStorable else { return nil }
    return try await read { db in
      try SQLiteRegistrationTable(db, hub).registration(ofInstallation: installation)
    }
  }

  package func registrations(ofInstallation installation: String, hub: HubName) async throws -> [Registration] {
    guard installation.isStorable else { return [] }
    return try await read { db in
      try SQLiteRegistrationTable(db, hub).registrations(ofInstallation: installation)
    }
  }

  package func tags(withPrefix prefix: String, hub: HubName, limit: Int) async throws -> [String] {
    try await read { db in try SQLiteRegistrationTable(db, hub).tags(withPrefix: prefix, limit: max(1, limit)) }
  }

  package func list(
    _ audience: Audience, hub: HubName, of slice: RegistrationSlice, limit: Int
  ) async throws -> RegistrationPage {
    try await read { db in
      try SQLiteRegistrationTable(db, hub).list(audience, of: slice, limit: limit, weights: tagWeights)
    }
  }

  package func revise(
    _ former: Registration, by request: InstallationRequest, at now: UnixTime
  ) async throws -> Registration {
    let draft = try InstallationDraft(request)
    return try await write(at: now) { db in
      try SQLiteRegistrationTable(db, former.hub).revise(former, by: draft, at: now)
    }
  }

  package func expire(
    seenBefore: UnixTime, hub: HubName, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) async throws -> ExpiryStep {
    // Read without the write lock: usually there is nothing to remove.
    let scan = try await read { db in
      try SQLiteRegistrationTable(db, hub).scan(seenBefore: seenBefore, of: slice, limit: max(1, limit), at: now)
    }
    guard !scan.stale.isEmpty else { return ExpiryStep(removed: 0, last: scan.last) }
    let removed = try await write(at: now) { db in
      try scan.stale.flatMap { try SQLiteRegistrationTable(db, hub).expire($0, seenBefore: seenBefore, at: now) }
    }
    return ExpiryStep(removed: removed.count, last: scan.last)
  }
}

extension SQLiteRegistry: TombstoneStore {
  package func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration] {
    // The index on `at` ends with the primary key, so the rows come in this order without sorting.
    var sql = "SELECT registration, cause, detail, at FROM tombstones WHERE hub = ?"
    var arguments: StatementArguments = [hub.rawValue]
    if let last {
      sql += " AND (at, registration) > (?, ?)"
      arguments += [last.tombstone.at.milliseconds, last.registration.data]
    } else {
      sql += " AND at >= ?"
      arguments += [since.milliseconds]
    }
    if let cause {
      sql += " AND cause = ?"
      arguments += [cause.rawValue]
    }
    sql += " ORDER BY at, registration LIMIT ?"
    arguments += [max(1, limit)]
    return try await read { [sql, arguments] db in
      try Row.fetchAll(db, sql: sql, arguments: arguments).map { row in
        guard let id = RegistrationID(row[0] as Data), let cause = Tombstone.Cause(rawValue: row[1]) else {
          throw StoredRegistration.damaged
        }
        let tombstone = Tombstone(cause: cause, detail: row[2], at: UnixTime(milliseconds: row[3]))
        return BuriedRegistration(registration: id, tombstone: tombstone)
      }
    }
  }
}

extension SQLiteRegistry: RegistrationInquiry {
  package func count(tag: String, hub: HubName, limit: Int) async throws -> Int {
    try await read { db in
      let count = try db.cachedStatement(
        sql: "SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ? AND hub = ? LIMIT ?)")
      return try Int.fetchOne(count, arguments: [tag, hub.rawValue, limit]) ?? 0
    }
  }

  package func removedTogether(_ id: RegistrationID, hub: HubName) async throws -> Bool {
    try await tombstone(of: id, hub: hub)?.isOfPart ?? false
  }

  package func removed(
    from user: String, hub: HubName, before last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    try await read { db in
      let select = try db.cachedStatement(
        sql: """
          SELECT t.registration, t.cause, t.detail, t.at, q.platform, q.handle, q.ends_at FROM tombstones AS t
          LEFT JOIN quarantine AS q ON q.hub = t.hub AND q.id = t.registration AND q.ends_at > ?
          WHERE t.hub = ? AND t.username = ? AND (t.at, t.registration) < (?, ?)
          ORDER BY t.at DESC, t.registration DESC LIMIT ?
          """)
      let arguments: StatementArguments = [
        now.milliseconds, hub.rawValue, user, last?.at.milliseconds ?? .max,
        (last?.registration ?? RegistrationSlice.whole.last).data, max(1, limit),
      ]
      return try Row.fetchAll(select, arguments: arguments).map { row in
        guard let id = RegistrationID(row[0] as Data) else { throw StoredRegistration.damaged }
        return try RemovedRegistration(
          id, cause: row[1], detail: row[2], at: row[3], platform: row[4], handle: row[5], endsAt: row[6])
      }
    }
  }
}

extension SQLiteRegistry {
  package func dead(
    hub: HubName, after last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    try await read { db in
      let select = try db.cachedStatement(
        sql: """
          SELECT t.registration, t.cause, t.detail, t.at, q.platform, q.handle, q.ends_at FROM tombstones AS t
          LEFT JOIN quarantine AS q ON q.hub = t.hub AND q.id = t.registration AND q.ends_at > ?
          WHERE t.hub = ? AND t.cause = ? AND (t.at, t.registration) > (?, ?)
          ORDER BY t.at, t.registration LIMIT ?
          """)
      let arguments: StatementArguments = [
        now.milliseconds, hub.rawValue, Tombstone.Cause.dead.rawValue, last?.at.milliseconds ?? .min,
        (last?.registration ?? RegistrationSlice.whole.first).data, max(1, limit),
      ]
      return try Row.fetchAll(select, arguments: arguments).map { row in
        guard let id = RegistrationID(row[0] as Data) else { throw StoredRegistration.damaged }
        return try RemovedRegistration(
          id, cause: row[1], detail: row[2], at: row[3], platform: row[4], handle: row[5], endsAt: row[6])
      }
    }
  }
}

extension SQLiteRegistry: QuarantineStore {
  package func restore(_ page: QuarantinePage, isTrial: Bool, at now: UnixTime) async throws -> RestoreStep {
    let sql = """
      SELECT \(SQLiteRegistrationTable.quarantineColumns), dropped_at FROM quarantine
      WHERE hub = ? AND (dropped_at, id) > (?, ?) AND dropped_at < ? ORDER BY dropped_at, id LIMIT ?
      """
    let start = page.after ?? .before(page.dropped.lowerBound)
    return try await write { db in
      let table = SQLiteRegistrationTable(db, page.hub)
      let rows = try Row.fetchAll(
        db, sql: sql,
        arguments: [
          page.hub.rawValue, start.droppedAt.milliseconds, start.registration.data,
          page.dropped.upperBound.milliseconds, page.limit,
        ])
      let found = try rows.map { row in
        guard let registration = try StoredRegistration(row, hub: page.hub).registration else {
          throw StoredRegistration.damaged
        }
        return (registration, UnixTime(milliseconds: row[12]))
      }
      return try table.restore(found, of: page, isTrial: isTrial, within: limits, at: now)
    }
  }
}
