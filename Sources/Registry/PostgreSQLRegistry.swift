package import FanfareCore
package import Logging
package import PostgreSQL
import Synchronization

/// The registry in a PostgreSQL database, which any number of machines share.
///
/// Every change is one transaction that locks its rows in a fixed order: the installation, the handle, the
/// registration. So two claims of the same handle are serialised, and the decision of each is still valid when it
/// writes. Where the order cannot be kept, the server detects the deadlock and the cancelled transaction is retried.
package final class PostgreSQLRegistry: Sendable {
  private let pool: PostgreSQLPool
  private let reads: ReadGate
  private let purges: PurgeSchedule
  let limits: RegistrationLimits
  let logger: Logger
  private let isMigrated = Atomic(false)
  let tagWeights = TagWeights()
  let templates = TemplateCache()

  /// Connects and creates or migrates the tables. Throws `PostgreSQLError`, except when the database is unavailable and
  /// `waits` is set: then the first call that reaches the database migrates it.
  package init(
    _ configuration: PostgreSQLConfiguration, tombstoneLifetime: Duration = .seconds(30 * 86_400),
    limits: RegistrationLimits = RegistrationLimits(), waits: Bool = false, logger: Logger
  ) async throws {
    pool = try PostgreSQLPool(configuration, logger: logger)
    // The pool's own queue knows no callers.
    reads = ReadGate(
      "the registry", slots: configuration.maximumConnections, waiting: configuration.maximumWaiting,
      patience: configuration.waitLimit)
    purges = PurgeSchedule(tombstoneLifetime: tombstoneLifetime)
    self.limits = limits
    self.logger = logger
    do { try await migrateOnce() } catch let error as PostgreSQLError where waits && error.code == .unavailable {
      logger.warning("Waiting for the database of the registry", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private func migrateOnce() async throws {
    guard !isMigrated.load(ordering: .acquiring) else { return }
    try await PostgreSQLSchema.migration.apply(to: pool)
    isMigrated.store(true, ordering: .releasing)
  }

  /// The tombstone of the registration; nil when it exists, never did, or its tombstone has expired.
  package func tombstone(of id: RegistrationID, hub: HubName) async throws -> Tombstone? {
    try await read { connection in try PostgreSQLRegistrationTable(connection, hub).tombstone(of: id) }
  }

  /// Throws when the store cannot be read, or does not take changes: a standby, or a database that is read-only.
  ///
  /// Writes nothing. A full disk shows only in a write: the server then ends or refuses the front end's own changes.
  package func check() async throws {
    try await read { connection in
      try connection.query(Self.readProbe)
      guard try connection.query(Self.modeProbe).text(0, 0) == "off" else {
        throw RegistryError(.unavailable, "the registry is unavailable: the database is read-only")
      }
    }
  }

  /// Closes the connections; every later call throws. Releasing the last reference also closes them.
  package func close() {
    pool.close()
  }

  /// Runs a block that only reads, each statement on the latest commit.
  func read<Value: Sendable>(_ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value) async throws -> Value {
    do {
      try await migrateOnce()
      return try await reads.run { try await pool.read(body) }
    } catch { throw Self.registryError(error) }
  }

  /// Runs a block as one transaction, durable when this returns. With `now` given it then purges some expired rows once
  /// a minute.
  func write<Value: Sendable>(
    at now: UnixTime? = nil, _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    let value: Value
    do {
      try await migrateOnce()
      value = try await pool.transaction(body)
    } catch { throw Self.registryError(error) }
    if let now { await purgeIfDue(at: now) }
    return value
  }

  private static let readProbe = PreparedStatement("SELECT hub FROM registrations LIMIT 1")
  private static let modeProbe = PreparedStatement("SELECT current_setting('transaction_read_only')")

  private func purgeIfDue(at now: UnixTime) async {
    guard purges.begin(at: now) else { return }
    do {
      purges.finish(removed: try await pool.transaction { [purges] in try PostgreSQLPurge.run($0, purges, at: now) })
    } catch {
      // It only frees space: the next purge will.
      logger.debug("Expired rows could not be removed", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private static func registryError(_ error: any Error) -> any Error {
    func unavailable(_ reason: String, isOutcomeUnknown: Bool = false) -> RegistryError {
      RegistryError(.unavailable, "the registry is unavailable: \(reason)", isOutcomeUnknown: isOutcomeUnknown)
    }
    return switch error {
    case let error as RegistryError: error
    case let error as TooManyReads where error.hasCaller: error
    case let error as TooManyReads: unavailable(error.description)
    case let error as PostgreSQLError: unavailable("\(error)", isOutcomeUnknown: error.isOutcomeUnknown)
    case is CancellationError: unavailable("the call was cancelled")
    default: unavailable("\(type(of: error))")
    }
  }
}
