import CPQ
import Glibc

/// The result of a statement: rows of binary values in libpq's memory, freed with the last reference.
///
/// Values are read by row and column number. A value of another type than expected, or an unexpected NULL, throws
/// `programming`.
@safe package final class ResultRows {
  private let result: OpaquePointer
  /// The number of rows.
  package let count: Int

  /// Takes ownership of the result.
  init(adopting result: OpaquePointer) {
    unsafe self.result = unsafe result
    count = Int(unsafe PQntuples(result))
  }

  deinit {
    unsafe PQclear(result)
  }

  /// The number of rows inserted, updated or deleted.
  package var affected: Int {
    Int(unsafe String(cString: PQcmdTuples(result))) ?? 0
  }

  package func isNull(_ row: Int, _ column: Int32) -> Bool {
    unsafe PQgetisnull(result, Int32(row), column) != 0
  }

  /// A `text`.
  package func text(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> String {
    unsafe String(decoding: try bytes(row, column), as: UTF8.self)
  }

  /// A `text` that may be NULL.
  package func optionalText(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> String? {
    isNull(row, column) ? nil : try text(row, column)
  }

  /// The bytes of a value in PostgreSQL's binary format: for a `bytea` or `text` its content.
  package func raw(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> [UInt8] {
    unsafe Array(try bytes(row, column))
  }

  /// A `smallint`, `integer` or `bigint`.
  package func integer(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> Int64 {
    let value = unsafe try bytes(row, column)
    guard let base = value.baseAddress else { throw Self.mismatch }
    switch value.count {
    case 2: return Int64(Int16(bigEndian: unsafe base.loadUnaligned(as: Int16.self)))
    case 4: return Int64(Int32(bigEndian: unsafe base.loadUnaligned(as: Int32.self)))
    case 8: return Int64(bigEndian: unsafe base.loadUnaligned(as: Int64.self))
    default: throw Self.mismatch
    }
  }

  /// An integer that may be NULL.
  package func optionalInteger(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> Int64? {
    isNull(row, column) ? nil : try integer(row, column)
  }

  /// A `boolean`.
  package func bool(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> Bool {
    let value = unsafe try bytes(row, column)
    guard value.count == 1 else { throw Self.mismatch }
    return unsafe value[0] != 0
  }

  /// A `uuid`, as its two big-endian words.
  package func uuid(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> (high: UInt64, low: UInt64) {
    let value = unsafe try bytes(row, column)
    guard value.count == 16, let base = value.baseAddress else { throw Self.mismatch }
    return unsafe (
      UInt64(bigEndian: base.loadUnaligned(as: UInt64.self)),
      UInt64(bigEndian: base.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    )
  }

  /// A `text[]` of one dimension without NULLs.
  package func texts(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> [String] {
    var values: [String] = []
    unsafe try elements(row, column) { unsafe values.append(String(decoding: $0, as: UTF8.self)) }
    return values
  }

  /// A `bigint[]`, `integer[]` or `smallint[]` of one dimension without NULLs.
  package func integers(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> [Int64] {
    var values: [Int64] = []
    unsafe try elements(row, column) { element in
      guard let highest = unsafe element.first else { return }
      unsafe values.append(element.dropFirst().reduce(Int64(Int8(bitPattern: highest))) { $0 << 8 | Int64($1) })
    }
    return values
  }

  private func elements(
    _ row: Int, _ column: Int32, _ body: (UnsafeRawBufferPointer) -> Void
  ) throws(PostgreSQLError) {
    let value = unsafe try bytes(row, column)
    func number(at offset: Int) throws(PostgreSQLError) -> Int {
      guard offset + 4 <= value.count else { throw Self.mismatch }
      return Int(Int32(bigEndian: unsafe value.loadUnaligned(fromByteOffset: offset, as: Int32.self)))
    }
    let dimensions = try number(at: 0)
    if dimensions == 0 { return }
    guard dimensions == 1 else { throw Self.mismatch }
    var offset = 20
    for _ in 0..<(try number(at: 12)) {
      let length = try number(at: offset)
      guard length >= 0, offset + 4 + length <= value.count else { throw Self.mismatch }
      unsafe body(UnsafeRawBufferPointer(rebasing: value[(offset + 4)..<(offset + 4 + length)]))
      offset += 4 + length
    }
  }

  /// The bytes of a value; valid as long as the result.
  private func bytes(_ row: Int, _ column: Int32) throws(PostgreSQLError) -> UnsafeRawBufferPointer {
    // For a row or column out of range libpq only prints a warning.
    guard row < count, unsafe PQnfields(result) > column, !isNull(row, column),
      let start = unsafe PQgetvalue(result, Int32(row), column)
    else { throw Self.mismatch }
    return unsafe UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, Int32(row), column)))
  }

  private static let mismatch = PostgreSQLError(.programming, hint: "a column has another type than expected")
}
