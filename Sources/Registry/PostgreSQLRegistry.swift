package import FanfareCore
package import Logging
package import PostgreSQL
import Synchronization

/// Device registrations, secure payloads and claims in a PostgreSQL database, which any number of machines share.
///
/// Every change is one transaction, which locks what it is about to change in a fixed order: an installation's row,
/// then the handle's, then the registration's. So two that want the same handle come one after the other, and what the
/// first has decided still holds when it writes. Where the order cannot be kept the server sees the deadlock, and the
/// one that it gives up is begun anew.
package final class PostgreSQLRegistry: Sendable {
  private let pool: PostgreSQLPool
  private let tombstoneLifetime: Duration
  let logger: Logger
  /// When rows that nobody can see any more were last removed.
  private let lastPurge = Mutex<UnixTime?>(nil)
  private let hasTables = Atomic(false)
  /// What plans of audiences are made with.
  let tagWeights = TagWeights()

  /// Connects, and makes or migrates the tables. Throws `PostgreSQLError` when that is impossible; but where the
  /// database only cannot be reached now, and `waits` says that this is no reason to give up, every call begins with it
  /// until it has been done.
  package init(
    _ configuration: PostgreSQLConfiguration, tombstoneLifetime: Duration = .seconds(30 * 86_400), waits: Bool = false,
    logger: Logger
  ) async throws {
    pool = try PostgreSQLPool(configuration, logger: logger)
    self.tombstoneLifetime = tombstoneLifetime
    self.logger = logger
    do { try await makeTables() } catch let error as PostgreSQLError where waits && error.code == .unavailable {
      logger.warning("The registry waits for its database", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private func makeTables() async throws {
    guard !hasTables.load(ordering: .acquiring) else { return }
    try await PostgreSQLSchema.migration.apply(to: pool)
    hasTables.store(true, ordering: .releasing)
  }

  /// Why the registration is gone; nil when it is not, never was, or went too long ago to be remembered.
  package func tombstone(of id: RegistrationID, hub: HubName) async throws -> Tombstone? {
    try await read { connection in try PostgreSQLRegistrationTable(connection, hub).tombstone(of: id) }
  }

  /// Throws when the store cannot be read and written now: reads a row and commits a change.
  package func check() async throws {
    try await write { connection in
      try connection.query(Self.look)
      try connection.query(Self.touch)
    }
  }

  /// Closes the connections; every later call throws. Also happens when the last reference goes.
  package func close() {
    pool.close()
  }

  /// Runs a block that changes nothing, each statement on the latest commit.
  func read<Value: Sendable>(_ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value) async throws -> Value {
    do {
      try await makeTables()
      return try await pool.read(body)
    } catch { throw Self.registryError(error) }
  }

  /// Runs a block as one transaction that is durable when this returns. With `now` given it removes afterwards, once a
  /// minute, some of the rows that have expired.
  func write<Value: Sendable>(
    at now: UnixTime? = nil, _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    let value: Value
    do {
      try await makeTables()
      value = try await pool.transaction(body)
    } catch { throw Self.registryError(error) }
    if let now { await purgeIfDue(at: now) }
    return value
  }

  private static let look = PreparedStatement("SELECT hub FROM registrations LIMIT 1")
  private static let touch = PreparedStatement("UPDATE probe SET count = count + 1 WHERE id = 1")

  private func purgeIfDue(at now: UnixTime) async {
    let isDue = lastPurge.withLock { last in
      // A clock that was set back must not stop the purging until it has caught up.
      if let last, now >= last, now - last < Purge.interval { return false }
      last = now
      return true
    }
    guard isDue else { return }
    do {
      let oldest = now + (.zero - tombstoneLifetime)
      if try await pool.transaction({ try PostgreSQLPurge.run($0, at: now, forgettingTombstonesBefore: oldest) }) {
        lastPurge.withLock { $0 = nil }
      }
    } catch {
      // It only gives space back: the next one will.
      logger.debug("Expired rows of the registry stay for now", metadata: [LogKeys.error: "\(error)"])
    }
  }

  /// What went wrong, as a registry's error.
  private static func registryError(_ error: any Error) -> RegistryError {
    switch error {
    case let error as RegistryError: error
    case let error as PostgreSQLError:
      RegistryError(.unavailable, "the registry cannot be used now: \(error)", isOutcomeUnknown: error.isOutcomeUnknown)
    case is CancellationError: RegistryError(.unavailable, "the registry cannot be used now: the caller has gone")
    default: RegistryError(.unavailable, "the registry cannot be used now: \(type(of: error))")
    }
  }
}
