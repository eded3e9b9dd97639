import FanfareCore
import Foundation
import GRDB
import Store

/// Opens connections to a ledger's SQLite file.
enum LedgerFile {
  /// The reader connections of a process.
  private static let readers = 2

  /// The gate of a process's reads. GRDB's pool lets them wait without a limit, and without noticing that their task
  /// was cancelled.
  static func makeGate(_ settings: LedgerStoreConfiguration) -> ReadGate {
    ReadGate("the ledger", slots: readers, patience: settings.busyTimeout)
  }

  /// Opens the file for the process that writes it, and creates it and its tables if missing.
  static func openForWriting(_ settings: LedgerStoreConfiguration) throws -> DatabasePool {
    // SQLite ignores the busy timeout when two processes switch a new file to WAL at once: one gets SQLITE_BUSY.
    let deadline = ContinuousClock.now + settings.busyTimeout
    LocalFile.createPrivate(at: settings.path)
    while true {
      do {
        let pool = try DatabasePool(path: settings.path, configuration: configuration(settings, readonly: false))
        try pool.writeWithoutTransaction { db in
          // The file stores the positions read, so transactions lost in a power failure are read again. Commits need
          // not wait for the disk (NORMAL), only checkpoints, and those may be rare.
          try db.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000")
          try LedgerTables.migration.apply(to: db)
        }
        return pool
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
  }

  /// Opens the file for a reader. Throws `LedgerError` with `notThere` when it does not exist yet.
  static func openForReading(_ settings: LedgerStoreConfiguration) throws -> DatabasePool {
    // SQLite reports the same code for a missing file and for one without read permission.
    guard FileManager.default.fileExists(atPath: settings.path) else {
      throw LedgerError(.notThere, "there is no ledger at \(settings.path) yet")
    }
    let pool = try DatabasePool(path: settings.path, configuration: configuration(settings, readonly: true))
    try pool.read { db in
      guard try LedgerTables.migration.version(of: db) == LedgerTables.migration.steps.count else {
        throw LedgerError(.notThere, "the ledger's tables have not been created yet")
      }
    }
    return pool
  }

  /// Converts an error. SQLite's message is left out, because it may contain stored data; its code does not.
  static func ledgerError(_ error: any Error) -> LedgerError {
    switch error {
    case let error as LedgerError: error
    case let error as StoreError where error.code == .unusable: LedgerError(.unusable, error.message)
    case let error as StoreError where error == .mismatch: SendRow.damaged
    case let error as TooManyReads: LedgerError(.unavailable, "the ledger cannot be used now: \(error)")
    case let error as DatabaseError where error.resultCode == .SQLITE_NOTADB || error.resultCode == .SQLITE_CORRUPT:
      LedgerError(.unusable, "the ledger's file is damaged: SQLite error \(error.extendedResultCode)")
    case let error as DatabaseError:
      LedgerError(.unavailable, "the ledger cannot be used now: SQLite error \(error.extendedResultCode)")
    default: LedgerError(.unavailable, "the ledger cannot be used now: \(type(of: error))")
    }
  }

  private static func configuration(_ settings: LedgerStoreConfiguration, readonly: Bool) -> Configuration {
    let milliseconds = settings.busyTimeout.milliseconds
    let cache = settings.cache
    var configuration = Configuration()
    configuration.label = "fanfare.ledger"
    configuration.readonly = readonly
    configuration.foreignKeysEnabled = false
    configuration.maximumReaderCount = readers
    configuration.prepareDatabase { db in
      // A negative cache_size is in KiB. Look-ups need few pages, batches many.
      try db.execute(sql: "PRAGMA busy_timeout = \(milliseconds); PRAGMA temp_store = MEMORY")
      try db.execute(sql: "PRAGMA cache_size = -\(db.configuration.readonly ? min(cache, 4096) : cache)")
    }
    return configuration
  }
}
