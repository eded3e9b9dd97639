extension Span<UInt8> {
  /// The bytes as text; every invalid UTF-8 sequence becomes U+FFFD.
  package var text: String { unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) } }

  /// Eight bytes as a little-endian number. Traps when fewer than eight follow `index`.
  func word(at index: Int) -> UInt64 {
    // Every bit pattern is a valid number, and the span checks the bounds.
    UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
  }
}

extension OutputSpan<UInt8> {
  /// Appends the number's bytes in big-endian order with one store.
  mutating func append(bytesOf word: some FixedWidthInteger & BitwiseCopyable) {
    let size = word.bitWidth / 8
    precondition(freeCapacity >= size, "no room for \(size) bytes")
    // The capacity was checked above, and every bit pattern is a valid byte.
    unsafe withUnsafeMutableBufferPointer { buffer, count in
      unsafe UnsafeMutableRawBufferPointer(buffer).storeBytes(
        of: word.bigEndian, toByteOffset: count, as: type(of: word))
      count += size
    }
  }

  /// Appends all bytes of the span.
  @inline(__always)
  mutating func append(copying bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { source in
      guard let start = source.baseAddress else { return }
      unsafe append(start, count: source.count)
    }
  }

  /// Appends text without escaping it.
  @inline(__always)
  mutating func append(literal text: StaticString) {
    // The bytes of a literal are part of the program.
    unsafe append(text.utf8Start, count: text.utf8CodeUnitCount)
  }

  @inline(__always)
  private mutating func append(_ source: UnsafePointer<UInt8>, count size: Int) {
    precondition(freeCapacity >= size, "no room for \(size) bytes")
    unsafe withUnsafeMutableBufferPointer { buffer, count in
      // The capacity was checked above, so the buffer has an address: `!` cannot fail.
      unsafe UnsafeMutableRawPointer(buffer.baseAddress! + count).copyMemory(from: source, byteCount: size)
      count += size
    }
  }
}

extension [UInt8] {
  /// Appends text without escaping it.
  package mutating func append(literal text: StaticString) {
    // The bytes of a literal are part of the program.
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
