import FanfareCore
import Store

/// The registrations of one hub within one transaction.
///
/// In PostgreSQL the rows that `claim`, `holders` and `findToRemove` return stay locked until the transaction ends.
/// Rows are locked in a fixed order: the installation, then the handle, then the registration. The rules of registering
/// are in extensions. The methods throw the store's own errors, and `RegistryError` where a rule forbids the change.
struct RegistrationTable {
  let session: Session
  let hub: HubName

  init(_ session: Session, _ hub: HubName) {
    self.session = session
    self.hub = hub
  }

  /// The registration with the id, without a lock.
  func registration(_ id: RegistrationID) throws -> Registration? { try find(id, locking: false)?.registration }

  /// The registration that holds the address, without a lock.
  func registration(holding address: String) throws -> Registration? {
    try follow(Self.selectHolder, address) { $0.address.hasSameBytes(as: address) }
  }

  /// The registration of the installation without a template, without a lock.
  func registration(ofInstallation installation: String) throws -> Registration? {
    try follow(Self.selectInstallation, installation) { $0.heldInstallation?.hasSameBytes(as: installation) == true }
  }

  /// The registrations that hold the handle (in normal form), with and without a template, without a lock.
  func registrations(ofHandle handle: String) throws -> [Registration] {
    try registrations(ids(ofHandle: handle)).filter { $0.handle.hasSameBytes(as: handle) }
      .sorted { $0.address < $1.address }
  }

  /// The ids of the registrations that hold the handle, and perhaps of an issued one.
  func ids(ofHandle handle: String) throws -> [RegistrationID] {
    try session.all(Self.selectHolders, [.hub(hub), .text(handle), .text(TemplateRow.end(ofHandle: handle))]) {
      try $0.id(0)
    }
  }

  /// Those of the registrations that exist, by ascending ids, without a lock.
  func registrations(_ ids: [RegistrationID]) throws -> [Registration] {
    try session.all(Self.selectAll, [.hub(hub)], any: ids.map { .id($0) }) { try StoredRegistration($0, hub: hub) }
      .compactMap(\.registration).sorted { $0.id < $1.id }
  }

  /// The unexpired rows without a template that hold one of the handles, without duplicates.
  func holders(of handles: [String], at now: UnixTime) throws -> [StoredRegistration] {
    try handles.compactMap { try holder(of: $0) }.compactMap { try find($0) }.filter { $0.isLive(at: now) }
  }

  /// The row with the id, whether it has expired or not.
  func find(_ id: RegistrationID, locking: Bool = true) throws -> StoredRegistration? {
    try session.first(locking ? Self.selectLocking : Self.select, [.hub(hub), .id(id)]) {
      try StoredRegistration($0, hub: hub)
    }
  }

  /// Locks the holder of the address, which may be an expired row. Nil when there is none.
  func holder(of address: String) throws -> RegistrationID? {
    try session.first(Self.lockHandle, [.hub(hub), .text(address)]) { try $0.id(0) }
  }

  /// Locks the installation's registration. Nil when there is none.
  func owner(of installation: String) throws -> RegistrationID? {
    try session.first(Self.lockInstallation, [.hub(hub), .text(installation)]) { try $0.id(0) }
  }

  /// The first `limit` registrations with the tag, by ascending ids, without a lock.
  func holdings(of tag: String, limit: Int) throws -> [Holding] {
    try session.all(Self.selectHoldings, [.hub(hub), .text(tag), .limit(limit)]) {
      Holding(try $0.id(0), address: try $0.text(1))
    }
  }

  /// The first `limit` tags in use that begin with the prefix, by ascending bytes.
  func tags(withPrefix prefix: String, limit: Int) throws -> [String] {
    guard prefix.isStorable else { return [] }
    return try session.all(Self.selectTags, [.hub(hub), .text(prefix), .limit(limit)]) { try $0.text(0) }
  }

  /// Looks through the first `limit` registrations of the slice for those last seen before the moment, and those whose
  /// validity has ended; without a lock.
  func scan(
    seenBefore moment: UnixTime, of slice: RegistrationSlice, limit: Int, at now: UnixTime
  ) throws -> ExpiryScan {
    let rows = try session.all(
      Self.scanSeen,
      [.hub(hub), .id(slice.first), .id(slice.last), .limit(limit), .time(moment), .time(now)]
    ) { (id: try $0.id(0) as RegistrationID, isStale: try $0.bool(1)) }
    return ExpiryScan(rows, of: slice, limit: limit)
  }

