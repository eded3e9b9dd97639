import Dispatch
package import FanfareCore
import GRDB
import Synchronization

/// A read-only view of a ledger's SQLite file, for other processes such as the front end.
///
/// The file need not exist yet: until it does, every call throws `LedgerError` with `notThere`.
package final class LedgerReader: Sendable {
  private let configuration: LedgerStoreConfiguration
  private let opened = Mutex<Opened?>(nil)
  /// Opening and checking the file blocks, up to the busy timeout where another process holds a lock. Callers run on
  /// event loops, which must not block.
  private let queue = DispatchQueue(label: "fanfare.ledger.open")

  private struct Opened {
    let pool: DatabasePool
    /// The file's inode number: after the file is deleted and created again, the old one must not be read on.
    let identity: UInt64?
  }

  /// Creates a reader; the first call opens the file.
  package init(_ configuration: LedgerStoreConfiguration) {
    self.configuration = configuration
  }

  /// The totals of a hub since the file was created. Throws `LedgerError`.
  package func totals(hub: HubName) async throws -> LedgerTotals {
    try await read { db in try Lookup.totals(db, hub: hub) }
  }

  private func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws -> Value {
    do { return try await pool().read(body) } catch { throw LedgerFile.ledgerError(error) }
  }

  private func pool() async throws -> DatabasePool {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in continuation.resume(with: Result { try currentPool() }) }
    }
  }

  /// The file that is at the path now, opened if necessary. Blocks.
  private func currentPool() throws -> DatabasePool {
    try opened.withLock { opened in
      let identity = LedgerFile.identity(of: configuration.path)
      if let opened, opened.identity == identity { return opened.pool }
      opened = nil
      let pool = try LedgerFile.openForReading(configuration)
      opened = Opened(pool: pool, identity: identity)
      return pool
    }
  }
}

extension LedgerReader: SendHistory {
  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await read { db in try Lookup.report(db, of: send, hub: hub) }
  }

  package func list(_ query: SendQuery) async throws -> SendPage {
    try await read { db in try Listing(db, query).page() }
  }

  /// Throws `LedgerError` when there is no ledger yet or it cannot be read.
  package func check() async throws {
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM sends LIMIT 1") }
  }
}
