import Dispatch
import FanfareCore
package import Store
import Synchronization

/// A ledger's SQLite file for processes that only read it, such as the front end, or note acknowledgements.
///
/// The file need not exist yet: until it does, every read throws `LedgerError` with `notThere`.
package final class SQLiteLedgerReader: Sendable {
  private let configuration: SQLiteLedgerConfiguration
  private let opened = Mutex<Opened?>(nil)
  /// Opening and checking the file blocks, up to the busy timeout where another process holds a lock. Callers run on
  /// event loops, which must not block.
  private let queue = DispatchQueue(label: "fanfare.ledger.open")
  private let reads: ReadGate

  private struct Opened {
    let store: Store
    /// After the file is deleted and created again, the old one must not be read on.
    let identity: LocalFile.Identity?
  }

  /// Creates a reader; the first call opens the file.
  package init(_ configuration: SQLiteLedgerConfiguration) {
    self.configuration = configuration
    reads = ReadGate("the ledger", slots: SQLiteLedgerConfiguration.readers, patience: configuration.busyTimeout)
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value {
    try await LedgerError.describing { try await reads.run { try await store().read(body) } }
  }

  private func store() async throws -> Store {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in continuation.resume(with: Result { try currentStore() }) }
    }
  }

  /// The file that is at the path now, opened if necessary. Blocks.
  private func currentStore() throws -> Store {
    try opened.withLock { opened in
      let identity = LocalFile.identity(of: configuration.path)
      if let opened, opened.identity == identity { return opened.store }
      opened = nil
      // SQLite reports the same code for a missing file and for one without read permission.
      guard identity != nil else {
        throw LedgerError(.notThere, "there is no ledger at \(configuration.path) yet")
      }
      let store = try configuration.open(isReadOnly: true)
      opened = Opened(store: store, identity: identity)
      return store
    }
  }
}

extension SQLiteLedgerReader: QueriedLedger, SendHistory, AcknowledgementStore {
  /// The ledger may write the file at the same time.
  package func acknowledge(_ acknowledgement: Acknowledgement) async throws {
    try await LedgerError.describing {
      let store = try configuration.open()
      try await store.write { try LedgerQueries($0).acknowledge(acknowledgement) }
      store.close()
    }
  }
}
