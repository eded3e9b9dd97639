import FanfareCore
import GRDB
import GRDBSQLite

extension Statement {
  /// The id in a column of the row that a cursor stands on; nil when the column does not hold 16 bytes.
  ///
  /// A look-up reads one for every device: by way of `Data` each would cost three allocations.
  func registrationID(at column: Int32) -> RegistrationID? {
    guard unsafe sqlite3_column_bytes(sqliteStatement, column) == 16,
      let blob = unsafe sqlite3_column_blob(sqliteStatement, column)
    else { return nil }
    func word(at offset: Int) -> UInt64 {
      UInt64(bigEndian: unsafe blob.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    return RegistrationID(high: word(at: 0), low: word(at: 8))
  }
}
