/// PostgreSQL's binary formats are big-endian.
extension [UInt8] {
  /// Appends the integer's bytes, the highest first.
  @inline(__always) mutating func append<Value: FixedWidthInteger>(bigEndian value: Value) {
    append(addingCapacity: Value.bitWidth / 8) { bytes in
      var shift = Value.bitWidth
      while shift > 0 {
        shift -= 8
        bytes.append(UInt8(truncatingIfNeeded: value &>> Value(truncatingIfNeeded: shift)))
      }
    }
  }

  /// Appends a length in four bytes and then the bytes themselves.
  mutating func append(counted bytes: some Collection<UInt8>) {
    append(bigEndian: Int32(bytes.count))
    append(contentsOf: bytes)
  }
}
