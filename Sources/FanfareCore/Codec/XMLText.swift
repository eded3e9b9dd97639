extension [UInt8] {
  /// Appends text as the content of an element or a quoted attribute.
  ///
  /// Escapes markup, and white space that a reader would normalise. Leaves out the characters that XML 1.0 forbids
  /// (§2.2: most control characters, U+FFFE and U+FFFF), because one of them makes the whole document unreadable.
  package mutating func appendXML(_ text: String) {
    var previous: (UInt8, UInt8) = (0, 0)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): append(contentsOf: "&amp;".utf8)
      case UInt8(ascii: "<"): append(contentsOf: "&lt;".utf8)
      case UInt8(ascii: ">"): append(contentsOf: "&gt;".utf8)
      case UInt8(ascii: "\""): append(contentsOf: "&quot;".utf8)
      case UInt8(ascii: "'"): append(contentsOf: "&apos;".utf8)
      case 0x09: append(contentsOf: "&#9;".utf8)
      case 0x0A: append(contentsOf: "&#10;".utf8)
      case 0x0D: append(contentsOf: "&#13;".utf8)
      case 0..<0x20: break
      case 0xBE, 0xBF:
        // U+FFFE and U+FFFF are EF BF BE and EF BF BF.
        if previous == (0xEF, 0xBF) {
          removeLast(2)
        } else {
          append(byte)
        }
      default: append(byte)
      }
      previous = (previous.1, byte)
    }
  }
}

extension UInt8 {
  /// Whether it is an ASCII letter or digit.
  package var isLetterOrDigit: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
