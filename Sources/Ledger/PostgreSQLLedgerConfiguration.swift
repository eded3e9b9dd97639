package import PostgreSQL

/// Where a ledger in a PostgreSQL database is, and what is kept in it.
package struct PostgreSQLLedgerConfiguration: Sendable {
  /// How to reach the database. A ledger writes on three connections; readers take more.
  package var database: PostgreSQLConfiguration
  /// Each device's result is kept for sends to at most this many devices; counts always are.
  package var maximumDevices = 100
  /// How long a settled send can be looked up, and up to a day longer. Measured on the records' own times, so that a
  /// ledger rebuilt from an old log sees the same.
  package var retention: Duration = .seconds(30 * 86_400)
  /// How long making or dropping a day's partition waits for others to be done with the table; all who come later wait
  /// behind it. Then it is tried again another time.
  package var lockTimeout: Duration = .seconds(2)

  /// How many sends of a batch must be new, or of one day must end, for them to be entered or ended by a statement that
  /// can only do that. Fewer take a slower one that can do everything, and cost a round trip less.
  package var fewestAtOnce = 200

  /// The defaults, for a database.
  package init(database: PostgreSQLConfiguration) {
    self.database = database
  }
}
