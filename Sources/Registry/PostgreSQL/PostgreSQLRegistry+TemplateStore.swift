package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: TemplateStore {
  private static let count = PreparedStatement("SELECT count(*) FROM templates WHERE hub = $1 AND removed_at IS NULL")
  private static let insert = PreparedStatement(
    """
    INSERT INTO templates (hub, name, version, default_locale, variants, created_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (hub, name, version) DO NOTHING
    """)
  private static let list = PreparedStatement(
    """
    SELECT \(HubTemplate.columns) FROM templates AS t
    WHERE hub = $1 AND name > $2 AND removed_at IS NULL
      AND version = (SELECT max(version) FROM templates WHERE hub = t.hub AND name = t.name)
    ORDER BY name LIMIT $3
    """)

  package func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate {
    let draft = try HubTemplateDraft(name, defaultLocale: defaultLocale, variants: variants)
    return try await write(at: now) { connection in
      let newest = try PostgreSQLRegistrationTable(connection, hub).newest(name)
      let isListed = newest.map { $0.replacedAt == nil } ?? false
      if isListed, let newest, draft.isStored(in: newest) { return newest }
      if !isListed {
        let names = try connection.query(Self.count, [.text(hub.rawValue)])
        guard try names.integer(0, 0) < HubTemplateDraft.maximumCount else { throw HubTemplateDraft.tooMany }
      }
      let next = draft.template(version: (newest?.version ?? 0) + 1, at: now)
      let inserted = try connection.query(
        Self.insert,
        [
          .text(hub.rawValue), .text(name), .int8(Int64(next.version)), .text(defaultLocale), .text(draft.text),
          .time(now),
        ])
      guard inserted.affected == 1 else { throw PostgreSQLError.overtaken }
      if let newest { try PostgreSQLRegistrationTable(connection, hub).end(newest, at: now) }
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
      let table = PostgreSQLRegistrationTable(connection, hub)
      guard let newest = try table.newest(name), newest.replacedAt == nil else { throw HubTemplateDraft.unknown }
      try table.end(newest, at: now)
    }
  }
}

extension PostgreSQLRegistrationTable {
  private static let markEnded = PreparedStatement(
    """
    UPDATE templates SET removed_at = $4 WHERE hub = $1 AND name = $2 AND version = $3 AND removed_at IS NULL
    """)
  private static let selectNewest = PreparedStatement(
    """
    SELECT \(HubTemplate.columns) FROM templates WHERE hub = $1 AND name = $2
    ORDER BY version DESC LIMIT 1 FOR UPDATE
    """)
  private static let selectNewestUnlocked = PreparedStatement(
    """
    SELECT \(HubTemplate.columns) FROM templates WHERE hub = $1 AND name = $2
    ORDER BY version DESC LIMIT 1
    """)
  private static let selectVersion = PreparedStatement(
    "SELECT \(HubTemplate.columns) FROM templates WHERE hub = $1 AND name = $2 AND version = $3")

  func template(_ name: String, version: Int?) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    if let version {
      let rows = try connection.query(
        Self.selectVersion, [.text(hub.rawValue), .text(name), .int8(Int64(version))])
      return rows.count == 0 ? nil : try HubTemplate(rows, 0)
    }
    let rows = try connection.query(Self.selectNewestUnlocked, [.text(hub.rawValue), .text(name)])
    guard rows.count > 0, case let newest = try HubTemplate(rows, 0), newest.replacedAt == nil else { return nil }
    return newest
  }

  /// The newest version of a template, locked, which may have been removed.
  fileprivate func newest(_ name: String) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    let rows = try connection.query(Self.selectNewest, [.text(hub.rawValue), .text(name)])
    return rows.count == 0 ? nil : try HubTemplate(rows, 0)
  }

  /// Marks a version as replaced or removed, unless it was removed before.
  fileprivate func end(_ template: HubTemplate, at now: UnixTime) throws {
    try connection.query(
      Self.markEnded,
      [.text(hub.rawValue), .text(template.name), .int8(Int64(template.version)), .time(now)])
  }
}

extension HubTemplate {
  fileprivate init(_ rows: ResultRows, _ row: Int) throws {
    try self.init(
      name: try rows.text(row, 0), version: Int(try rows.integer(row, 1)), createdAt: try rows.integer(row, 4),
      replacedAt: try rows.optionalInteger(row, 5), defaultLocale: try rows.text(row, 2),
      stored: try rows.text(row, 3))
  }
}
