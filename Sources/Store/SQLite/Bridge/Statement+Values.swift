package import GRDB
import GRDBSQLite

/// The values of a SQLite statement, read and bound in place: GRDB's own way boxes each of them.
extension Statement {
  /// Whether the column of the present row is NULL.
  package func isNull(at column: Int32) -> Bool {
    unsafe sqlite3_column_type(sqliteStatement, column) == SQLITE_NULL
  }

  /// An integer of the present row.
  package func integer(at column: Int32) throws(StoreError) -> Int64 {
    guard unsafe sqlite3_column_type(sqliteStatement, column) == SQLITE_INTEGER else { throw .mismatch }
    return unsafe sqlite3_column_int64(sqliteStatement, column)
  }

  /// A text of the present row.
  package func text(at column: Int32) throws(StoreError) -> String {
    guard unsafe sqlite3_column_type(sqliteStatement, column) == SQLITE_TEXT,
      let start = unsafe sqlite3_column_text(sqliteStatement, column)
    else { throw .mismatch }
    let count = Int(unsafe sqlite3_column_bytes(sqliteStatement, column))
    return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// A blob of the present row.
  package func bytes(at column: Int32) throws(StoreError) -> [UInt8] {
    guard unsafe sqlite3_column_type(sqliteStatement, column) == SQLITE_BLOB else { throw .mismatch }
    let count = Int(unsafe sqlite3_column_bytes(sqliteStatement, column))
    // An empty blob has no address.
    guard count > 0, let start = unsafe sqlite3_column_blob(sqliteStatement, column) else { return [] }
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// The two big-endian words of a blob of 16 bytes of the present row.
  package func uuid(at column: Int32) throws(StoreError) -> (high: UInt64, low: UInt64) {
    guard unsafe sqlite3_column_bytes(sqliteStatement, column) == 16,
      let blob = unsafe sqlite3_column_blob(sqliteStatement, column)
    else { throw .mismatch }
    return unsafe (
      UInt64(bigEndian: blob.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
      UInt64(bigEndian: blob.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    )
  }

  /// Binds the values to the parameters `?1`, `?2` …, for the next execution. Values beyond the last parameter are
  /// ignored: PostgreSQL's form of the statement may need more.
  func bind(_ values: [Value]) throws(StoreError) {
    // Resets the statement, and tells GRDB not to bind or check arguments itself.
    setUncheckedArguments(StatementArguments())
    let count = Int(unsafe sqlite3_bind_parameter_count(sqliteStatement))
    for (index, value) in zip(Int32(1)..., values.prefix(count)) {
      let code =
        switch value {
        case .text(let text?): bind(text, at: index)
        case .integer(let number?): unsafe sqlite3_bind_int64(sqliteStatement, index, number)
        case .bool(let value): unsafe sqlite3_bind_int64(sqliteStatement, index, value ? 1 : 0)
        case .bytes(let bytes?): bind(bytes, at: index)
        case .uuid(let high, let low): bind(high, low, at: index)
        case .texts(let texts): bind(texts.joined(separator: "\n"), at: index)
        case .text(nil), .integer(nil), .bytes(nil), .noUUID: unsafe sqlite3_bind_null(sqliteStatement, index)
        }
      guard code == SQLITE_OK else { throw .mismatch }
    }
  }

  private func bind(_ text: String, at index: Int32) -> Int32 {
    var text = text
    return text.withUTF8 { bytes in
      unsafe bytes.withMemoryRebound(to: CChar.self) { characters in
        // An empty text may have no address, which would mean NULL.
        guard let start = characters.baseAddress else {
          return unsafe sqlite3_bind_text(sqliteStatement, index, "", 0, Self.transient)
        }
        return unsafe sqlite3_bind_text(sqliteStatement, index, start, Int32(characters.count), Self.transient)
      }
    }
  }

  private func bind(_ bytes: [UInt8], at index: Int32) -> Int32 {
    if bytes.isEmpty { return unsafe sqlite3_bind_zeroblob(sqliteStatement, index, 0) }
    return unsafe bytes.withUnsafeBytes { buffer in
      unsafe sqlite3_bind_blob(sqliteStatement, index, buffer.baseAddress, Int32(buffer.count), Self.transient)
    }
  }

  private func bind(_ high: UInt64, _ low: UInt64, at index: Int32) -> Int32 {
    unsafe withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { buffer in
      unsafe sqlite3_bind_blob(sqliteStatement, index, buffer.baseAddress, 16, Self.transient)
    }
  }

  /// `SQLITE_TRANSIENT`: SQLite copies the value.
  private static var transient: sqlite3_destructor_type {
    unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
  }
}
