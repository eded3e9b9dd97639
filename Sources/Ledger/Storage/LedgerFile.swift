import Foundation
import GRDB

/// How connections to a ledger's file are made.
enum LedgerFile {
  /// Opens the file for the process that writes it. Makes it where there is none, and its tables.
  static func openForWriting(_ settings: LedgerStoreConfiguration) throws -> DatabasePool {
    // SQLite does not wait for the lock when two processes switch a new file to WAL at once: the loser is told "busy"
    // and has to come again.
    let deadline = ContinuousClock.now + settings.busyTimeout
    while true {
      do {
        let pool = try DatabasePool(path: settings.path, configuration: configuration(settings, readonly: false))
        try pool.writeWithoutTransaction { db in
          // The ledger can be made anew from the log, and remembers in the file how far it has read: what a power
          // failure takes back is read again. So the disk need not be waited for at every commit (NORMAL), only at
          // checkpoints; and those may be rare.
          try db.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000")
          try Schema.migrate(db)
        }
        return pool
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
  }

  /// Opens the file for a process that only reads. Throws `LedgerError` with `notThere` when there is nothing to read
  /// yet.
  static func openForReading(_ settings: LedgerStoreConfiguration) throws -> DatabasePool {
    // SQLite would report the same code for a file that is not there and for one that may not be read.
    guard FileManager.default.fileExists(atPath: settings.path) else {
      throw LedgerError(.notThere, "there is no ledger at \(settings.path) yet")
    }
    let pool = try DatabasePool(path: settings.path, configuration: configuration(settings, readonly: true))
    try pool.read(Schema.verify)
    return pool
  }

  /// Which file lies at the path now: another one has another number.
  static func identity(of path: String) -> UInt64? {
    // Without an answer there is no file to be told apart.
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return attributes?[.systemFileNumber] as? UInt64
  }

  /// What went wrong, as a ledger's error. SQLite's own message stays out: only the code is certain to contain nothing
  /// of what is stored.
  static func ledgerError(_ error: any Error) -> LedgerError {
    switch error {
    case let error as LedgerError: error
    case let error as DatabaseError where error.resultCode == .SQLITE_NOTADB || error.resultCode == .SQLITE_CORRUPT:
      LedgerError(.unusable, "the ledger's file is damaged: SQLite error \(error.extendedResultCode)")
    case let error as DatabaseError:
      LedgerError(.unavailable, "the ledger cannot be used now: SQLite error \(error.extendedResultCode)")
    default: LedgerError(.unavailable, "the ledger cannot be used now: \(type(of: error))")
    }
  }

  private static func configuration(_ settings: LedgerStoreConfiguration, readonly: Bool) -> Configuration {
    let milliseconds = Int64(settings.busyTimeout / .milliseconds(1))
    let cache = settings.cache
    var configuration = Configuration()
    configuration.label = "fanfare.ledger"
    configuration.readonly = readonly
    configuration.foreignKeysEnabled = false
    configuration.maximumReaderCount = 2
    configuration.prepareDatabase { db in
      // A negative cache size counts KiB, a positive one pages. Look-ups need few pages; batches touch many.
      try db.execute(sql: "PRAGMA busy_timeout = \(milliseconds); PRAGMA temp_store = MEMORY")
      try db.execute(sql: "PRAGMA cache_size = -\(db.configuration.readonly ? min(cache, 4096) : cache)")
    }
    return configuration
  }
}
