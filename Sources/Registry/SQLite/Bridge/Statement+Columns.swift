import FanfareCore
import GRDB
import GRDBSQLite

extension Statement {
  /// The id in a column of a cursor's current row. Throws `StoredRegistration.damaged` unless it has 16 bytes.
  ///
  /// Reads the blob in place: a look-up reads an id for every device, and `Data` would cost three allocations each.
  func registrationID(at column: Int32) throws -> RegistrationID {
    guard unsafe sqlite3_column_bytes(sqliteStatement, column) == 16,
      let blob = unsafe sqlite3_column_blob(sqliteStatement, column)
    else { throw StoredRegistration.damaged }
    func word(at offset: Int) -> UInt64 {
      UInt64(bigEndian: unsafe blob.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    return RegistrationID(high: word(at: 0), low: word(at: 8))
  }
}
