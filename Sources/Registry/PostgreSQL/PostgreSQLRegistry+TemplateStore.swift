package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: TemplateStore {
  private static let count = PreparedStatement("SELECT count(DISTINCT name) FROM templates WHERE hub = $1")
  private static let insert = PreparedStatement(
    """
    INSERT INTO templates (hub, name, version, default_locale, variants, created_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (hub, name, version) DO NOTHING
    """)
  private static let list = PreparedStatement(
    """
    SELECT \(HubTemplate.postgreSQLColumns) FROM templates AS t
    WHERE hub = $1 AND name > $2 AND removed_at IS NULL
      AND version = (SELECT max(version) FROM templates WHERE hub = t.hub AND name = t.name)
    ORDER BY name LIMIT $3
    """)
  private static let markRemoved = PreparedStatement(
    "UPDATE templates SET removed_at = $4 WHERE hub = $1 AND name = $2 AND version = $3")

  package func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate {
    let draft = try HubTemplateDraft(name, defaultLocale: defaultLocale, variants: variants)
    return try await write(at: now) { connection in
      let newest = try PostgreSQLRegistrationTable(connection, hub).newest(name)
      if let newest, !newest.isRemoved, draft.isStored(in: newest.template) { return newest.template }
      if newest == nil {
        let names = try connection.query(Self.count, [.text(hub.rawValue)])
        guard try names.integer(0, 0) < HubTemplateDraft.maximumCount else { throw HubTemplateDraft.tooMany }
      }
      let next = draft.template(version: (newest?.template.version ?? 0) + 1, at: now)
      let inserted = try connection.query(
        Self.insert,
        [
          .text(hub.rawValue), .text(name), .int8(Int64(next.version)), .text(defaultLocale), .text(draft.text),
          .time(now),
        ])
      guard inserted.affected == 1 else { throw PostgreSQLError.overtaken }
      return next
    }
  }

  package func template(_ name: String, version: Int?, hub: HubName) async throws -> HubTemplate? {
    try await read { try PostgreSQLRegistrationTable($0, hub).template(name, version: version) }
  }

  package func templates(after name: String?, hub: HubName, limit: Int) async throws -> [HubTemplate] {
    try await read { connection in
      let rows = try connection.query(
        Self.list, [.text(hub.rawValue), .text(name ?? ""), .int8(Int64(max(1, min(limit, 1_000_000))))])
      return try (0..<rows.count).map { try HubTemplate(rows, $0) }
    }
  }

  package func remove(template name: String, hub: HubName, at now: UnixTime) async throws {
    try await write(at: now) { connection in
      guard let newest = try PostgreSQLRegistrationTable(connection, hub).newest(name), !newest.isRemoved else {
        throw HubTemplateDraft.unknown
      }
      try connection.query(
        Self.markRemoved,
        [.text(hub.rawValue), .text(name), .int8(Int64(newest.template.version)), .time(now)])
    }
  }
}

extension PostgreSQLRegistrationTable {
  private static let selectNewest = PreparedStatement(
    """
    SELECT \(HubTemplate.postgreSQLColumns), removed_at IS NOT NULL FROM templates WHERE hub = $1 AND name = $2
    ORDER BY version DESC LIMIT 1 FOR UPDATE
    """)
  private static let selectNewestUnlocked = PreparedStatement(
    """
    SELECT \(HubTemplate.postgreSQLColumns), removed_at IS NOT NULL FROM templates WHERE hub = $1 AND name = $2
    ORDER BY version DESC LIMIT 1
    """)
  private static let selectVersion = PreparedStatement(
    "SELECT \(HubTemplate.postgreSQLColumns) FROM templates WHERE hub = $1 AND name = $2 AND version = $3")

  func template(_ name: String, version: Int?) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    if let version {
      let rows = try connection.query(
        Self.selectVersion, [.text(hub.rawValue), .text(name), .int8(Int64(version))])
      return rows.count == 0 ? nil : try HubTemplate(rows, 0)
    }
    let rows = try connection.query(Self.selectNewestUnlocked, [.text(hub.rawValue), .text(name)])
    return try rows.count == 0 || rows.bool(0, 5) ? nil : HubTemplate(rows, 0)
  }

  /// The newest version of a template, locked, and whether it was removed.
  fileprivate func newest(_ name: String) throws -> (template: HubTemplate, isRemoved: Bool)? {
    guard name.isStorable else { return nil }
    let rows = try connection.query(Self.selectNewest, [.text(hub.rawValue), .text(name)])
    return rows.count == 0 ? nil : (try HubTemplate(rows, 0), try rows.bool(0, 5))
  }
}

extension HubTemplate {
  fileprivate static let postgreSQLColumns = "name, version, default_locale, variants, created_at"

  fileprivate init(_ rows: ResultRows, _ row: Int) throws {
    try self.init(
      name: try rows.text(row, 0), version: Int(try rows.integer(row, 1)),
      createdAt: UnixTime(milliseconds: try rows.integer(row, 4)), defaultLocale: try rows.text(row, 2),
      stored: try rows.text(row, 3))
  }
}
