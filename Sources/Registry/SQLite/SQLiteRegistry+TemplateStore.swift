package import FanfareCore
import GRDB

extension SQLiteRegistry: TemplateStore {
  package func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate {
    let draft = try HubTemplateDraft(name, defaultLocale: defaultLocale, variants: variants)
    return try await write(at: now) { db in
      let newest = try SQLiteRegistrationTable(db, hub).newest(name)
      let isListed = newest.map { $0.replacedAt == nil } ?? false
      if isListed, let newest, draft.isStored(in: newest) { return newest }
      if !isListed {
        let names = "SELECT count(*) FROM templates WHERE hub = ? AND removed_at IS NULL"
        let count = try Int.fetchOne(db.cachedStatement(sql: names), arguments: [hub.rawValue]) ?? 0
        guard count < HubTemplateDraft.maximumCount else { throw HubTemplateDraft.tooMany }
      }
      let next = draft.template(version: (newest?.version ?? 0) + 1, at: now)
      try db.cachedStatement(
        sql: """
          INSERT INTO templates (hub, name, version, default_locale, variants, created_at) VALUES (?, ?, ?, ?, ?, ?)
          """
      ).execute(
        arguments: [hub.rawValue, name, next.version, defaultLocale, draft.text, now.milliseconds])
      if let newest { try SQLiteRegistrationTable(db, hub).end(newest, at: now) }
      return next
    }
  }

  package func template(_ name: String, version: Int?, hub: HubName) async throws -> HubTemplate? {
    try await read { db in try SQLiteRegistrationTable(db, hub).template(name, version: version) }
  }

  package func templates(after name: String?, hub: HubName, limit: Int) async throws -> [HubTemplate] {
    try await read { db in
      let sql = """
        SELECT \(HubTemplate.columns) FROM templates AS t
        WHERE hub = ? AND name > ? AND removed_at IS NULL
          AND version = (SELECT max(version) FROM templates WHERE hub = t.hub AND name = t.name)
        ORDER BY name LIMIT ?
        """
      return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [hub.rawValue, name ?? "", max(1, limit)])
        .map(HubTemplate.init(sqlite:))
    }
  }

  package func remove(template name: String, hub: HubName, at now: UnixTime) async throws {
    try await write(at: now) { db in
      let table = SQLiteRegistrationTable(db, hub)
      guard let newest = try table.newest(name), newest.replacedAt == nil else { throw HubTemplateDraft.unknown }
      try table.end(newest, at: now)
    }
  }
}

extension SQLiteRegistrationTable {
  func template(_ name: String, version: Int?) throws -> HubTemplate? {
    guard name.isStorable else { return nil }
    guard let version else { return try newest(name).flatMap { $0.replacedAt == nil ? $0 : nil } }
    let sql = "SELECT \(HubTemplate.columns) FROM templates WHERE hub = ? AND name = ? AND version = ?"
    return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, name, version])
      .map(HubTemplate.init(sqlite:))
  }

  /// The newest version of a template, which may have been removed.
  fileprivate func newest(_ name: String) throws -> HubTemplate? {
    let sql = """
      SELECT \(HubTemplate.columns) FROM templates WHERE hub = ? AND name = ? ORDER BY version DESC LIMIT 1
      """
    return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [hub.rawValue, name])
      .map(HubTemplate.init(sqlite:))
  }

  /// Marks a version as replaced or removed, unless it was removed before.
  fileprivate func end(_ template: HubTemplate, at now: UnixTime) throws {
    let sql = """
      UPDATE templates SET removed_at = ? WHERE hub = ? AND name = ? AND version = ? AND removed_at IS NULL
      """
    try db.cachedStatement(sql: sql)
      .execute(arguments: [now.milliseconds, hub.rawValue, template.name, template.version])
  }
}

extension HubTemplate {
  fileprivate init(sqlite row: Row) throws {
    try self.init(
      name: row[0], version: row[1], createdAt: row[4], replacedAt: row[5], defaultLocale: row[2], stored: row[3])
  }
}
