/// JSON written by hand into bytes: an order of magnitude cheaper than an encoder, and a record's shape is plain to
/// see.
extension [UInt8] {
  /// Appends a JSON string with its quotes. Escapes what RFC 8259 §7 demands, and nothing else.
  package mutating func appendJSON(_ string: String) {
    append(UInt8(ascii: "\""))
    // A span: the string's own iterator costs several times as much per byte.
    let bytes = string.utf8Span.span
    if bytes.plainCount(from: 0) == bytes.count {
      append(copying: bytes)
    } else {
      for index in bytes.indices { appendEscaped(bytes[index]) }
    }
    append(UInt8(ascii: "\""))
  }

  /// Appends a JSON number.
  package mutating func appendJSON(_ number: some BinaryInteger) {
    // Counts of attempts and HTTP statuses, that is; a string is made for the rest.
    guard number >= 0 && number < 1000 else { return append(contentsOf: String(number).utf8) }
    let value = Int(truncatingIfNeeded: number)
    if value >= 100 { append(UInt8(ascii: "0") + UInt8(value / 100)) }
    if value >= 10 { append(UInt8(ascii: "0") + UInt8(value / 10 % 10)) }
    append(UInt8(ascii: "0") + UInt8(value % 10))
  }

  /// Appends a JSON string that holds an identifier.
  package mutating func appendJSON<Subject>(_ identifier: Identifier<Subject>) {
    append(UInt8(ascii: "\""))
    identifier.append(to: &self)
    append(UInt8(ascii: "\""))
  }

  /// Appends a JSON string that holds a moment.
  package mutating func appendJSON(_ time: UnixTime) {
    append(UInt8(ascii: "\""))
    time.append(to: &self)
    append(UInt8(ascii: "\""))
  }

  private mutating func appendEscaped(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): append(literal: "\\\"")
    case UInt8(ascii: "\\"): append(literal: "\\\\")
    case 0x0A: append(literal: "\\n")
    case 0x0D: append(literal: "\\r")
    case 0x09: append(literal: "\\t")
    case 0..<0x20:
      append(literal: "\\u00")
      append(Hexadecimal.digit(byte >> 4))
      append(Hexadecimal.digit(byte & 0xF))
    default: append(byte)
    }
  }
}
