/// Encodes the rows of a binary `COPY … FROM STDIN`.
///
/// For each row call `row(columns:)` and then one method per column, in the order of the columns and with their exact
/// types: the server converts nothing.
package struct CopyWriter: ~Copyable {
  private var buffer: [UInt8]
  private let send: ([UInt8]) throws -> Void
  /// The number of rows begun.
  package private(set) var count = 0

  /// Rows are sent in pieces of about this many bytes.
  private static let piece = 256 * 1024
  /// The signature "PGCOPY\n\377\r\n\0", no flags, no header extension.
  private static let head: [UInt8] =
    [0x50, 0x47, 0x43, 0x4F, 0x50, 0x59, 0x0A, 0xFF, 0x0D, 0x0A, 0] + Array(repeating: 0, count: 8)

  init(send: @escaping ([UInt8]) throws -> Void) {
    self.send = send
    buffer = Self.head
    buffer.reserveCapacity(Self.piece + 16 * 1024)
  }

  /// Begins a row of that many columns. Throws when the rows before it cannot be sent.
  package mutating func row(columns: Int) throws {
    if buffer.count >= Self.piece { try flush() }
    count += 1
    buffer.append(bigEndian: Int16(columns))
  }

  /// A NULL in a column of any type.
  package mutating func null() { buffer.append(bigEndian: Int32(-1)) }

  /// A `text` column; nil is NULL.
  package mutating func text(_ value: String?) {
    if let value { buffer.append(counted: value.utf8) } else { null() }
  }

  /// A `text` column, as UTF-8 without NUL.
  package mutating func text(utf8 value: some Collection<UInt8>) { buffer.append(counted: value) }

  /// A `text[]` column.
  package mutating func texts(_ values: [String]) {
    let head = values.isEmpty ? 12 : 20
    buffer.append(bigEndian: Int32(values.reduce(head) { $0 + 4 + $1.utf8.count }))
    // Dimensions, NULL flag, element type; for each dimension its length and lower bound.
    buffer.append(bigEndian: Int32(values.isEmpty ? 0 : 1))
    buffer.append(bigEndian: Int32(0))
    buffer.append(bigEndian: Parameter.TypeID.text.oid)
    guard !values.isEmpty else { return }
    buffer.append(bigEndian: Int32(values.count))
    buffer.append(bigEndian: Int32(1))
    for value in values { text(value) }
  }

  /// A `bytea` column; nil is NULL.
  package mutating func bytea(_ value: [UInt8]?) { if let value { buffer.append(counted: value) } else { null() } }

  /// A `smallint` column.
  package mutating func int2(_ value: Int16) { integer(value) }

  /// An `integer` column.
  package mutating func int4(_ value: Int32) { integer(value) }

  /// A `bigint` column; nil is NULL.
  package mutating func int8(_ value: Int64?) { if let value { integer(value) } else { null() } }

  /// A `boolean` column.
  package mutating func bool(_ value: Bool) { integer(value ? 1 : 0 as UInt8) }

  /// A `uuid` column, as its two big-endian words.
  package mutating func uuid(high: UInt64, low: UInt64) {
    buffer.append(bigEndian: Int32(16))
    buffer.append(bigEndian: high)
    buffer.append(bigEndian: low)
  }

  /// A column of any type that ``Parameter`` has.
  package mutating func value(_ value: Parameter) { bytea(value.bytes) }

  /// Sends the remaining rows and the end marker.
  mutating func finish() throws {
    buffer.append(bigEndian: Int16(-1))
    try flush()
  }

  private mutating func integer(_ value: some FixedWidthInteger) {
    buffer.append(bigEndian: Int32(type(of: value).bitWidth / 8))
    buffer.append(bigEndian: value)
  }

  private mutating func flush() throws {
    try send(buffer)
    buffer.removeAll(keepingCapacity: true)
  }
}
