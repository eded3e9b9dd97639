extension Span<UInt8> {
  /// The bytes as text; what is no UTF-8 becomes U+FFFD.
  package var text: String { unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) } }

  /// Eight of the bytes as a number, the first the least significant. Traps where fewer are left.
  func word(at index: Int) -> UInt64 {
    // Any eight bytes are a number, and the span sees to it that they are its own.
    UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
  }
}

extension [UInt8] {
  /// Appends text as it is: the fixed parts of a document.
  package mutating func append(literal text: StaticString) {
    // The bytes of a literal are part of the program.
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends all of them.
  mutating func append(copying bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}
