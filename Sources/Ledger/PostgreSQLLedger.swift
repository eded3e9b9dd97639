package import FanfareCore
package import Logging
package import RDKafka
package import Store

/// A ledger in a PostgreSQL database, shared by any number of ledgers and readers.
///
/// A batch of any size takes one or two transactions of a few statements. All ledgers lock the sends of a batch in the
/// same order, so that deadlocks are rare. Totals are spread over several rows per hub, which queries sum up, so that
/// concurrent batches do not wait for one another.
package final class PostgreSQLLedger: Sendable {
  private let configuration: PostgreSQLLedgerConfiguration
  private let store: Store
  private let clock: any WallClock
  private let logger: Logger
  private let days: DayPartitions
  private let writer: PostgreSQLBatchWriter

  /// Validates the configuration; throws `PostgreSQLError` with `configuration`. The first call connects, the first
  /// write creates or migrates the tables.
  package init(
    _ configuration: PostgreSQLLedgerConfiguration, clock: any WallClock = SystemWallClock(), logger: Logger
  ) throws(PostgreSQLError) {
    self.configuration = configuration
    self.clock = clock
    self.logger = logger
    var database = configuration.database
    // Every statement uses an index. Plans are cached before a day's table has grown, so they must not assume that it
    // is small.
    let planning = [
      "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
      "plan_cache_mode": "force_generic_plan",
    ]
    database.settings.merge(planning) { own, _ in own }
    store = try Store(database, name: "the ledger", LedgerTables.migration, readsMigrate: false, logger: logger)
    days = DayPartitions(store: store, retention: configuration.retention, lockTimeout: configuration.lockTimeout)
    writer = PostgreSQLBatchWriter(
      store: store, maximumDevices: configuration.maximumDevices, fewest: configuration.fewestAtOnce)
  }

  /// Closes the connections; every later call throws. Deinitialisation closes them, too.
  package func close() { store.close() }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    try await LedgerError.describing { try await store.read(body) }
  }
}

extension PostgreSQLLedger: QueriedLedger, LedgerStore, AcknowledgementStore {
  package var maximumDevices: Int { configuration.maximumDevices }
  package var writesAtOnce: Int { 3 }

  package func write(_ batch: LedgerBatch) async throws -> Int {
    let plan = BatchPlan(batch)
    return try await LedgerError.describing {
      let now = clock.now()
      if try await days.prepare(for: plan, at: now) {
        logger.warning(
          "A day's partition could not be created because its table is in use; the default partition takes its sends")
      }
      return try await writer.write(plan, at: now)
    }
  }

  package func removeExpired() async {
    do { try await days.removeExpired() } catch is CancellationError {} catch {
      logger.warning(
        "Expired sends could not be removed", metadata: [LogKeys.error: "\(LedgerError(describing: error))"])
    }
  }

  /// Not in the batches' transactions: a later batch may commit first, and if the earlier one were then lost its
  /// records would never be read again.
  package func reach(_ positions: [TopicPartition: Int64]) async throws {
    try await LedgerError.describing { try await store.write { try LedgerQueries($0).reach(positions) } }
  }

  package func positions() async throws -> [TopicPartition: Int64] {
    try await LedgerError.describing { try await store.migrate() }
    return try await read { try LedgerQueries($0).positions() }
  }

  package func acknowledge(_ acknowledgement: Acknowledgement) async throws {
    try await LedgerError.describing { try await store.write { try LedgerQueries($0).acknowledge(acknowledgement) } }
  }
}

/// The database of a PostgreSQL ledger, and its retention.
package struct PostgreSQLLedgerConfiguration: Sendable {
  /// The database. A ledger writes on up to three connections; queries use further ones.
  package var database: PostgreSQLConfiguration
  /// Results of single devices are kept for sends to at most this many devices; counts always are.
  package var maximumDevices = 100
  /// How long a settled send can be looked up; it is removed up to a day later. Measured by the records' own times, so
  /// that a ledger rebuilt from an old log holds the same sends.
  package var retention: Duration = .seconds(30 * 86_400)
  /// The longest wait for the lock that creating or dropping a day's partition needs. Later statements queue behind
  /// that wait, so it is given up after this time and retried.
  package var lockTimeout: Duration = .seconds(2)

  /// The fewest new sends in a batch, or settling sends of one day, for which the specialised statement is used. Fewer
  /// use the general statement, which is slower and saves a round trip.
  package var fewestAtOnce = 200

  package init(database: PostgreSQLConfiguration) {
    self.database = database
  }
}
