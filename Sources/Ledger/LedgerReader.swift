import Dispatch
import FanfareCore
import GRDB
package import Store
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
  private let reads: ReadGate

  private struct Opened {
    let pool: DatabasePool
    /// After the file is deleted and created again, the old one must not be read on.
    let identity: LocalFile.Identity?
  }

  /// Creates a reader; the first call opens the file.
  package init(_ configuration: LedgerStoreConfiguration) {
    self.configuration = configuration
    reads = LedgerFile.makeGate(configuration)
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    do {
      return try await reads.run { try await pool().read { db in try body(Session(.sqlite(db))) } }
    } catch let error as TooManyReads where error.hasCaller {
      throw error
    } catch { throw LedgerFile.ledgerError(error) }
  }

  private func pool() async throws -> DatabasePool {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in continuation.resume(with: Result { try currentPool() }) }
    }
  }

  /// The file that is at the path now, opened if necessary. Blocks.
  private func currentPool() throws -> DatabasePool {
    try opened.withLock { opened in
      let identity = LocalFile.identity(of: configuration.path)
      if let opened, opened.identity == identity { return opened.pool }
      opened = nil
      let pool = try LedgerFile.openForReading(configuration)
      opened = Opened(pool: pool, identity: identity)
      return pool
    }
  }
}

extension LedgerReader: QueriedLedger, SendHistory {}
