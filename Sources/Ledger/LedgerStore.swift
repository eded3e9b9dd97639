package import FanfareCore
package import RDKafka
package import Store
import Synchronization

/// A ledger in a SQLite file, for the process that writes it. Other processes read the file with `LedgerReader`.
package final class LedgerStore: Sendable {
  package let configuration: LedgerStoreConfiguration
  private let store: Store
  private let clock: any WallClock
  private let retention: Mutex<Retention>

  /// Opens the file and creates or migrates its tables. Blocks for at most about twice the busy timeout. Several
  /// processes may do so at once. Throws `LedgerError`.
  package init(_ configuration: LedgerStoreConfiguration, clock: any WallClock = SystemWallClock()) throws {
    self.configuration = configuration
    self.clock = clock
    retention = Mutex(Retention(period: configuration.retention))
    do { store = try LedgerFile.open(configuration) } catch {
      let cause = LedgerFile.ledgerError(error)
      throw LedgerError(
        Store.isFinal(error) ? .unusable : cause.code, "cannot open the ledger \(configuration.path): \(cause.message)")
    }
  }

  /// Closes the file; every later call throws. Deinitialisation closes it, too.
  package func close() { store.close() }

  package func write(_ batch: LedgerBatch) async throws -> Int {
    let (maximumDevices, now) = (configuration.maximumDevices, clock.now())
    do {
      return try await store.write { session in
        var writer = BatchWriter(session, maximumDevices: maximumDevices)
        let duplicates = try writer.write(batch)
        try self.retention.withLock { try $0.run(session, after: batch, at: now) }
        return duplicates
      }
    } catch {
      throw LedgerFile.ledgerError(error)
    }
  }

  /// Throws `LedgerError` when the file cannot be written, or was deleted or replaced.
  package func check() async throws {
    do { try await store.check() } catch { throw LedgerFile.ledgerError(error) }
  }

  package func positions() async throws -> [TopicPartition: Int64] {
    try await read { try LedgerQueries($0).positions() }
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    do { return try await store.read(body) } catch { throw LedgerFile.ledgerError(error) }
  }
}

extension LedgerStore: QueriedLedger, LedgerStorage {
  package var maximumDevices: Int { configuration.maximumDevices }
}

/// The file of a SQLite ledger, and its retention.
package struct LedgerStoreConfiguration: Sendable {
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
}
