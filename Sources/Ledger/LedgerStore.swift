package import FanfareCore
import GRDB
package import RDKafka
import Synchronization

/// The ledger as a SQLite file, for the process that writes it: batches in, look-ups out. One process writes a file;
/// others read it with `LedgerReader`.
package final class LedgerStore: Sendable {
  /// How the file was opened.
  package let configuration: LedgerStoreConfiguration
  private let pool: DatabasePool
  private let clock: any WallClock
  private let retention: Mutex<Retention>

  /// Opens the file, makes or migrates its tables. Blocks for at most about twice the busy timeout. Several processes
  /// may do so at once.
  ///
  /// Throws `LedgerError` when that is impossible.
  package init(_ configuration: LedgerStoreConfiguration, clock: any WallClock = SystemWallClock()) throws {
    self.configuration = configuration
    self.clock = clock
    retention = Mutex(Retention(period: configuration.retention))
    do {
      pool = try LedgerFile.openForWriting(configuration)
    } catch {
      let cause = LedgerFile.ledgerError(error)
      let code: LedgerError.Code =
        switch (error as? DatabaseError)?.resultCode {
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: .unusable
        default: cause.code
        }
      throw LedgerError(code, "cannot open the ledger \(configuration.path): \(cause.message)")
    }
  }

  package func totals(hub: HubName) async throws -> LedgerTotals {
    try await read { db in try Lookup.totals(db, hub: hub) }
  }

  /// Closes the file; every later call throws. Also happens when the last reference goes.
  package func close() throws {
    do { try pool.close() } catch { throw LedgerFile.ledgerError(error) }
  }

  package func write(_ batch: LedgerBatch) async throws -> Int {
    let (maximumDevices, now) = (configuration.maximumDevices, clock.now())
    do {
      return try await pool.writeWithoutTransaction { db in
        var duplicates = 0
        try db.inTransaction(.immediate) {
          var writer = try BatchWriter(db, maximumDevices: maximumDevices)
          duplicates = try writer.write(batch)
          try self.retention.withLock { try $0.run(db, after: batch, at: now) }
          return .commit
        }
        return duplicates
      }
    } catch {
      throw LedgerFile.ledgerError(error)
    }
  }

  package func positions() async throws -> [TopicPartition: Int64] {
    try await read { db in
      var positions: [TopicPartition: Int64] = [:]
      for row in try Row.fetchAll(db, sql: "SELECT topic, partition, next_offset FROM positions") {
        positions[TopicPartition(topic: row[0], partition: row[1])] = row[2]
      }
      return positions
    }
  }

  private func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws -> Value {
    do { return try await pool.read(body) } catch { throw LedgerFile.ledgerError(error) }
  }
}

extension LedgerStore: LedgerStorage {
  package var maximumDevices: Int { configuration.maximumDevices }

  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await read { db in try Lookup.report(db, of: send, hub: hub) }
  }

  package func list(_ query: SendQuery) async throws -> SendPage {
    try await read { db in try Listing(db, query).page() }
  }

  package func check() async throws {
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM sends LIMIT 1") }
  }
}
