package import GRDB

/// The tables of one component and their migrations, for both engines.
///
/// In PostgreSQL the version of each component is a row of the table `fanfare_versions`, and processes of this release
/// and the previous one may use the tables at the same time. A migration holds the lock on that row: of two processes
/// that start at once, the second finds everything done. There are no advisory locks, because not every
/// PostgreSQL-compatible engine has them. In SQLite `PRAGMA user_version` counts the steps, and one transaction takes
/// them. Builds before 0.2.0 had `fanfare_schema` instead; the first step fails at their tables, which have other
/// codes.
package struct SchemaMigration: Sendable {
  /// One step of a migration.
  package struct Step: Sendable, ExpressibleByStringInterpolation {
    let sqlite: String
    let postgreSQL: String

    /// Statements for both engines (see ``Dialect``), and then those for one.
    package init(_ common: String, sqlite: String = "", postgreSQL: String = "") {
      self.sqlite = Dialect.sqlite(tables: common) + sqlite
      self.postgreSQL = Dialect.postgreSQL(tables: common) + postgreSQL
    }

    package init(stringLiteral common: String) { self.init(common) }
  }

  /// The owner of the tables: `registry` or `ledger`.
  package let component: String
  /// Marks the component's SQLite file (`PRAGMA application_id`): four letters.
  package let applicationID: Int32
  /// The steps from an empty schema to the present one. Only append, and only what the previous release can work with:
  /// new tables, new columns that are nullable or have a default, and indexes.
  package let steps: [Step]
  /// The time limit for all steps together.
  package let timeout: Duration

  package init(component: String, applicationID: Int32 = 0, steps: [Step], timeout: Duration = .seconds(600)) {
    self.component = component
    self.applicationID = applicationID
    self.steps = steps
    self.timeout = timeout
  }

  private static let versionOf = PreparedStatement(
    "SELECT version FROM fanfare_versions WHERE component = $1 FOR UPDATE")
  private static let enter = PreparedStatement(
    "INSERT INTO fanfare_versions (component, version) VALUES ($1, 0) ON CONFLICT (component) DO NOTHING")
  private static let update = PreparedStatement("UPDATE fanfare_versions SET version = $2 WHERE component = $1")
  private static let tableExists = PreparedStatement("SELECT to_regclass('fanfare_versions') IS NOT NULL")

  /// What a database has of the schema.
  package struct State: Sendable {
    /// The number of steps that were taken; nil if there are no tables yet.
    package let version: Int?
    /// The statements that create the indexes which those steps created and which are missing.
    package let missingIndexes: [String]
  }

  private static let present = PreparedStatement("SELECT version FROM fanfare_versions WHERE component = $1")
  private static let indexes = PreparedStatement(
    """
    SELECT relname::text FROM pg_class
    WHERE relkind IN ('i', 'I') AND relnamespace = current_schema()::text::regnamespace
    """)

  /// Reads what the database has of the schema. Changes nothing.
  package func state(on connection: PostgreSQLConnection) throws -> State {
    guard try connection.query(Self.tableExists).bool(0, 0) else { return State(version: nil, missingIndexes: []) }
    let version = try connection.query(Self.present, [.text(component)])
    guard version.count > 0 else { return State(version: nil, missingIndexes: []) }
    let taken = Int(try version.integer(0, 0))
    let rows = try connection.query(Self.indexes)
    let names = Set(try (0..<rows.count).map { try rows.text($0, 0) })
    var missing: [(name: Substring, statement: Substring)] = []
    let changes = steps.prefix(taken).map(\.postgreSQL).joined(separator: "\n")
    for change in changes.matches(of: /(CREATE (?:UNIQUE )?|DROP )INDEX ([a-z_]+)[^;]*;/) {
      let (statement, verb, name) = change.output
      missing.removeAll { $0.name == name }
      if verb != "DROP ", !names.contains(String(name)) { missing.append((name, statement)) }
    }
    return State(
      version: taken,
      missingIndexes: missing.map { $0.statement.split(whereSeparator: \.isWhitespace).joined(separator: " ") })
  }

  /// Takes the missing steps. The schema of a later release is left as it is: by the rule for steps, this release can
  /// use it.
  package func apply(to pool: PostgreSQLPool) async throws {
    try await pool.transaction { connection in
      if !(try connection.query(Self.tableExists).bool(0, 0)) {
        do {
          try connection.execute(
            "CREATE TABLE IF NOT EXISTS fanfare_versions (component text PRIMARY KEY, version integer NOT NULL)")
        } catch let error as PostgreSQLError where ["23505", "42P07", "42710"].contains(error.sqlState ?? "") {
          // IF NOT EXISTS does not protect from two processes that create the table at the same time.
          throw StoreError.overtaken
        }
      }
    }
    try await pool.transaction { [component, steps, timeout] connection in
      try connection.query(Self.enter, [.text(component)])
      let version = Int(try connection.query(Self.versionOf, [.text(component)]).integer(0, 0))
      guard version < steps.count else { return }
      // in range: a constant
      try connection.execute("SET LOCAL statement_timeout = \(Int(timeout / .milliseconds(1)))")
      for step in steps[version...] { try connection.executeScript(step.postgreSQL, timeout: timeout) }
      try connection.query(Self.update, [.text(component), .int4(Int32(steps.count))])
    }
  }

  /// Takes the missing steps in one transaction that includes the check of the version. Throws `.unusable` when the
  /// file is another database or was made by a later release.
  package func apply(to db: Database) throws {
    try db.inTransaction(.immediate) {
      let version = try version(of: db)
      guard version < steps.count else { return .commit }
      for step in steps[version...] { try db.execute(sql: step.sqlite) }
      try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(steps.count)")
      return .commit
    }
  }

  /// The number of steps that a file has taken. Throws as `apply`.
  package func version(of db: Database) throws -> Int {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    let isEmpty = try GRDB.Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_master LIMIT 1") == nil
    guard application == applicationID || (application == 0 && version == 0 && isEmpty) else {
      throw StoreError(.unusable, "it is a database of another application")
    }
    guard version <= steps.count else {
      throw StoreError(.unusable, "it was made by a later release (schema \(version), this one knows \(steps.count))")
    }
    return version
  }
}
