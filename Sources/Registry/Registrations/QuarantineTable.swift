package import FanfareCore
import Store

/// The table of quarantined registrations.
extension RegistrationTable {
  /// The quarantined registration that the key names, without a lock.
  func quarantined(_ key: QuarantineKey, at now: UnixTime) throws -> Registration? {
    let (statement, value): (PreparedStatement, Value) =
      switch key {
      case .id(let id): (Self.selectQuarantined, .id(id))
      case .handle(let handle): (Self.selectQuarantinedHandle, .text(handle))
      case .installation(let installation): (Self.selectQuarantinedInstallation, .text(installation))
      }
    return try session.first(statement, [.hub(hub), value, .time(now)]) { try StoredRegistration($0, hub: hub) }?
      .registration
  }

  /// The quarantined registrations with a template that have the handle (in normal form), without a lock.
  func quarantinedTemplates(ofHandle handle: String, at now: UnixTime) throws -> [Registration] {
    try session.all(
      Self.selectQuarantinedTemplates,
      [.hub(hub), .text(handle), .text(TemplateRow.end(ofHandle: handle)), .time(now)]
    ) { try StoredRegistration($0, hub: hub) }.compactMap(\.registration)
  }

  /// Stores a copy of the registration in the quarantine.
  func quarantine(_ registration: Registration, at now: UnixTime, until end: UnixTime) throws {
    try session.run(
      StoredRegistration.upsertQuarantined,
      StoredRegistration.values(of: registration) + [.time(now), .time(end)])
  }

  /// Deletes the quarantined registration and the tombstone of its id.
  func endQuarantine(of id: RegistrationID) throws {
    try session.run(Self.deleteQuarantined, [.hub(hub), .id(id)])
    try deleteTombstone(of: id)
  }

  private static let selectQuarantined = PreparedStatement(
    "SELECT \(StoredRegistration.quarantineColumns) FROM quarantine WHERE hub = ?1 AND id = ?2 AND ends_at > ?3")
  private static let selectQuarantinedHandle = PreparedStatement(selectBy("handle"))
  private static let selectQuarantinedInstallation = PreparedStatement(selectBy("installation"))
  private static func selectBy(_ column: String) -> String {
    """
    SELECT \(StoredRegistration.quarantineColumns) FROM quarantine WHERE hub = ?1 AND \(column) = ?2 AND ends_at > ?3
    ORDER BY dropped_at DESC LIMIT 1
    """
  }
  private static let selectQuarantinedTemplates = PreparedStatement(
    """
    SELECT \(StoredRegistration.quarantineColumns) FROM quarantine
    WHERE hub = ?1 AND handle > ?2 AND handle < ?3 AND ends_at > ?4
    """)
  private static let deleteQuarantined = PreparedStatement("DELETE FROM quarantine WHERE hub = ?1 AND id = ?2")
}

extension RegistryDatabase: QuarantineStore {
  package func restore(_ page: QuarantinePage, isTrial: Bool, at now: UnixTime) async throws -> RestoreStep {
    let start = page.after ?? .before(page.dropped.lowerBound)
    return try await write { [limits] session in
      let found = try session.all(
        Self.selectQuarantine,
        [
          .hub(page.hub), .time(start.droppedAt), .id(start.registration), .time(page.dropped.upperBound),
          .int(page.limit),
        ]
      ) { row in
        guard let registration = try StoredRegistration(row, hub: page.hub).registration else {
          throw StoredRegistration.damaged
        }
        return (registration, try row.time(12))
      }
      return try RegistrationTable(session, page.hub)
        .restore(found, of: page, isTrial: isTrial, within: limits, at: now)
    }
  }

  private static let selectQuarantine = PreparedStatement(
    """
    SELECT \(StoredRegistration.quarantineColumns), dropped_at FROM quarantine
    WHERE hub = ?1 AND (dropped_at, id) > (?2, ?3) AND dropped_at < ?4 ORDER BY dropped_at, id LIMIT ?5
    """)
}
