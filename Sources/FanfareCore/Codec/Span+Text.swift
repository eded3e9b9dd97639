extension Span<UInt8> {
  /// Lets a `switch` over a key name the members of an object.
  package static func ~= (name: String, key: Span<UInt8>) -> Bool { key.hasBytes(of: name) }

  /// Whether they are the UTF-8 of the text.
  package func hasBytes(of text: String) -> Bool {
    // The lengths first, and not by way of the spans: of the names that a key is compared with, they rule out nearly
    // all.
    guard count == text.utf8.count else { return false }
    let other = text.utf8Span.span
    for index in indices where self[index] != other[index] { return false }
    return true
  }

  /// How many of the bytes from `start` on stand in a JSON string as they are: up to a quote, a backslash or a control
  /// character (RFC 8259 §7).
  ///
  /// Looks at eight at a time: most of a record is text, and each of its bytes would cost several steps otherwise.
  func plainCount(from start: Int) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var index = start
    while index + 8 <= count {
      let word = word(at: index)
      let (quote, backslash) = (word ^ ones &* 0x22, word ^ ones &* 0x5C)
      // The highest bit of each byte that is one of them; those above the lowest may be set for no reason, by a borrow.
      let special =
        ((word &- ones &* 0x20) & ~word | (quote &- ones) & ~quote | (backslash &- ones) & ~backslash) & (ones &* 0x80)
      if special != 0 { return index + special.trailingZeroBitCount / 8 - start }
      index += 8
    }
    while index < count, self[index] >= 0x20, self[index] != UInt8(ascii: "\""), self[index] != UInt8(ascii: "\\") {
      index += 1
    }
    return index - start
  }
}
