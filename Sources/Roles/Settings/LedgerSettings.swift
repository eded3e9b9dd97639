import FanfareCore
package import Ledger
package import Logging
import SettingsTable
package import Store

/// The ledger's store: a local SQLite file, or a PostgreSQL database that several ledgers share.
package struct LedgerSettings: Sendable {
  /// The file, used if there is no database.
  private(set) var store = Self.standard
  /// The database; nil to use the file.
  let postgreSQL: PostgreSQLLedgerConfiguration?

  struct Keys: Sendable {
    @Setting(standard, \.path, "written by the ledger, read by the api on this machine") var path
    @Setting(standard, \.retention, days: 1...3650, "how long a settled send can be looked up") var retentionDays
  }

  private static let standard = SQLiteLedgerConfiguration(path: "fanfare-ledger.sqlite")
  static let keys = SettingsSection(
    "ledger", Keys(),
    // A send to more devices is nearly always a broadcast, whose outcomes are read as counts.
    retired: ["devicesKept": "for a send to more than 100 devices only the counts are kept"])
  // One connection drops old days while another writes sends.
  static let databaseKeys = DatabaseKeys.section("ledger.postgres", connections: 4, fewest: 2)

  init(from reader: SettingsReader) throws(SettingsError) {
    try reader.read(Self.keys, into: &store)
    var postgreSQL = try PostgreSQLConfiguration(Self.databaseKeys, from: reader)
      .map(PostgreSQLLedgerConfiguration.init(database:))
    postgreSQL?.retention = store.retention
    self.postgreSQL = postgreSQL
  }

  /// The file's path; nil if there is a database.
  package var file: String? { postgreSQL == nil ? store.path : nil }
  /// The database; nil if there is a file.
  package var database: PostgreSQLConfiguration? { postgreSQL?.database }

  /// Opens the store that the ledger writes.
  ///
  /// Throws when the file is unusable. Connects to a database on first use.
  func open(clock: any WallClock, logger: Logger) throws -> any LedgerStore {
    if let database = try database(role: "ledger", clock: clock, logger: logger) { return database }
    LocalFile.warnIfExposed(store.path, logger: logger)
    return try SQLiteLedger(store, clock: clock)
  }

  /// The history that the front end reads. The store need not exist yet.
  func history(logger: Logger) throws -> any SendHistory {
    try database(role: "api", clock: SystemWallClock(), logger: logger) ?? SQLiteLedgerReader(store)
  }

  /// The acknowledged problems of the audit, in the same store. The store need not exist yet.
  package func acknowledgements(logger: Logger) throws -> any AcknowledgementStore {
    try database(role: "audit", clock: SystemWallClock(), logger: logger) ?? SQLiteLedgerReader(store)
  }

  private func database(role: String, clock: any WallClock, logger: Logger) throws -> PostgreSQLLedger? {
    guard var postgreSQL else { return nil }
    postgreSQL.database.applicationName = "fanfare-\(role)"
    return try PostgreSQLLedger(postgreSQL, clock: clock, logger: logger)
  }
}

extension LocalFile {
  /// Warns about a database's file that other users may read. New files are made for their owner alone.
  static func warnIfExposed(_ path: String, logger: Logger) {
    guard isReadableByOthers(at: path) else { return }
    logger.warning(
      "Database file can be read by other users; take the permission away (chmod 600)",
      metadata: [LogKeys.file: "\(path)"])
  }
}
