package import FanfareCore
package import Logging
package import PostgreSQL
package import RDKafka
import Synchronization

/// The ledger as tables of a PostgreSQL database, which any number of ledgers and readers share.
///
/// Each batch is one or two transactions of a handful of statements, whatever its size. All ledgers lock the sends of a
/// batch in the same order, so that hardly ever one waits for another that waits for it; totals are kept by several
/// rows and summed up when they are asked for, so that they do not wait for each other there either.
package final class PostgreSQLLedger: Sendable {
  private let configuration: PostgreSQLLedgerConfiguration
  private let pool: PostgreSQLPool
  private let clock: any WallClock
  private let logger: Logger
  private let hasTables = Mutex(false)
  private let days: DayPartitions
  private let writer: PostgreSQLBatchWriter

  /// Checks the configuration. Connects when it is first used, and makes or migrates the tables when it is to write.
  /// Throws `PostgreSQLError` with `configuration`.
  package init(
    _ configuration: PostgreSQLLedgerConfiguration, clock: any WallClock = SystemWallClock(), logger: Logger
  ) throws(PostgreSQLError) {
    self.configuration = configuration
    self.clock = clock
    self.logger = logger
    var database = configuration.database
    // Every statement goes by a key. Plans are made before a day's table has grown, and must not rest on its being
    // small; nor are they to be made anew for every batch.
    let planning = [
      "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
      "plan_cache_mode": "force_generic_plan",
    ]
    database.settings.merge(planning) { own, _ in own }
    pool = try PostgreSQLPool(database, logger: logger)
    days = DayPartitions(pool: pool, retention: configuration.retention, lockTimeout: configuration.lockTimeout)
    writer = PostgreSQLBatchWriter(
      pool: pool, maximumDevices: configuration.maximumDevices, fewest: configuration.fewestAtOnce)
  }

  /// Closes the connections; every later call throws. Also happens when the last reference goes.
  package func close() {
    pool.close()
  }

  private func read<Value: Sendable>(_ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value) async throws
    -> Value
  {
    do { return try await pool.read(body) } catch { throw Self.ledgerError(error) }
  }

  private func makeTables() async throws {
    guard !hasTables.withLock({ $0 }) else { return }
    try await LedgerTables.migration.apply(to: pool)
    hasTables.withLock { $0 = true }
  }

  /// What went wrong, as a ledger's error.
  private static func ledgerError(_ error: any Error) -> LedgerError {
    switch error {
    case let error as LedgerError: error
    case let error as PostgreSQLError where error.sqlState == "42P01":
      LedgerError(.notThere, "the ledger's tables are not there yet")
    case let error as PostgreSQLError where error.code == .configuration || error.code == .programming:
      LedgerError(.unusableDatabase, "the ledger's database cannot be used: \(error)")
    default:
      LedgerError(
        .unavailable, "the ledger cannot be used now: \(error is PostgreSQLError ? "\(error)" : "\(type(of: error))")")
    }
  }
}

extension PostgreSQLLedger: LedgerStorage {
  package var maximumDevices: Int { configuration.maximumDevices }
  package var writesAtOnce: Int { 3 }

  package func write(_ batch: LedgerBatch) async throws -> Int {
    let plan = BatchPlan(batch)
    do {
      try await makeTables()
      let now = clock.now()
      if try await days.prepare(for: plan, at: now) {
        logger.warning(
          "A day of the ledger has no partition yet, as somebody reads its table; its sends are kept with the rest")
      }
      return try await writer.write(plan, at: now)
    } catch {
      throw Self.ledgerError(error)
    }
  }

  package func retire() async {
    do { try await days.retire() } catch is CancellationError {} catch {
      logger.warning("Old sends stay in the ledger for now", metadata: [LogKeys.error: "\(Self.ledgerError(error))"])
    }
  }

  package func reach(_ positions: [TopicPartition: Int64]) async throws {
    do {
      try await makeTables()
      try await writer.reach(positions)
    } catch { throw Self.ledgerError(error) }
  }

  package func positions() async throws -> [TopicPartition: Int64] {
    do { try await makeTables() } catch { throw Self.ledgerError(error) }
    return try await read { try PostgreSQLLookup($0).positions() }
  }

  package func totals(hub: HubName) async throws -> LedgerTotals {
    try await read { try PostgreSQLLookup($0).totals(hub: hub) }
  }

  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await read { try PostgreSQLLookup($0).report(of: send, hub: hub) }
  }

  package func list(_ query: SendQuery) async throws -> SendPage {
    try await read { try PostgreSQLListing($0, query).page() }
  }

  package func check() async throws {
    try await read { try PostgreSQLLookup($0).check() }
  }
}
