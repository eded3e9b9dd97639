package import FanfareCore
import Foundation
import GRDB
import Synchronization

/// Device registrations and secure payloads in one SQLite file, which several processes on one machine may share.
///
/// WAL mode: readers never wait for a writer, each sees the latest commit of any process. `synchronous` is FULL, not
/// the NORMAL that is usual in WAL mode: NORMAL syncs the log only at checkpoints, so that a power failure could take
/// back a change that has been answered 200, and with it give a device back to its previous user. Every change is one
/// `BEGIN IMMEDIATE` transaction: it has the write lock before it reads, hence what it has read still holds when it
/// writes.
package final class SQLiteRegistry: Sendable {
  private let pool: DatabasePool
  private let configuration: SQLiteRegistryConfiguration
  /// When rows that nobody can see any more were last removed.
  private let lastPurge = Mutex<UnixTime?>(nil)
  /// What plans of audiences are made with.
  let tagWeights = TagWeights()

  /// Opens the file, makes or migrates its tables. Blocks for at most about twice the busy timeout: call it before
  /// serving starts.
  ///
  /// Throws, with the path and the reason, `RegistryFileError` when that is impossible, and `RegistryError` when it
  /// only is now.
  package init(_ configuration: SQLiteRegistryConfiguration) throws {
    self.configuration = configuration
    do {
      pool = try Self.open(configuration)
      try pool.writeWithoutTransaction { db in
        // The pool itself has set NORMAL while it switched to WAL, so this cannot be said in the connection's
        // preparation.
        try db.execute(sql: "PRAGMA synchronous = FULL")
        try Schema.migrate(db)
      }
    } catch {
      let reason = (error as? RegistryFileError)?.message ?? Self.reason(of: error)
      let message = "cannot open the registry \(configuration.path): \(reason)"
      throw Self.isFinal(error) ? RegistryFileError(message) : RegistryError(.unavailable, message)
    }
  }

  /// Why the registration is gone; nil when it is not, never was, or went too long ago to be remembered.
  package func tombstone(of id: RegistrationID, hub: HubName) async throws -> Tombstone? {
    try await read { db in try RegistrationTable(db, hub).tombstone(of: id) }
  }

  /// Throws when the store cannot be read and written now: reads a row and commits a change.
  package func check() async throws {
    try await read { db in _ = try Row.fetchOne(db, sql: "SELECT 1 FROM registrations LIMIT 1") }
    try await write { db in try db.execute(sql: "UPDATE probe SET count = count + 1") }
  }

  /// Closes the file; every later call throws. Also happens when the last reference goes.
  package func close() throws {
    do { try pool.close() } catch { throw Self.registryError(error) }
  }

  /// Runs a block on a reading connection, off the cooperative pool, in one transaction: on one snapshot of the file.
  func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws -> Value {
    do { return try await pool.read(body) } catch { throw Self.registryError(error) }
  }

  /// Runs a block on the writing connection, off the cooperative pool, as one transaction that is durable when this
  /// returns and leaves no trace when this throws.
  ///
  /// With `now` given it removes, once a minute, some of the rows that have expired.
  func write<Value: Sendable>(at now: UnixTime? = nil, _ body: @Sendable (Database) throws -> Value) async throws
    -> Value
  {
    let deadline = ContinuousClock.now + configuration.busyTimeout
    do {
      return try await pool.writeWithoutTransaction { db in
        // While another process holds the lock, each call ahead in the queue may wait its whole time: do not let the
        // waits add up.
        guard ContinuousClock.now < deadline else { throw RegistryError(.unavailable, "the registry is busy") }
        var value: Value?
        try db.inTransaction(.immediate) {
          value = try body(db)
          if let now { try self.purgeIfDue(db, at: now) }
          return .commit
        }
        guard let value else { throw RegistryError(.unavailable, "the registry lost the result of a change") }
        return value
      }
    } catch {
      throw Self.registryError(error)
    }
  }

  private func purgeIfDue(_ db: Database, at now: UnixTime) throws {
    let isDue = lastPurge.withLock { last in
      // A clock that was set back must not stop the purging until it has caught up.
      if let last, now >= last, now - last < Purge.interval { return false }
      last = now
      return true
    }
    guard isDue else { return }
    if try Purge.run(db, at: now, forgettingTombstonesBefore: now + (.zero - configuration.tombstoneLifetime)) {
      lastPurge.withLock { $0 = nil }
    }
  }

  private static func open(_ settings: SQLiteRegistryConfiguration) throws -> DatabasePool {
    let milliseconds = Int64(settings.busyTimeout / .milliseconds(1))
    var configuration = Configuration()
    configuration.label = "fanfare.registry"
    configuration.foreignKeysEnabled = false
    configuration.maximumReaderCount = max(1, settings.readerCount)
    configuration.prepareDatabase { db in
      // A pragma, because readers wait too while another process recovers or closes the log, and for them the pool
      // picks a time of its own. A negative cache size counts KiB, a positive one pages.
      try db.execute(
        sql: """
          PRAGMA busy_timeout = \(milliseconds);
          PRAGMA cache_size = -\(db.configuration.readonly ? settings.cachePerReader : settings.cacheOfWriter)
          """)
    }
    // SQLite does not wait for the lock when two processes switch a new file to WAL at once (it would have to upgrade a
    // read lock, which can deadlock): the loser is told "busy" at once and has to come again.
    let deadline = ContinuousClock.now + settings.busyTimeout
    while true {
      do {
        return try DatabasePool(path: settings.path, configuration: configuration)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
  }

  /// What went wrong, as a registry's error. SQLite's own message and the arguments stay out: only the fixed text of
  /// the code is certain to contain nothing of what is stored.
  private static func registryError(_ error: any Error) -> RegistryError {
    if let error = error as? RegistryError { return error }
    return RegistryError(.unavailable, "the registry cannot be used now: \(reason(of: error))")
  }

  /// Whether the file that cannot be opened now cannot be later either.
  private static func isFinal(_ error: any Error) -> Bool {
    switch (error as? DatabaseError)?.resultCode {
    case .SQLITE_CANTOPEN, .SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: true
    default: error is RegistryFileError
    }
  }

  private static func reason(of error: any Error) -> String {
    switch error {
    case let error as DatabaseError: "SQLite error \(error.extendedResultCode)"
    case is CancellationError: "the caller has gone"
    default: "\(type(of: error))"
    }
  }
}
