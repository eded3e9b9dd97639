/// How a registry's file is opened.
package struct SQLiteRegistryConfiguration: Sendable {
  /// The database file. It is made where there is none; its directory must exist, on a local disk: WAL needs shared memory between
  /// the processes that share the file.
  package var path: String
  /// The longest that an operation waits for another process, and the longest that it waits for its turn in this one.
  package var busyTimeout: Duration = .seconds(5)
  /// Connections that read at the same time; at least 1. There is always one more that writes.
  package var readerCount = 4
  /// The most memory that one connection keeps pages in, in KiB.
  package var cachePerConnection = 4 * 1024
  /// How much of the file each connection that reads maps into memory, in bytes; 0 for none. A mapped page is read without a system call and a
  /// copy, and shared by all of them in all processes: measured with a larger part mapped, a look-up takes two thirds of the time. The price is that an I/O error of
  /// the disk ends the process with SIGBUS, and that the mapped pages count as the process's memory: so it is bounded.
  package var mappedBytes = 4 * 1024 * 1024
  /// How long it can be looked up why a registration is gone.
  package var tombstoneLifetime: Duration = .seconds(30 * 86_400)

  /// The defaults, for the file at a path.
  package init(path: String) {
    self.path = path
  }
}
