/// Brings the tables of one part of the product up to date, while processes of this and of the previous release use
/// them.
///
/// Each part's version is a row in the table `fanfare_schema`, and who migrates holds the lock on it: of two processes
/// that start at once the second finds everything done. Only what every PostgreSQL-compatible engine has is used, so
/// there are no advisory locks.
package struct SchemaMigration: Sendable {
  /// Whose tables they are: `registry`, `ledger`.
  package let component: String
  /// The steps from nothing to the present schema. Only ever appended to, and each must let the previous release go on
  /// working: it adds tables, columns that may be null or have a default, and indexes.
  package let steps: [String]
  /// The longest that all steps together may take.
  package let timeout: Duration

  /// A part's steps.
  package init(component: String, steps: [String], timeout: Duration = .seconds(600)) {
    self.component = component
    self.steps = steps
    self.timeout = timeout
  }

  private static let versionOf = PreparedStatement("SELECT version FROM fanfare_schema WHERE component = $1 FOR UPDATE")
  private static let enter = PreparedStatement(
    "INSERT INTO fanfare_schema (component, version) VALUES ($1, 0) ON CONFLICT (component) DO NOTHING")
  private static let update = PreparedStatement("UPDATE fanfare_schema SET version = $2 WHERE component = $1")
  private static let isThere = PreparedStatement("SELECT to_regclass('fanfare_schema') IS NOT NULL")

  /// Takes the steps that have not been taken. A schema of a later release is left alone: by the rule for steps this
  /// release can use it.
  package func apply(to pool: PostgreSQLPool) async throws {
    try await pool.transaction { connection in
      if !(try connection.query(Self.isThere).bool(0, 0)) {
        do {
          try connection.execute(
            "CREATE TABLE IF NOT EXISTS fanfare_schema (component text PRIMARY KEY, version integer NOT NULL)")
        } catch let error as PostgreSQLError where ["23505", "42P07", "42710"].contains(error.sqlState ?? "") {
          // IF NOT EXISTS looks before it creates, and two may look at once.
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
