import NIOCore

/// Reads the answers of an HTTP/1.1 server that announces their lengths, one at a time.
struct HTTPAnswer {
  private static let endOfHead = Array("\r\n\r\n".utf8)
  private static let contentLength = Array("\r\ncontent-length:".utf8)

  private var bytes: [UInt8] = []

  /// Takes what has come; gives the status once the answer is whole. Throws when it is none, or something follows it.
  mutating func read(_ buffer: ByteBuffer) throws(BenchError) -> Int? {
    bytes.append(contentsOf: buffer.readableBytesView)
    guard let end = Self.end(of: Self.endOfHead, in: bytes) else { return nil }
    guard let status = Self.number(in: bytes[..<end].dropFirst("HTTP/1.1 ".utf8.count)),
      let field = Self.end(of: Self.contentLength, in: bytes), field < end,
      let length = Self.number(in: bytes[field..<end])
    else { throw BenchError("the front end answered something that is not HTTP, or of no known length") }
    guard bytes.count >= end + length else { return nil }
    guard bytes.count == end + length else { throw BenchError("the front end answered more than it was asked") }
    bytes.removeAll(keepingCapacity: true)
    return status
  }

  /// The number that begins after any spaces.
  private static func number(in bytes: ArraySlice<UInt8>) -> Int? {
    let digits = bytes.drop { $0 == UInt8(ascii: " ") }.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  /// Where the first occurrence of a mark, given in lower case, ends.
  private static func end(of mark: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= mark.count else { return nil }
    for start in 0...(bytes.count - mark.count) where bytes[start] == mark[0] {
      var length = 1
      while length < mark.count, lowercased(bytes[start + length]) == mark[length] { length += 1 }
      if length == mark.count { return start + length }
    }
    return nil
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
