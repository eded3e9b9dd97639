package import FanfareCore
import Store

extension RegistryDatabase: TemplateStore {
  private static let count = PreparedStatement("SELECT count(*) FROM templates WHERE hub = ?1 AND removed_at IS NULL")
  private static let insert = PreparedStatement(
    """
    INSERT INTO templates (hub, name, version, default_locale, variants, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (hub, name, version) DO NOTHING
    """)
  private static let list = PreparedStatement(
    """
    SELECT \(HubTemplate.columns) FROM templates AS t
    WHERE hub = ?1 AND name > ?2 AND removed_at IS NULL
      AND version = (SELECT max(version) FROM templates WHERE hub = t.hub AND name = t.name)
    ORDER BY name LIMIT ?3
    """)

  package func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate {
    let draft = try HubTemplateDraft(name, defaultLocale: defaultLocale, variants: variants)
    return try await write(at: now) { session in
      let table = RegistrationTable(session, hub)
      let newest = try table.newest(name)
      let isListed = newest.map { $0.replacedAt == nil } ?? false
      if isListed, let newest, draft.isStored(in: newest) { return newest }
      if !isListed {
        let count = try session.first(Self.count, [.hub(hub)]) { try $0.int(0) } ?? 0
        guard count < HubTemplateDraft.maximumCount else { throw HubTemplateDraft.tooMany }
      }
      let next = draft.template(version: (newest?.version ?? 0) + 1, at: now)
      let inserted = try session.run(
        Self.insert,
        [.hub(hub), .text(name), .int(next.version), .text(defaultLocale), .text(draft.text), .time(now)])
      guard inserted == 1 else { throw StoreError.overtaken }
      if let newest { try table.end(newest, at: now) }
      return next
    }
  }

  package func template(_ name: String, version: Int?, hub: HubName) async throws -> HubTemplate? {
    try await read { try RegistrationTable($0, hub).template(name, version: version) }
  }

  package func templates(after name: String?, hub: HubName, limit: Int) async throws -> [HubTemplate] {
    try await read { session in
      try session.all(Self.list, [.hub(hub), .text(name ?? ""), .limit(limit)], HubTemplate.init)
    }
  }

  package func remove(template name: String, hub: HubName, at now: UnixTime) async throws {
    try await write(at: now) { session in
      let table = RegistrationTable(session, hub)
      guard let newest = try table.newest(name), newest.replacedAt == nil else { throw HubTemplateDraft.unknown }
      try table.end(newest, at: now)
    }
  }
}

extension RegistrationTable {
  private static let selectNewest = PreparedStatement(
    "SELECT \(HubTemplate.columns) FROM templates WHERE hub = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1")
  private static let lockNewest = PreparedStatement(
    """
    SELECT \(HubTemplate.columns) FROM templates WHERE hub = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1 FOR UPDATE
    """)
  private static let selectVersion = PreparedStatement(
    "SELECT \(HubTemplate.columns) FROM templates WHERE hub = ?1 AND name = ?2 AND version = ?3")
  private static let markEnded = PreparedStatement(
    """
    UPDATE templates SET removed_at = ?4 WHERE hub = ?1 AND name = ?2 AND version = ?3 AND removed_at IS NULL
    """)

  /// A version of the hub's template, or the newest one.
  func template(_ name: String, version: Int?) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    if let version {
      return try session.first(Self.selectVersion, [.hub(hub), .text(name), .int(version)], HubTemplate.init)
    }
    let newest = try session.first(Self.selectNewest, [.hub(hub), .text(name)], HubTemplate.init)
    return newest?.replacedAt == nil ? newest : nil
  }

  /// The newest version of a template, locked, which may have been removed.
  fileprivate func newest(_ name: String) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    return try session.first(Self.lockNewest, [.hub(hub), .text(name)], HubTemplate.init)
  }

  /// Marks a version as replaced or removed, unless it was removed before.
  fileprivate func end(_ template: HubTemplate, at now: UnixTime) throws {
    try session.run(Self.markEnded, [.hub(hub), .text(template.name), .int(template.version), .time(now)])
  }
}

extension HubTemplate {
  /// The columns that `init(_:)` reads.
  fileprivate static let columns = "name, version, default_locale, variants, created_at, removed_at"

  /// Throws `StoredRegistration.damaged`.
  fileprivate init(_ row: Row) throws {
    self.init(
      name: try row.text(0), version: try row.int(1), createdAt: try row.time(4), replacedAt: try row.optionalTime(5),
      defaultLocale: try row.text(2), variants: try HubTemplateDraft.variants(stored: row.text(3)))
  }
}
