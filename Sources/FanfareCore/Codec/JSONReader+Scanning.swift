extension JSONReader {
  /// A member's name as UTF-8, without quotes and escapes.
  package typealias Key = Span<UInt8>

  func peek() -> UInt8 {
    position < bytes.endIndex ? bytes[position] : 0
  }

  mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position += 1
    return true
  }

  @inline(__always)
  mutating func skipWhitespace() {
    // The usual case: records contain no white space.
    guard peek() <= UInt8(ascii: " ") else { return }
    while position < bytes.endIndex {
      switch bytes[position] {
      case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"): position += 1
      default: return
      }
    }
  }

  mutating func skipWord(_ word: String) throws(JSONError) {
    for byte in word.utf8 {
      guard take(byte) else { throw grammarError() }
    }
  }

  /// Skips an object and returns its bytes, checking only its strings and braces.
  ///
  /// For an object that another reader will read and check. Any other value is read as by `readRaw`.
  mutating func readUnchecked() throws(JSONError) -> ArraySlice<UInt8> {
    guard try nextKind() == .object else { return try readRaw() }
    let start = position
    var open = 0
    while position < bytes.endIndex {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        _ = try skipString()
        continue
      case UInt8(ascii: "{"): open += 1
      case UInt8(ascii: "}"): open -= 1
      default: break
      }
      position += 1
      if open == 0 { return bytes[start..<position] }
    }
    throw grammarError()
  }

  /// Reads the next value with a reader of its own, which must consume all of it.
  ///
  /// That reader starts at depth 0, and its errors give paths relative to the value.
  mutating func readNested<Value>(_ body: (inout JSONReader) throws(JSONError) -> Value) throws(JSONError) -> Value {
    skipWhitespace()
    var inner = JSONReader(validated: bytes[position...], refusesLoneSurrogates: refusesLoneSurrogates)
    let value = try body(&inner)
    position = inner.position
    return value
  }

  /// Skips a string including its quotes. Returns whether it contains escapes.
  mutating func skipString() throws(JSONError) -> Bool {
    position += 1
    let start = position
    var hasEscapes = false
    while true {
      position += bytes.span.plainCount(from: position - bytes.startIndex)
      guard position < bytes.endIndex else { throw grammarError() }
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        if hasEscapes, refusesLoneSurrogates, Self.hasLoneSurrogate(bytes[start..<(position - 1)]) {
          throw error("has a lone surrogate, which is no character")
        }
        return hasEscapes
      case UInt8(ascii: "\\"):
        hasEscapes = true
        position += 1
        try skipEscape()
      default: throw grammarError()
      }
    }
  }

  private mutating func skipEscape() throws(JSONError) {
    let byte = peek()
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return
    case UInt8(ascii: "u"):
      for _ in 0..<4 {
        guard Hexadecimal.value(of: peek()) != nil else { throw grammarError() }
        position += 1
      }
    default:
      position -= 1
      throw grammarError()
    }
  }

  mutating func skipNumber() throws(JSONError) {
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")) { try skipDigits() }
    if take(UInt8(ascii: ".")) { try skipDigits() }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      _ = take(UInt8(ascii: "+")) || take(UInt8(ascii: "-"))
      try skipDigits()
    }
  }

  private mutating func skipDigits() throws(JSONError) {
    let start = position
    while position < bytes.endIndex, bytes[position] >= UInt8(ascii: "0"), bytes[position] <= UInt8(ascii: "9") {
      position += 1
    }
    guard position > start else { throw grammarError() }
  }

  /// Whether a string's content, whose escapes `skipString` has checked, has half of a surrogate pair.
  private static func hasLoneSurrogate(_ content: ArraySlice<UInt8>) -> Bool {
    var rest = content
    // The index behind the last high surrogate: the low one must begin there.
    var pending: Int?
    while let backslash = rest.firstIndex(of: UInt8(ascii: "\\")) {
      if let pending, pending != backslash { return true }
      guard rest[backslash + 1] == UInt8(ascii: "u") else {
        if pending != nil { return true }
        rest = rest[(backslash + 2)...]
        continue
      }
      let unit = rest[(backslash + 2)..<(backslash + 6)].reduce(0) { $0 << 4 | UInt16(Hexadecimal.value(of: $1) ?? 0) }
      rest = rest[(backslash + 6)...]
      switch (unit & 0xFC00, pending) {
      case (0xD800, nil): pending = rest.startIndex
      case (0xDC00, .some): pending = nil
      case (0xD800, .some), (0xDC00, nil), (_, .some): return true
      default: break
      }
    }
    return pending != nil
  }

  /// The text of a string's content after `skipString` has checked its escapes.
  /// A lone surrogate becomes U+FFFD.
  static func unescaped(_ content: ArraySlice<UInt8>) -> String {
    var units: [UInt16] = []
    var text = ""
    var rest = content
    func flushUnits() {
      if !units.isEmpty { text += String(decoding: units, as: UTF16.self) }
      units.removeAll(keepingCapacity: true)
    }
    while let backslash = rest.firstIndex(of: UInt8(ascii: "\\")) {
      if backslash > rest.startIndex {
        flushUnits()
        text += String(decoding: rest[rest.startIndex..<backslash], as: UTF8.self)
      }
      let escape = rest[backslash + 1]
      rest = rest[(backslash + 2)...]
      switch escape {
      case UInt8(ascii: "b"): units.append(0x08)
      case UInt8(ascii: "f"): units.append(0x0C)
      case UInt8(ascii: "n"): units.append(0x0A)
      case UInt8(ascii: "r"): units.append(0x0D)
      case UInt8(ascii: "t"): units.append(0x09)
      case UInt8(ascii: "u"):
        units.append(rest.prefix(4).reduce(0) { $0 << 4 | UInt16(Hexadecimal.value(of: $1) ?? 0) })
        rest = rest.dropFirst(4)
      default: units.append(UInt16(escape))
      }
    }
    flushUnits()
    text += String(decoding: rest, as: UTF8.self)
    return text
  }
}

extension Span<UInt8> {
  /// Lets a `switch` over a key name the members of an object.
  package static func ~= (name: String, key: Span<UInt8>) -> Bool { key.hasBytes(of: name) }

  /// Whether the bytes are the UTF-8 of the text.
  package func hasBytes(of text: String) -> Bool {
    // Comparing the lengths first, without creating a span, rules out most names that a key is compared with.
    guard count == text.utf8.count else { return false }
    let other = text.utf8Span.span
    for index in indices where self[index] != other[index] { return false }
    return true
  }

  /// The number of bytes from `start` on that need no escape in a JSON string.
  ///
  /// They end at a quote, a backslash or a control character (RFC 8259 §7). Eight bytes are tested at a time: most of a
  /// record is text, and each byte would cost several steps otherwise.
  func plainCount(from start: Int) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var index = start
    while index + 8 <= count {
      let word = word(at: index)
      let (quote, backslash) = (word ^ ones &* 0x22, word ^ ones &* 0x5C)
      // Sets the highest bit of each special byte. A borrow may set bits above the lowest one wrongly, never below it.
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
