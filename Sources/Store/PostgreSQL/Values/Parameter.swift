/// A value for a statement, in PostgreSQL's binary format.
package struct Parameter: Sendable {
  /// A built-in type's OIDs, which are the same in every server (`pg_type.dat`).
  package struct TypeID: Hashable, Sendable {
    let oid: UInt32
    /// The OID of the array of the type.
    let arrayOID: UInt32

    package static let bool = Self(oid: 16, arrayOID: 1000)
    package static let bytea = Self(oid: 17, arrayOID: 1001)
    package static let int8 = Self(oid: 20, arrayOID: 1016)
    package static let int2 = Self(oid: 21, arrayOID: 1005)
    package static let int4 = Self(oid: 23, arrayOID: 1007)
    package static let text = Self(oid: 25, arrayOID: 1009)
    package static let uuid = Self(oid: 2950, arrayOID: 2951)
  }

  /// The OID of the type.
  let oid: UInt32
  /// The value; nil is NULL.
  let bytes: [UInt8]?

  private init(_ oid: UInt32, _ bytes: [UInt8]?) {
    self.oid = oid
    self.bytes = bytes
  }

  /// NULL of a type.
  package static func null(_ type: TypeID) -> Self { Self(type.oid, nil) }

  /// `text`; nil is NULL. PostgreSQL refuses a text with a NUL character.
  package static func text(_ value: String?) -> Self { Self(TypeID.text.oid, value.map { Array($0.utf8) }) }

  /// `bytea`; nil is NULL.
  package static func bytea(_ value: [UInt8]?) -> Self { Self(TypeID.bytea.oid, value) }

  /// `boolean`
  package static func bool(_ value: Bool) -> Self { Self(TypeID.bool.oid, [value ? 1 : 0]) }

  /// `smallint`; nil is NULL.
  package static func int2(_ value: Int16?) -> Self { integer(.int2, value) }

  /// `integer`; nil is NULL.
  package static func int4(_ value: Int32?) -> Self { integer(.int4, value) }

  /// `bigint`; nil is NULL.
  package static func int8(_ value: Int64?) -> Self { integer(.int8, value) }

  /// `uuid`, as its two big-endian words.
  package static func uuid(high: UInt64, low: UInt64) -> Self {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    bytes.append(bigEndian: high)
    bytes.append(bigEndian: low)
    return Self(TypeID.uuid.oid, bytes)
  }

  /// `text[]`; an element may be NULL.
  package static func texts(_ values: [String?]) -> Self {
    array(.text, values, sizeHint: 24) { value, bytes in bytes.append(counted: value.utf8) }
  }

  /// `bytea[]`; an element may be NULL.
  package static func byteas(_ values: [[UInt8]?]) -> Self {
    array(.bytea, values, sizeHint: 32) { value, bytes in bytes.append(counted: value) }
  }

  /// `smallint[]`; an element may be NULL.
  package static func int2s(_ values: [Int16?]) -> Self { integers(.int2, values) }

  /// `integer[]`; an element may be NULL.
  package static func int4s(_ values: [Int32?]) -> Self { integers(.int4, values) }

  /// `bigint[]`; an element may be NULL.
  package static func int8s(_ values: [Int64?]) -> Self { integers(.int8, values) }

  /// `boolean[]`
  package static func bools(_ values: [Bool]) -> Self {
    integers(.bool, values.map { Optional($0 ? 1 : 0 as UInt8) })
  }

  /// `uuid[]`, each as its two big-endian words.
  package static func uuids(_ values: [(high: UInt64, low: UInt64)]) -> Self {
    array(.uuid, values.map { Optional($0) }, sizeHint: 16) { value, bytes in
      bytes.append(bigEndian: Int32(16))
      bytes.append(bigEndian: value.high)
      bytes.append(bigEndian: value.low)
    }
  }

  private static func integer(_ type: TypeID, _ value: (some FixedWidthInteger)?) -> Self {
    guard let value else { return null(type) }
    var bytes: [UInt8] = []
    bytes.append(bigEndian: value)
    return Self(type.oid, bytes)
  }

  private static func integers<Element: FixedWidthInteger>(_ type: TypeID, _ values: [Element?]) -> Self {
    array(type, values, sizeHint: Element.bitWidth / 8) { value, bytes in
      bytes.append(bigEndian: Int32(Element.bitWidth / 8))
      bytes.append(bigEndian: value)
    }
  }

  /// An array of one dimension.
  private static func array<Element>(
    _ type: TypeID, _ values: [Element?], sizeHint: Int, _ append: (Element, inout [UInt8]) -> Void
  ) -> Self {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20 + values.count * (4 + sizeHint))
    // Dimensions, NULL flag, element type; for each dimension its length and lower bound.
    bytes.append(bigEndian: Int32(values.isEmpty ? 0 : 1))
    bytes.append(bigEndian: Int32(0))
    bytes.append(bigEndian: type.oid)
    if !values.isEmpty {
      bytes.append(bigEndian: Int32(values.count))
      bytes.append(bigEndian: Int32(1))
    }
    for value in values {
      if let value {
        append(value, &bytes)
      } else {
        bytes[7] = 1
        bytes.append(bigEndian: Int32(-1))
      }
    }
    return Self(type.arrayOID, bytes)
  }
}

/// PostgreSQL's binary formats are big-endian.
extension [UInt8] {
  /// Appends an integer, most significant byte first.
  @inline(__always) mutating func append<Value: FixedWidthInteger>(bigEndian value: Value) {
    append(addingCapacity: Value.bitWidth / 8) { bytes in
      var shift = Value.bitWidth
      while shift > 0 {
        shift -= 8
        bytes.append(UInt8(truncatingIfNeeded: value &>> Value(truncatingIfNeeded: shift)))
      }
    }
  }

  /// Appends a length of four bytes and then the bytes.
  mutating func append(counted bytes: some Collection<UInt8>) {
    append(bigEndian: Int32(bytes.count))
    append(contentsOf: bytes)
  }
}
