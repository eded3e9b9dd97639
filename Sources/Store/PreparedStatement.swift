import Synchronization

/// A statement that each connection prepares once, at its first use.
///
/// Hold it in a static constant: connections never forget a prepared statement.
package struct PreparedStatement: Sendable {
  /// The text as PostgreSQL reads it. The ``Parameter`` values of the first use fix the types of the parameters.
  package let sql: String
  /// The text as SQLite reads it.
  package let sqlite: String
  /// Unique in the process; names the statement at the server.
  let number: Int

  private static let counter = Atomic(0)

  /// A statement for both engines, with parameters `?1`, `?2` …; see ``Dialect``. One for PostgreSQL alone may have
  /// `$1`, `$2` ….
  package init(_ sql: String) { self.init(sqlite: Dialect.sqlite(sql), postgreSQL: sql) }

  /// A statement that has no common form.
  package init(sqlite: String, postgreSQL: String) {
    self.sqlite = sqlite
    sql = Dialect.postgreSQL(postgreSQL)
    number = Self.counter.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
