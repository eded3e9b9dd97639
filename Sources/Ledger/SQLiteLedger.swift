package import FanfareCore
package import RDKafka
package import Store
import Synchronization

/// A ledger in a SQLite file, for the process that writes it. Other processes use a `SQLiteLedgerReader`.
package final class SQLiteLedger: Sendable {
  package let configuration: SQLiteLedgerConfiguration
  private let store: Store
  private let clock: any WallClock
  private let retention: Mutex<Retention>

  /// Opens the file and creates or migrates its tables. Blocks for at most about twice the busy timeout. Several
  /// processes may do so at once. Throws `LedgerError`.
  package init(_ configuration: SQLiteLedgerConfiguration, clock: any WallClock = SystemWallClock()) throws {
    self.configuration = configuration
    self.clock = clock
    retention = Mutex(Retention(period: configuration.retention))
    do { store = try configuration.open() } catch {
      let cause = LedgerError(describing: error)
      throw LedgerError(
        Store.isFinal(error) ? .unusable : cause.code, "cannot open the ledger \(configuration.path): \(cause.message)")
    }
  }

  /// Closes the file; every later call throws. Deinitialisation closes it, too.
  package func close() { store.close() }

  package func write(_ batch: LedgerBatch) async throws -> Int {
    let (maximumDevices, now) = (configuration.maximumDevices, clock.now())
    return try await LedgerError.describing {
      try await store.write { session in
        var writer = SQLiteBatchWriter(session, maximumDevices: maximumDevices)
        let duplicates = try writer.write(batch)
        try self.retention.withLock { try $0.run(session, after: batch, at: now) }
        return duplicates
      }
    }
  }

  /// Throws `LedgerError` when the file cannot be written, or was deleted or replaced.
  package func check() async throws { try await LedgerError.describing { try await store.check() } }

  package func positions() async throws -> [TopicPartition: Int64] {
    try await read { try LedgerQueries($0).positions() }
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    try await LedgerError.describing { try await store.read(body) }
  }
}

extension SQLiteLedger: QueriedLedger, LedgerStore {
  package var maximumDevices: Int { configuration.maximumDevices }
}

/// The file of a SQLite ledger, and its retention.
package struct SQLiteLedgerConfiguration: Sendable {
  /// The database file, created if missing. Its directory must exist on a local disk: WAL needs memory shared between
  /// the processes that open the file.
  package var path: String
  /// Results of single devices are kept for sends to at most this many devices; counts always are.
  package var maximumDevices = 100
  /// How long a settled send can be looked up. Measured by the records' own times, so that a ledger rebuilt from an old
  /// log holds the same sends.
  package var retention: Duration = .seconds(30 * 86_400)
  /// The longest wait for another process's lock.
  package var busyTimeout: Duration = .seconds(5)
  /// The page cache's size in KiB.
  package var cache = 64 * 1024

  package init(path: String) {
    self.path = path
  }
  /// The reader connections of a process.
  static let readers = 2

  /// Opens the file, to write it and to create it and its tables if missing, or only to read it. Blocks.
  func open(isReadOnly: Bool = false) throws -> Store {
    var file = SQLiteConfiguration(path: path, label: "fanfare.ledger")
    (file.busyTimeout, file.readerCount, file.isReadOnly) = (busyTimeout, Self.readers, isReadOnly)
    // Look-ups need few pages, batches many.
    (file.cachePerReader, file.cacheOfWriter) = (min(cache, 4096), cache)
    // The file stores the positions read, so transactions lost in a power failure are read again.
    file.isDurable = false
    return try Store(file, name: "the ledger", LedgerTables.migration)
  }
}
