import FanfareCore
import GRDB
package import Logging
import Synchronization

/// A database with tables of one component: a SQLite file, or a PostgreSQL database that any number of machines share.
///
/// A block runs on a thread that may block, outside the event loops and the cooperative pool: for SQLite on the queue
/// of a connection, for PostgreSQL on the thread of one. Statements are written once; see ``Dialect``.
package final class Store: Sendable {
  private enum Engine {
    case sqlite(SQLiteFile)
    case postgreSQL(PostgreSQLPool)
  }

  /// How often a transaction is run again that others overtook.
  static let maximumRepetitions = 10

  private let engine: Engine
  private let reads: ReadGate
  private let migration: SchemaMigration
  private let isMigrated: Atomic<Bool>
  private let readsMigrate: Bool

  /// Opens a file and creates or migrates its tables. Blocks for up to about twice the busy timeout: call it before
  /// serving starts. `name` is that of the store in messages, such as `the registry`.
  package init(_ configuration: SQLiteConfiguration, name: String, _ migration: SchemaMigration) throws {
    engine = .sqlite(try SQLiteFile(configuration, name: name, migration))
    // GRDB's pool lets reads wait without a limit, and without noticing that their task was cancelled.
    reads = ReadGate(name, slots: max(1, configuration.readerCount), patience: configuration.busyTimeout)
    self.migration = migration
    isMigrated = Atomic(true)
    readsMigrate = false
  }

  /// A database, whose tables the first call creates or migrates; without `readsMigrate` the first that is no read.
  /// Throws only when the configuration is wrong.
  package init(
    _ configuration: PostgreSQLConfiguration, name: String, _ migration: SchemaMigration, readsMigrate: Bool = true,
    logger: Logger
  ) throws(PostgreSQLError) {
    engine = .postgreSQL(try PostgreSQLPool(configuration, logger: logger))
    // The pool's own queue knows no callers.
    reads = ReadGate(
      name, slots: configuration.maximumConnections, waiting: configuration.maximumWaiting,
      patience: configuration.waitLimit)
    self.migration = migration
    isMigrated = Atomic(false)
    self.readsMigrate = readsMigrate
  }

  /// Whether changes are made one after another, so that a purge may share their transaction.
  package var hasOneWriter: Bool {
    if case .sqlite = engine { true } else { false }
  }

  /// Creates or migrates the tables, unless that is done.
  package func migrate() async throws {
    guard case .postgreSQL(let pool) = engine, !isMigrated.load(ordering: .acquiring) else { return }
    try await migration.apply(to: pool)
    isMigrated.store(true, ordering: .releasing)
  }

  /// Runs a block that only reads: in SQLite on one snapshot, in PostgreSQL each statement on the latest commit. A
  /// cancelled task stops waiting for its turn. PostgreSQL runs it again when the connection breaks.
  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    switch engine {
    case .sqlite(let file): return try await reads.run { try await file.read(body) }
    case .postgreSQL(let pool):
      if readsMigrate { try await migrate() }
      return try await reads.run { try await pool.read { try body(Session(.postgreSQL($0))) } }
    }
  }

  /// Runs a block as one transaction. It is durable when this returns and rolled back when this throws, unless the
  /// outcome is unknown; see ``isOutcomeUnknown(_:)``.
  ///
  /// The block may run several times, and so must have no effects outside the store: after `StoreError.overtaken`, and
  /// in PostgreSQL after a serialization failure, a deadlock or a broken connection.
  package func write<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    switch engine {
    case .sqlite(let file): return try await file.write(commits: true, body)
    case .postgreSQL: return try await transaction { try body(Session(.postgreSQL($0))) }
    }
  }

  /// Runs a block as one transaction like `write`, for what only PostgreSQL has. Throws for a file.
  package func transaction<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    guard case .postgreSQL(let pool) = engine else { throw StoreError(.unusable, "the store is a file") }
    try await migrate()
    return try await pool.transaction(body)
  }

  /// Throws when the store does not take changes. Writes nothing; a full disk of a database shows only in a write.
  package func check() async throws {
    switch engine {
    case .sqlite(let file): try await file.check()
    case .postgreSQL:
      let mode = try await read { try $0.first(Self.mode) { try $0.text(0) } }
      guard mode == "off" else { throw StoreError(.readOnly, "the database is read-only") }
    }
  }

  /// Closes the store; every later call throws. Releasing the last reference also closes it.
  package func close() {
    switch engine {
    case .sqlite(let file): file.close()
    case .postgreSQL(let pool): pool.close()
    }
  }

  private static let mode = PreparedStatement("SELECT current_setting('transaction_read_only')")

  /// The reason of an error without stored values: SQLite's own message and the arguments may contain some, its code
  /// does not.
  package static func reason(of error: any Error) -> String {
    switch error {
    case let error as DatabaseError: "SQLite error \(error.extendedResultCode)"
    case let error as PostgreSQLError: "\(error)"
    case let error as StoreError: error.message
    case let error as TooManyReads: error.description
    case is CancellationError: "the call was cancelled"
    default: "\(type(of: error))"
    }
  }

  /// Whether the change of the failed call may have been made.
  package static func isOutcomeUnknown(_ error: any Error) -> Bool {
    (error as? PostgreSQLError)?.isOutcomeUnknown ?? false
  }

  /// Whether the error means that a file is no database or is damaged.
  package static func isDamage(_ error: any Error) -> Bool {
    switch (error as? DatabaseError)?.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT: true
    default: false
    }
  }

  /// Whether an error of opening a file is permanent.
  package static func isFinal(_ error: any Error) -> Bool {
    switch (error as? DatabaseError)?.resultCode {
    case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: true
    default: isDamage(error) || (error as? StoreError)?.code == .unusable
    }
  }
}
