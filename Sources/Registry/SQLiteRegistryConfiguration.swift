/// How a registry's file is opened.
package struct SQLiteRegistryConfiguration: Sendable {
  /// The database file. It is made where there is none; its directory must exist, on a local disk: WAL needs shared
  /// memory between the processes that share the file.
  package var path: String
  /// The longest that an operation waits for another process, and the longest that it waits for its turn in this one.
  package var busyTimeout: Duration = .seconds(5)
  /// Connections that read at the same time; at least 1. There is always one more that writes.
  package var readerCount = 4
  /// The most memory that a connection that reads keeps pages in, in KiB. The default holds the inner pages for some
  /// millions of tags, or what 100,000 users are looked up by: a page that is not there takes a system call and a copy
  /// of 4 KiB through the processor's caches, which cost a look-up more than the search itself. Look-ups go through one
  /// connection at a time, so seldom does more than one fill.
  package var cachePerReader = 16 * 1024
  /// The same for the connection that writes, in KiB. More has made no import quicker: what it changes lies all over
  /// the file.
  package var cacheOfWriter = 1024
  /// How long it can be looked up why a registration is gone.
  package var tombstoneLifetime: Duration = .seconds(30 * 86_400)

  /// The defaults, for the file at a path.
  package init(path: String) {
    self.path = path
  }
}
