import Dispatch
package import FanfareCore
import GRDB
import Synchronization

/// A ledger's file as other processes read it, such as the front end. Need not exist when this is made; what is asked
/// of it before throws `LedgerError` with `notThere`.
package final class LedgerReader: Sendable {
  private let configuration: LedgerStoreConfiguration
  private let opened = Mutex<Opened?>(nil)
  /// Opening and checking the file blocks, up to the busy timeout where another process holds a lock. Callers run on
  /// event loops, which must not block.
  private let queue = DispatchQueue(label: "fanfare.ledger.open")

  private struct Opened {
    let pool: DatabasePool
    /// Which file it was: when it is deleted to be made anew, this reader must not go on reading the old one.
    let identity: UInt64?
  }

  /// A reader of the file at the configured path; opens it when it is first asked something.
  package init(_ configuration: LedgerStoreConfiguration) {
    self.configuration = configuration
  }

  /// The sums of a hub since the file was made. Throws `LedgerError`.
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

  /// The file that lies at the path now; opens it if need be. Blocks.
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

  /// Throws `LedgerError` when there is no ledger yet, or it cannot be read now; the message says which.
  package func check() async throws {
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM sends LIMIT 1") }
  }
}
