import FanfareCore
import Store

/// Opens a ledger's SQLite file.
enum LedgerFile {
  /// The reader connections of a process.
  static let readers = 2

  /// Opens the file, to write it and to create it and its tables if missing, or only to read it. Blocks.
  static func open(_ settings: LedgerStoreConfiguration, isReadOnly: Bool = false) throws -> Store {
    var file = SQLiteConfiguration(path: settings.path, label: "fanfare.ledger")
    (file.busyTimeout, file.readerCount, file.isReadOnly) = (settings.busyTimeout, readers, isReadOnly)
    // Look-ups need few pages, batches many.
    (file.cachePerReader, file.cacheOfWriter) = (min(settings.cache, 4096), settings.cache)
    // The file stores the positions read, so transactions lost in a power failure are read again.
    file.isDurable = false
    return try Store(file, name: "the ledger", LedgerTables.migration)
  }

  /// Converts an error. SQLite's message is left out, because it may contain stored data; its code does not.
  static func ledgerError(_ error: any Error) -> LedgerError {
    switch error {
    case let error as LedgerError: error
    case let error as StoreError where error.code == .unusable: LedgerError(.unusable, error.message)
    case let error as StoreError where error.code == .unmigrated: LedgerError(.notThere, error.message)
    case let error as StoreError where error == .mismatch: SendRow.damaged
    case let error as StoreError: LedgerError(.unavailable, error.message)
    case _ where Store.isDamage(error):
      LedgerError(.unusable, "the ledger's file is damaged: \(Store.reason(of: error))")
    default: LedgerError(.unavailable, "the ledger cannot be used now: \(Store.reason(of: error))")
    }
  }
}
