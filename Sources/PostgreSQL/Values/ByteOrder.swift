/// PostgreSQL's binary formats are big-endian.
extension [UInt8] {
  /// Appends the integer's bytes, the highest first.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    for shift in stride(from: type(of: value).bitWidth - 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  /// Appends a length in four bytes and then the bytes themselves.
  mutating func append(counted bytes: some Collection<UInt8>) {
    append(bigEndian: Int32(bytes.count))
    append(contentsOf: bytes)
  }
}
