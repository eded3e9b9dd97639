package import FanfareCore
import Foundation
import GRDB
import LocalFile

/// The registry in one SQLite file, which several processes on one machine may share.
///
/// WAL mode: readers never wait for a writer and see the latest commit of any process. `synchronous` is FULL, not the
/// NORMAL that is usual in WAL mode: NORMAL syncs the log only at checkpoints, so a power failure could undo a change
/// that was answered with 200, and give a device back to its previous user. Every change is a `BEGIN IMMEDIATE`
/// transaction: it holds the write lock before it reads, so its reads are still valid when it writes.
package final class SQLiteRegistry: Sendable {
  private let pool: DatabasePool
  private let file: LocalFile
  private let configuration: SQLiteRegistryConfiguration
  private let purges: PurgeSchedule
  private let reads: ReadGate
  let tagWeights = TagWeights()
  let templates = TemplateCache()
  /// The limits of the registrations.
  var limits: RegistrationLimits { configuration.limits }

  /// Opens the file and creates or migrates its tables. Blocks for up to about twice the busy timeout: call it before
  /// serving starts.
  ///
  /// Throws `RegistryFileError` when the file can never be used, and `RegistryError` when a later attempt may succeed.
  /// Both name the path and the reason.
  package init(_ configuration: SQLiteRegistryConfiguration) throws {
    self.configuration = configuration
    purges = PurgeSchedule(tombstoneLifetime: configuration.tombstoneLifetime)
    // The pool lets reads wait without a limit, and without noticing that their task was cancelled.
    reads = ReadGate("the registry", slots: Self.readers(configuration), patience: configuration.busyTimeout)
    do {
      LocalFile.createPrivate(at: configuration.path)
      pool = try Self.open(configuration)
      file = LocalFile(at: configuration.path)
      try pool.writeWithoutTransaction { db in
        // Not in `prepareDatabase`: after that GRDB switches to WAL and sets NORMAL.
        try db.execute(sql: "PRAGMA synchronous = FULL")
        try SQLiteSchema.migrate(db)
      }
    } catch {
      let reason = (error as? RegistryFileError)?.message ?? Self.reason(of: error)
      let message = "cannot open the registry \(configuration.path): \(reason)"
      throw Self.isFinal(error) ? RegistryFileError(message) : RegistryError(.unavailable, message)
    }
  }

  /// The tombstone of the registration; nil when it exists, never did, or its tombstone has expired.
  package func tombstone(of id: RegistrationID, hub: HubName) async throws -> Tombstone? {
    try await read { db in try SQLiteRegistrationTable(db, hub).tombstone(of: id) }
  }

  /// Throws when the store cannot be read and written, or its file was deleted or replaced. Writes nothing.
  ///
  /// It reads a row, makes a change that it takes back, which fails for a file that is read-only or locked, and
  /// compares the free space of the disk: a change that is taken back never reaches the disk.
  package func check() async throws {
    try requireFile()
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM registrations LIMIT 1") }
    try await write(commits: false) { db in try db.execute(sql: "UPDATE probe SET count = count + 1") }
    guard let free = FreeSpace.bytes(at: configuration.path), free < FreeSpace.minimum else { return }
    throw RegistryError(
      .unavailable, "the disk of the registry is full: \(free) bytes are free, \(FreeSpace.minimum) are needed")
  }

  /// Closes the file; every later call throws. Releasing the last reference also closes it.
  package func close() throws {
    do { try pool.close() } catch { throw Self.registryError(error) }
  }

  /// Throws `.unavailable` when the path no longer names the open file: changes to that would be lost. It is not opened
  /// again, because the new file may lack what callers were told is durable.
  private func requireFile() throws(RegistryError) {
    guard file.isInPlace else {
      throw RegistryError(
        .unavailable, "the registry's file \(file.path) was deleted or replaced; put it back, or restart the process")
    }
  }

  /// Runs a block on a reader connection, outside the cooperative pool, on one snapshot of the file. When the task is
  /// cancelled, the running statement is interrupted.
  func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws -> Value {
    do { return try await reads.run { try await pool.read(body) } } catch { throw Self.registryError(error) }
  }

  /// Runs a block on the writer connection, outside the cooperative pool, as one transaction: durable when this returns
  /// and rolled back when it throws or not `commits`. With `now` given it purges some expired rows once a minute.
  func write<Value: Sendable>(
    at now: UnixTime? = nil, commits: Bool = true, _ body: @Sendable (Database) throws -> Value
  ) async throws -> Value {
    let deadline = ContinuousClock.now + configuration.busyTimeout
    do {
      return try await pool.writeWithoutTransaction { db in
        // While another process holds the lock, each call ahead in the queue may wait for the whole busy timeout.
        guard ContinuousClock.now < deadline else { throw RegistryError(.unavailable, "the registry is busy") }
        var value: Value?
        try db.inTransaction(.immediate) {
          try self.requireFile()
          value = try body(db)
          if let now { try self.purgeIfDue(db, at: now) }
          return commits ? .commit : .rollback
        }
        guard let value else { throw RegistryError(.unavailable, "the registry lost the result of a change") }
        return value
      }
    } catch {
      throw Self.registryError(error)
    }
  }

  private func purgeIfDue(_ db: Database, at now: UnixTime) throws {
    guard purges.begin(at: now) else { return }
    func delete(from table: String, key: String, where condition: String, _ limit: UnixTime) throws -> Int {
      let sql = """
        DELETE FROM \(table) WHERE (hub, \(key)) IN
          (SELECT hub, \(key) FROM \(table) WHERE \(condition) ? LIMIT \(Purge.batch))
        """
      try db.cachedStatement(sql: sql).execute(arguments: [limit.milliseconds])
      return db.changesCount
    }
    let pending = try delete(from: "registrations", key: "id", where: "expires_at <=", now)
    let others = try Purge.tables.map {
      try delete(from: $0.name, key: $0.key, where: $0.condition, purges.limit(of: $0, at: now))
    }
    purges.finish(removed: [pending] + others)
  }

  private static func open(_ settings: SQLiteRegistryConfiguration) throws -> DatabasePool {
    let milliseconds = settings.busyTimeout.milliseconds
    var configuration = Configuration()
    configuration.label = "fanfare.registry"
    configuration.foreignKeysEnabled = false
    configuration.maximumReaderCount = readers(settings)
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

  private static func readers(_ settings: SQLiteRegistryConfiguration) -> Int { max(1, settings.readerCount) }

  private static func registryError(_ error: any Error) -> any Error {
    switch error {
    case let error as RegistryError: error
    case let error as TooManyReads where error.hasCaller: error
    default: RegistryError(.unavailable, "the registry is unavailable: \(reason(of: error))")
    }
  }

  /// Whether the error of opening the file is permanent.
  private static func isFinal(_ error: any Error) -> Bool {
    switch (error as? DatabaseError)?.resultCode {
    case .SQLITE_CANTOPEN, .SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: true
    default: error is RegistryFileError
    }
  }

  /// The reason without stored values: SQLite's own message and the arguments may contain some, its code does not.
  private static func reason(of error: any Error) -> String {
    switch error {
    case let error as DatabaseError: "SQLite error \(error.extendedResultCode)"
    case is CancellationError: "the call was cancelled"
    case let error as TooManyReads: error.description
    default: "\(type(of: error))"
    }
  }
}

/// The file of a SQLite registry and how to open it.
package struct SQLiteRegistryConfiguration: Sendable {
  /// The database file, created if missing. Its directory must exist, on a local disk: WAL needs memory shared between
  /// the processes.
  package var path: String
  /// The longest wait of an operation for another process, and for its turn in this process.
  package var busyTimeout: Duration = .seconds(5)
  /// The number of reader connections, at least 1. There is always one writer connection besides.
  package var readerCount = 4
  /// The page cache of each reader connection, in KiB. The default holds the inner pages for some million tags, or all
  /// pages for the look-ups of 100,000 users: reading a page that is not cached costs a system call and a copy of 4
  /// KiB, which is more than the search itself. Look-ups use one connection at a time, so usually only one cache fills.
  package var cachePerReader = 16 * 1024
  /// The page cache of the writer connection, in KiB. A larger one did not speed up imports: their changes are spread
  /// over the whole file.
  package var cacheOfWriter = 1024
  /// How long tombstones are kept.
  package var tombstoneLifetime: Duration = .seconds(30 * 86_400)
  /// The limits of the registrations.
  package var limits = RegistrationLimits()

  package init(path: String) {
    self.path = path
  }
}

/// The registry's file can never be used: it needs another file, other permissions or another release.
///
/// An error of the process, where `RegistryError` is one of a single request. The message names the file and contains
/// no stored values.
package struct RegistryFileError: Error, Hashable, Sendable, CustomStringConvertible {
  package let message: String

  init(_ message: String) {
    self.message = message
  }

  package var description: String { message }
}

/// The space that is left on the disk of a database file.
private enum FreeSpace {
  /// Fewer free bytes count as a full disk: SQLite then fails in the middle of its log or of a checkpoint.
  static let minimum: Int64 = 1024 * 1024

  /// The bytes that are free for this process on the disk of the file; nil if the system does not say.
  static func bytes(at path: String) -> Int64? {
    // Throws for a file system without the information, which is no problem of the registry.
    let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path)
    return (attributes?[.systemFreeSize] as? NSNumber)?.int64Value
  }
}
