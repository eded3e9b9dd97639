import FanfareCore
package import Ledger
import LocalFile
package import Logging
package import PostgreSQL

/// The ledger's store: a local SQLite file, or a PostgreSQL database that several ledgers share.
///
/// - `ledger.path` (text, default `fanfare-ledger.sqlite`): the file, used if `ledger.postgres.url` is absent.
/// - `ledger.postgres.*`: the database; see `PostgreSQLConfiguration`. `maximumConnections` is 4 by default, and at
///   least 2: one of them drops old days while another writes sends.
/// - `ledger.retentionDays` (1…3650, default 30): the time for which a settled send can be looked up.
/// - `ledger.devicesKept` (0…100000, default 100): the most devices of a send whose outcomes are kept one by one; of a
///   larger send only the counts are kept.
package struct LedgerSettings: Sendable {
  /// The file, used if there is no database.
  let store: LedgerStoreConfiguration
  /// The database; nil to use the file.
  let postgreSQL: PostgreSQLLedgerConfiguration?

  init(from reader: SettingsReader) throws(SettingsError) {
    var store = LedgerStoreConfiguration(path: try reader.string("ledger.path", default: "fanfare-ledger.sqlite"))
    store.retention = .seconds(86_400 * (try reader.int("ledger.retentionDays", default: 30, in: 1...3650)))
    store.maximumDevices = try reader.int("ledger.devicesKept", default: store.maximumDevices, in: 0...100_000)
    self.store = store
    var postgreSQL = try PostgreSQLConfiguration("ledger.postgres", connections: 4, fewest: 2, from: reader)
      .map(PostgreSQLLedgerConfiguration.init(database:))
    postgreSQL?.retention = store.retention
    postgreSQL?.maximumDevices = store.maximumDevices
    self.postgreSQL = postgreSQL
  }

  /// The file's path; nil if there is a database.
  package var file: String? { postgreSQL == nil ? store.path : nil }
  /// The database; nil if there is a file.
  package var database: PostgreSQLConfiguration? { postgreSQL?.database }

  /// Opens the store that the ledger writes.
  ///
  /// Throws when the file is unusable. Connects to a database on first use.
  func open(clock: any WallClock, logger: Logger) throws -> any LedgerStorage {
    if let database = try database(role: "ledger", clock: clock, logger: logger) { return database }
    LocalFile.warnIfExposed(store.path, logger: logger)
    return try LedgerStore(store, clock: clock)
  }

  /// The history that the front end reads. The store need not exist yet.
  func history(logger: Logger) throws -> any SendHistory {
    try database(role: "api", clock: SystemWallClock(), logger: logger) ?? LedgerReader(store)
  }

  /// The acknowledged problems of the audit, in the same store. The store need not exist yet.
  package func acknowledgements(logger: Logger) throws -> any AcknowledgementStore {
    try database(role: "audit", clock: SystemWallClock(), logger: logger) ?? SQLiteAcknowledgements(store)
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
