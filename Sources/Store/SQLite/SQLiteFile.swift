import FanfareCore
import Foundation
import GRDB

/// How to open a SQLite file.
package struct SQLiteConfiguration: Sendable {
  /// The database file, created if missing. Its directory must exist, on a local disk: WAL needs memory shared between
  /// the processes.
  package var path: String
  /// The name of GRDB's queues.
  package var label: String
  /// The longest wait of an operation for another process, and for its turn in this process.
  package var busyTimeout: Duration = .seconds(5)
  /// The number of reader connections, at least 1. There is always one writer connection besides.
  package var readerCount = 4
  /// The page caches of each reader connection and of the writer connection, in KiB.
  package var cachePerReader = 16 * 1024
  package var cacheOfWriter = 1024
  /// Whether a commit waits for the disk. Without that a power failure may undo the latest commits, and the log is
  /// copied into the file rarely.
  package var isDurable = true
  /// Whether an existing file is opened that only others write.
  package var isReadOnly = false

  package init(path: String, label: String) { (self.path, self.label) = (path, label) }
}

/// A SQLite file with one writer connection and a pool of readers, which several processes on one machine may share.
///
/// WAL mode: readers never wait for a writer and see the latest commit of any process. `synchronous` can be FULL, not the
/// NORMAL that is usual in WAL mode: NORMAL syncs the log only at checkpoints, so a power failure could undo a change
/// that was answered with 200, and give a device back to its previous user. Every change is a `BEGIN IMMEDIATE`
/// transaction: it holds the write lock before it reads, so its reads are still valid when it writes.
final class SQLiteFile: Sendable {
  private let pool: DatabasePool
  private let file: LocalFile
  private let name: String
  private let busyTimeout: Duration

  /// Opens the file and creates or migrates its tables. Blocks for up to about twice the busy timeout. `name` is that
  /// of the store in messages, such as `the registry`.
  init(_ settings: SQLiteConfiguration, name: String, _ migration: SchemaMigration) throws {
    (self.name, busyTimeout) = (name, settings.busyTimeout)
    if !settings.isReadOnly { LocalFile.createPrivate(at: settings.path) }
    pool = try Self.open(settings)
    file = LocalFile(at: settings.path)
    guard !settings.isReadOnly else {
      guard try pool.read({ try migration.version(of: $0) }) == migration.steps.count else {
        throw StoreError(.unmigrated, "\(name)'s tables have not been created yet")
      }
      return
    }
    try pool.writeWithoutTransaction { db in
      // Not in `prepareDatabase`: after that GRDB switches to WAL and sets NORMAL.
      try db.execute(sql: settings.isDurable ? "PRAGMA synchronous = FULL" : "PRAGMA wal_autocheckpoint = 8000")
      try migration.apply(to: db)
    }
  }

  /// Runs a block on a reader connection, outside the cooperative pool, on one snapshot of the file. When the task is
  /// cancelled, the running statement is interrupted.
  func read<Value: Sendable>(_ body: @Sendable (Session) throws -> Value) async throws -> Value {
    try await pool.read { db in try body(Session(.sqlite(db))) }
  }

  /// Runs a block on the writer connection, outside the cooperative pool, as one transaction; see `Store.write`.
  func write<Value: Sendable>(commits: Bool, _ body: @Sendable (Session) throws -> Value) async throws -> Value {
    let deadline = ContinuousClock.now + busyTimeout
    return try await pool.writeWithoutTransaction { db in
      // While another process holds the lock, each call ahead in the queue may wait for the whole busy timeout.
      guard ContinuousClock.now < deadline else { throw StoreError(.busy, "\(name) is busy") }
      var repetitions = 0
      while true {
        do { return try transact(db, commits: commits, body) } catch let error as StoreError
          where error == .overtaken && repetitions < Store.maximumRepetitions
        {
          repetitions += 1
        }
      }
    }
  }

  private func transact<Value>(_ db: Database, commits: Bool, _ body: (Session) throws -> Value) throws -> Value {
    var value: Value?
    try db.inTransaction(.immediate) {
      try requireFile()
      value = try body(Session(.sqlite(db)))
      return commits ? .commit : .rollback
    }
    guard let value else { throw StoreError(.busy, "\(name) lost the result of a change") }
    return value
  }

  /// Throws when the file cannot be written, or was deleted or replaced, or its disk is full. Writes nothing: the
  /// change is taken back, which fails for a file that is read-only or locked, and never reaches the disk.
  func check() async throws {
    try requireFile()
    _ = try await write(commits: false) { session in
      try session.script("PRAGMA user_version = 0")
      return true
    }
    guard let free = FreeSpace.bytes(at: file.path), free < FreeSpace.minimum else { return }
    throw StoreError(.full, "the disk of \(name) is full: \(free) bytes are free, \(FreeSpace.minimum) are needed")
  }

  /// Throws when the path no longer names the open file: changes to that would be lost. It is not opened again, because
  /// the new file may lack what callers were told is durable.
  private func requireFile() throws(StoreError) {
    guard file.isInPlace else {
      throw StoreError(
        .displaced, "\(name)'s file \(file.path) was deleted or replaced; put it back, or restart the process")
    }
  }

  func close() {
    // Fails only while a statement runs; then releasing the pool closes the file.
    do { try pool.close() } catch {}
  }

  private static func open(_ settings: SQLiteConfiguration) throws -> DatabasePool {
    let milliseconds = settings.busyTimeout.milliseconds
    var configuration = Configuration()
    configuration.label = settings.label
    configuration.readonly = settings.isReadOnly
    configuration.foreignKeysEnabled = false
    configuration.maximumReaderCount = max(1, settings.readerCount)
    configuration.prepareDatabase { db in
      // A pragma, because readers also wait while another process recovers or closes the log, and GRDB sets its own
      // busy timeout for them. A negative cache size is in KiB, a positive one in pages.
      try db.execute(
        sql: """
          PRAGMA busy_timeout = \(milliseconds);
          PRAGMA cache_size = -\(db.configuration.readonly ? settings.cachePerReader : settings.cacheOfWriter)
          """)
    }
    // When two processes switch a new file to WAL at once, SQLite fails one with BUSY without waiting: it would have to
    // upgrade a read lock, which can deadlock. So retry.
    let deadline = ContinuousClock.now + settings.busyTimeout
    while true {
      do {
        return try DatabasePool(path: settings.path, configuration: configuration)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
  }
}

/// The space that is left on the disk of a database file.
private enum FreeSpace {
  /// Fewer free bytes count as a full disk: SQLite then fails in the middle of its log or of a checkpoint.
  static let minimum: Int64 = 1024 * 1024

  /// The bytes that are free for this process on the disk of the file; nil if the system does not say.
  static func bytes(at path: String) -> Int64? {
    // Throws for a file system without the information, which is no problem of the store.
    let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path)
    return (attributes?[.systemFreeSize] as? NSNumber)?.int64Value
  }
}