  /// Reads the registration whose id the statement finds for a text. If the registration no longer `fits`, because the
  /// text changed its owner between the two statements, tries once more.
  private func follow(_ statement: PreparedStatement, _ text: String, fits: (Registration) -> Bool) throws
    -> Registration?
  {
    for _ in 0..<2 {
      guard let id: RegistrationID = try session.first(statement, [.hub(hub), .text(text)], { try $0.id(0) }) else {
        return nil
      }
      if let found = try registration(id), fits(found) { return found }
    }
    return nil
  }

  private static let select = PreparedStatement(
    "SELECT \(StoredRegistration.columns) FROM registrations WHERE hub = ?1 AND id = ?2")
  private static let selectLocking = PreparedStatement(
    "SELECT \(StoredRegistration.columns) FROM registrations WHERE hub = ?1 AND id = ?2 FOR UPDATE")
  private static let selectAll = PreparedStatement(
    "SELECT \(StoredRegistration.columns) FROM registrations WHERE hub = ?1 AND id = ANY (?2)")
  private static let selectHolder = PreparedStatement(
    sqlite: "SELECT id FROM registrations WHERE hub = ?1 AND handle = ?2",
    postgreSQL: "SELECT registration FROM handles WHERE hub = ?1 AND handle = ?2")
  private static let lockHandle = PreparedStatement(
    sqlite: selectHolder.sqlite, postgreSQL: selectHolder.sql + " FOR UPDATE")
  private static let selectHolders = PreparedStatement(
    sqlite: "SELECT id FROM registrations WHERE hub = ?1 AND handle >= ?2 AND handle < ?3",
    postgreSQL: "SELECT registration FROM handles WHERE hub = ?1 AND handle >= ?2 AND handle < ?3")
  private static let selectInstallation = PreparedStatement(
    sqlite: "SELECT id FROM registrations WHERE hub = ?1 AND installation = ?2",
    postgreSQL: "SELECT registration FROM installations WHERE hub = ?1 AND installation = ?2")
  private static let lockInstallation = PreparedStatement(
    sqlite: selectInstallation.sqlite, postgreSQL: selectInstallation.sql + " FOR UPDATE")
  private static let selectHoldings = PreparedStatement(
    "SELECT registration, handle FROM tags WHERE hub = ?1 AND tag = ?2 ORDER BY registration LIMIT ?3")
  /// Each step searches the key for the next tag: in SQLite it begins with the tag, in PostgreSQL with the hub.
  private static let selectTags = PreparedStatement(
    sqlite: """
      WITH RECURSIVE found(tag) AS (
        SELECT min(tag) FROM tags WHERE tag >= ?2
        UNION ALL SELECT (SELECT min(tag) FROM tags WHERE tag > found.tag) FROM found
          WHERE substr(found.tag, 1, length(?2)) = ?2
      ) SELECT tag FROM found WHERE substr(tag, 1, length(?2)) = ?2
        AND EXISTS (SELECT 1 FROM tags WHERE tag = found.tag AND hub = ?1) LIMIT ?3
      """,
    postgreSQL: """
      WITH RECURSIVE found(tag) AS (
        SELECT min(tag) FROM tags WHERE hub = ?1 AND tag >= ?2
        UNION ALL SELECT (SELECT min(tag) FROM tags WHERE hub = ?1 AND tag > found.tag) FROM found
          WHERE left(found.tag, length(?2)) = ?2
      ) SELECT tag FROM found WHERE left(tag, length(?2)) = ?2 LIMIT ?3
      """)
  private static let scanSeen = PreparedStatement(
    """
    SELECT id, username IS NOT NULL AND (registered_at < ?5 AND (seen_at IS NULL OR seen_at < ?5)
      OR valid_until IS NOT NULL AND valid_until <= ?6)
    FROM registrations
    WHERE hub = ?1 AND id >= ?2 AND id <= ?3 ORDER BY id LIMIT ?4
    """)
}
