/// Numbers of any size in few bytes: seven bits a byte, the lowest first, the eighth bit set on all but the last
/// (LEB128).
extension [UInt8] {
  /// Appends a number.
  mutating func appendVarint(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}

extension ArraySlice<UInt8> {
  /// Takes a number from the front; nil when there is no whole one.
  mutating func popVarint() -> UInt64? {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 64, let byte = popFirst() {
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return number }
      shift += 7
    }
    return nil
  }
}
