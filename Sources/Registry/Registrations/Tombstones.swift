package import FanfareCore
import Store

/// The table of tombstones.
extension RegistrationTable {
  /// The tombstone of the registration.
  func tombstone(of id: RegistrationID) throws -> Tombstone? {
    try session.first(Self.selectTombstone, [.hub(hub), .id(id)]) { row in
      try Tombstone.Cause(rawValue: row.text(0)).map { cause in
        Tombstone(cause: cause, detail: try row.text(1), at: try row.time(2))
      }
    }.flatMap(\.self)
  }

  /// Stores the tombstone of a row that is removed.
  func bury(_ stored: StoredRegistration, _ tombstone: Tombstone) throws {
    try session.run(
      Self.insertTombstone,
      [
        .hub(hub), .id(stored.id), .text(tombstone.cause.rawValue), .text(tombstone.detail), .time(tombstone.at),
        .text(stored.registration?.user),
      ])
  }

  /// Deletes the tombstone of a registration that exists again.
  func deleteTombstone(of id: RegistrationID) throws {
    try session.run(Self.deleteTombstone, [.hub(hub), .id(id)])
  }

  private static let selectTombstone = PreparedStatement(
    "SELECT cause, detail, at FROM tombstones WHERE hub = ?1 AND registration = ?2")
  private static let insertTombstone = PreparedStatement(
    """
    INSERT INTO tombstones (hub, registration, cause, detail, at, username) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (hub, registration) DO UPDATE SET cause = excluded.cause, detail = excluded.detail, at = excluded.at,
      username = excluded.username
    """)
  private static let deleteTombstone = PreparedStatement(
    "DELETE FROM tombstones WHERE hub = ?1 AND registration = ?2")
}

extension RegistryDatabase: TombstoneStore {
  /// The tombstone of the registration; nil when it exists, never did, or its tombstone has expired.
  package func tombstone(of id: RegistrationID, hub: HubName) async throws -> Tombstone? {
    try await read { try RegistrationTable($0, hub).tombstone(of: id) }
  }

  package func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration] {
    let limit = max(1, min(limit, 1_000_000))
    // The page begins with the last tombstone of the page before, which is dropped.
    let first = (at: last?.tombstone.at ?? since, registration: last?.registration ?? RegistrationSlice.whole.first)
    let buried = try await read { session in
      try session.all(
        Self.selectPage,
        [.hub(hub), .time(first.at), .id(first.registration), .text(cause?.rawValue), .limit(limit + 1)]
      ) { row in
        guard let cause = Tombstone.Cause(rawValue: try row.text(1)) else { throw StoredRegistration.damaged }
        return BuriedRegistration(
          registration: try row.id(0), tombstone: Tombstone(cause: cause, detail: try row.text(2), at: try row.time(3)))
      }
    }
    return Array(buried.drop { $0 == last }.prefix(limit))
  }

  private static let selectPage = PreparedStatement(
    """
    SELECT registration, cause, detail, at FROM tombstones
    WHERE hub = ?1 AND (at, registration) >= (?2, ?3) AND (?4 IS NULL OR cause = ?4)
    ORDER BY at, registration LIMIT ?5
    """)
}

extension RegistryDatabase: RegistrationInquiry {
  package func count(tag: String, hub: HubName, limit: Int) async throws -> Int {
    guard tag.isStorable else { return 0 }
    return try await read { session in
      try session.first(Self.countTag, [.hub(hub), .text(tag), .int(limit)]) { try $0.int(0) } ?? 0
    }
  }

  package func removedTogether(_ id: RegistrationID, hub: HubName) async throws -> Bool {
    try await tombstone(of: id, hub: hub)?.isOfPart ?? false
  }

  package func removed(
    from user: String, hub: HubName, before last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    guard user.isStorable else { return [] }
    return try await read { session in
      try session.all(
        Self.selectRemoved,
        [
          .hub(hub), .text(user), .integer(last?.at.milliseconds ?? .max),
          .id(last?.registration ?? RegistrationSlice.whole.last), .time(now), .limit(limit),
        ], RemovedRegistration.init)
    }
  }

  package func dead(
    hub: HubName, after last: RemovedRegistration.Position?, limit: Int, at now: UnixTime
  ) async throws -> [RemovedRegistration] {
    try await read { session in
      try session.all(
        Self.selectDead,
        [
          .hub(hub), .text(Tombstone.Cause.dead.rawValue), .integer(last?.at.milliseconds ?? .min),
          .id(last?.registration ?? RegistrationSlice.whole.first), .time(now), .limit(limit),
        ], RemovedRegistration.init)
    }
  }

  private static let countTag = PreparedStatement(
    "SELECT count(*) FROM (SELECT 1 FROM tags WHERE hub = ?1 AND tag = ?2 LIMIT ?3) AS counted")
  private static let removed = """
    SELECT t.registration, t.cause, t.detail, t.at, q.platform, q.handle, q.ends_at FROM tombstones AS t
    LEFT JOIN quarantine AS q ON q.hub = t.hub AND q.id = t.registration AND q.ends_at > ?5
    """
  private static let selectRemoved = PreparedStatement(
    """
    \(removed) WHERE t.hub = ?1 AND t.username = ?2 AND (t.at, t.registration) < (?3, ?4)
    ORDER BY t.at DESC, t.registration DESC LIMIT ?6
    """)
  private static let selectDead = PreparedStatement(
    """
    \(removed) WHERE t.hub = ?1 AND t.cause = ?2 AND (t.at, t.registration) > (?3, ?4)
    ORDER BY t.at, t.registration LIMIT ?6
    """)
}

extension RemovedRegistration {
  /// Reads the columns of a tombstone, and of the quarantine if the registration is there.
  fileprivate init(_ row: Row) throws {
    var quarantine: Quarantine?
    if let platform = try row.optionalInteger(4) {
      quarantine = Quarantine(
        platform: try Platform(row: platform), handle: TemplateRow.handle(in: try row.text(5)),
        endsAt: try row.time(6))
    }
    self.init(
      registration: try row.id(0), cause: try row.text(1), detail: try row.text(2), at: try row.time(3),
      quarantine: quarantine)
  }
}
