extension JSONReader {
  /// A member's name as UTF-8, without its quotes and escapes.
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
    // Records are written without any.
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

  /// Passes over an object without looking at more of it than its strings and braces, and gives its bytes: for one that
  /// is going to be read by a reader of its own, which checks the rest. Anything else is read as `readRaw` does.
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

  /// Reads the next value by a reader of its own, which must read all of it: it nests from depth 0 again, and its
  /// errors speak of the value alone.
  mutating func readApart<Value>(_ body: (inout JSONReader) throws(JSONError) -> Value) throws(JSONError) -> Value {
    skipWhitespace()
    var inner = JSONReader(validated: bytes[position...])
    let value = try body(&inner)
    position = inner.position
    return value
  }

  /// Passes over a string from its opening to behind its closing quote; true when it contains escapes.
  mutating func skipString() throws(JSONError) -> Bool {
    position += 1
    var hasEscapes = false
    while true {
      position += bytes.span.plainCount(from: position - bytes.startIndex)
      guard position < bytes.endIndex else { throw grammarError() }
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
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
      UInt8(ascii: "n"),
      UInt8(ascii: "r"), UInt8(ascii: "t"):
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

  /// The text of a string's content whose escapes `skipString` has checked. A lone surrogate, which UTF-8 cannot hold,
  /// becomes U+FFFD.
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
