extension OutputSpan<UInt8> {
  /// Appends a number's bytes, the most significant first. What they are the digits of is written at once, not byte by
  /// byte.
  mutating func append(bytesOf word: some FixedWidthInteger & BitwiseCopyable) {
    let size = word.bitWidth / 8
    precondition(freeCapacity >= size, "no room for \(size) bytes")
    // There is room, as was just seen, and any bytes are what the buffer may hold.
    unsafe withUnsafeMutableBufferPointer { buffer, count in
      unsafe UnsafeMutableRawBufferPointer(buffer).storeBytes(
        of: word.bigEndian, toByteOffset: count, as: type(of: word))
      count += size
    }
  }
}
