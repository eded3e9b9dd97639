/// How a ledger's file is opened and what is kept in it.
package struct LedgerStoreConfiguration: Sendable {
  /// The database file. Made where there is none; its directory must exist, on a local disk: WAL needs shared memory
  /// between the processes that share the file.
  package var path: String
  /// Each device's result is kept for sends to at most this many devices; counts always are.
  package var maximumDevices = 100
  /// How long a settled send can be looked up. Measured on the records' own times, so that a ledger rebuilt from an old
  /// log sees the same.
  package var retention: Duration = .seconds(30 * 86_400)
  /// The longest that an operation waits for another process.
  package var busyTimeout: Duration = .seconds(5)
  /// The most memory for pages of the file, in KiB.
  package var cache = 64 * 1024

  /// The defaults, for the file at a path.
  package init(path: String) {
    self.path = path
  }
}
