/// Migrates the tables of one component while processes of this release and the previous one use them.
///
/// The version of each component is a row of the table `fanfare_schema`. A migration holds the lock on that row: of two
/// processes that start at once, the second finds everything done. There are no advisory locks, because not every
/// PostgreSQL-compatible engine has them.
package struct SchemaMigration: Sendable {
  /// The owner of the tables: `registry` or `ledger`.
  package let component: String
  /// The steps from an empty schema to the present one. Only append, and only what the previous release can work with:
  /// new tables, new columns that are nullable or have a default, and indexes.
  package let steps: [String]
  /// The time limit for all steps together.
  package let timeout: Duration

  package init(component: String, steps: [String], timeout: Duration = .seconds(600)) {
    self.component = component
    self.steps = steps
    self.timeout = timeout
  }

  private static let versionOf = PreparedStatement("SELECT version FROM fanfare_schema WHERE component = $1 FOR UPDATE")
  private static let enter = PreparedStatement(
    "INSERT INTO fanfare_schema (component, version) VALUES ($1, 0) ON CONFLICT (component) DO NOTHING")
  private static let update = PreparedStatement("UPDATE fanfare_schema SET version = $2 WHERE component = $1")
  private static let tableExists = PreparedStatement("SELECT to_regclass('fanfare_schema') IS NOT NULL")

  /// Takes the missing steps. The schema of a later release is left as it is: by the rule for steps, this release can
  /// use it.
  package func apply(to pool: PostgreSQLPool) async throws {
    try await pool.transaction { connection in
      if !(try connection.query(Self.tableExists).bool(0, 0)) {
        do {
          try connection.execute(
            "CREATE TABLE IF NOT EXISTS fanfare_schema (component text PRIMARY KEY, version integer NOT NULL)")
        } catch let error as PostgreSQLError where ["23505", "42P07", "42710"].contains(error.sqlState ?? "") {
          // IF NOT EXISTS does not protect from two processes that create the table at the same time.
          throw PostgreSQLError.overtaken
        }
      }
    }
    try await pool.transaction { [component, steps, timeout] connection in
      try connection.query(Self.enter, [.text(component)])
      let version = Int(try connection.query(Self.versionOf, [.text(component)]).integer(0, 0))
      guard version < steps.count else { return }
      try connection.execute("SET LOCAL statement_timeout = \(Int(timeout / .milliseconds(1)))")
      for step in steps[version...] { try connection.executeScript(step, timeout: timeout) }
      try connection.query(Self.update, [.text(component), .int4(Int32(steps.count))])
    }
  }
}
