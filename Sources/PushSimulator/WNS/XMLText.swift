/// Checks that a text is a well-formed XML document, as far as notification payloads need it: elements, attributes,
/// text, comments, CDATA, predefined and numeric references, a declaration. A document type is refused, as by WNS,
/// because it could declare external entities.
struct XMLText {
  /// The deepest nesting of elements.
  static let maximumDepth = 64

  private let bytes: [UInt8]
  private var position = 0

  /// The name of a document's root element; nil if the document is not well-formed.
  static func rootElement(of bytes: [UInt8]) -> String? {
    // Only UTF-8 with the characters of XML 1.0 §2.2.
    guard let text = String(validating: bytes, as: UTF8.self), text.unicodeScalars.allSatisfy(isCharacter) else {
      return nil
    }
    var reader = XMLText(bytes: bytes)
    return reader.readDocument()
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func readDocument() -> String? {
    if starts(with: "\u{FEFF}") { position += 3 }
    if starts(with: "<?xml"), !skip(past: "?>") { return nil }
    guard skipMisc(), starts(with: "<"), let root = readElements() else { return nil }
    guard skipMisc(), position == bytes.count else { return nil }
    return root
  }

  /// Reads the root element with its content; nil if it is malformed.
  private mutating func readElements() -> String? {
    var open: [String] = []
    var root: String?
    repeat {
      guard position < bytes.count else { return nil }
      if bytes[position] != UInt8(ascii: "<") {
        guard readText() else { return nil }
      } else if starts(with: "<!--") {
        guard skip(past: "-->") else { return nil }
      } else if starts(with: "<![CDATA[") {
        guard skip(past: "]]>") else { return nil }
      } else if starts(with: "<?") {
        guard skip(past: "?>") else { return nil }
      } else if starts(with: "</") {
        position += 2
        guard let name = readName(), name == open.popLast() else { return nil }
        skipWhitespace()
        guard take(">") else { return nil }
      } else {
        guard let (name, isEmpty) = readStartTag(), open.count < Self.maximumDepth else { return nil }
        if root == nil { root = name }
        if !isEmpty { open.append(name) }
      }
    } while !open.isEmpty
    return root
  }

  private mutating func readStartTag() -> (name: String, isEmpty: Bool)? {
    position += 1
    guard let name = readName() else { return nil }
    var attributes: Set<String> = []
    while true {
      let hadSpace = skipWhitespace()
      if take("/>") { return (name, true) }
      if take(">") { return (name, false) }
      guard hadSpace, let attribute = readName(), attributes.insert(attribute).inserted else { return nil }
      skipWhitespace()
      guard take("=") else { return nil }
      skipWhitespace()
      guard readAttributeValue() else { return nil }
    }
  }

  private mutating func readAttributeValue() -> Bool {
    guard position < bytes.count else { return false }
    let quote = bytes[position]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return false }
    position += 1
    while position < bytes.count {
      switch bytes[position] {
      case quote:
        position += 1
        return true
      case UInt8(ascii: "<"): return false
      case UInt8(ascii: "&"): guard readReference() else { return false }
      default: position += 1
      }
    }
    return false
  }

  private mutating func readText() -> Bool {
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") {
      if starts(with: "]]>") { return false }
      if bytes[position] == UInt8(ascii: "&") {
        guard readReference() else { return false }
      } else {
        position += 1
      }
    }
    return true
  }

  private mutating func readReference() -> Bool {
    guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return false }
    let name = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
    position = end + 1
    if name.hasPrefix("#") {
      let number = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
      return number.flatMap(Unicode.Scalar.init).map(Self.isCharacter) ?? false
    }
    return ["amp", "lt", "gt", "quot", "apos"].contains(name)
  }

  private mutating func readName() -> String? {
    let start = position
    while position < bytes.count, Self.isNameByte(bytes[position], isFirst: position == start) { position += 1 }
    return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
  }

  private mutating func skipMisc() -> Bool {
    while true {
      skipWhitespace()
      if starts(with: "<!--") {
        guard skip(past: "-->") else { return false }
      } else if starts(with: "<?") {
        guard skip(past: "?>") else { return false }
      } else {
        return true
      }
    }
  }

  @discardableResult
  private mutating func skipWhitespace() -> Bool {
    let start = position
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    return position > start
  }

  private mutating func skip(past end: String) -> Bool {
    while position < bytes.count {
      if take(end) { return true }
      position += 1
    }
    return false
  }

  private mutating func take(_ text: String) -> Bool {
    guard starts(with: text) else { return false }
    position += text.utf8.count
    return true
  }

  private func starts(with text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

  private static func isNameByte(_ byte: UInt8, isFirst: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
      UInt8(ascii: ":"),
      0x80...:
      true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."): !isFirst
    default: false
    }
  }

  private static func isCharacter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A, 0x0D, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
    default: false
    }
  }
}
