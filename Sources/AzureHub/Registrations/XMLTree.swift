import FanfareCore

/// An element of an XML document with its content, for the small documents of Azure's clients.
///
/// Prefixes of names are dropped, because each client chooses its own. A document type is refused, so there are no
/// entities but the five of XML itself; size, depth and number of elements are bounded.
struct XMLTree: Hashable, Sendable {
  /// The most levels of elements.
  static let maximumDepth = 16
  /// The most elements of a document, unless it is a page of registrations.
  static let maximumCount = 4096
  /// The most elements of a page of registrations, each of which may have many header fields.
  static let maximumCountOfPage = RegistrationListRequest.maximumTop * 1000

  /// Without prefix.
  let name: String
  /// By names without prefix.
  fileprivate(set) var attributes: [String: String] = [:]
  fileprivate(set) var children: [XMLTree] = []
  /// The element's own text.
  fileprivate(set) var text = ""

  fileprivate init(name: String) { self.name = name }

  /// Parses a document in UTF-8.
  ///
  /// The declaration's encoding is ignored: .NET's string writer declares `utf-16` for text that is sent as UTF-8.
  init(_ document: ArraySlice<UInt8>, maximumCount: Int = Self.maximumCount) throws(XMLError) {
    guard String(validating: document, as: UTF8.self) != nil else {
      throw XMLError(position: nil, problem: "is not UTF-8")
    }
    var parser = XMLTreeParser(document, maximumCount: maximumCount)
    self = try parser.readDocument()
  }

  /// The first child of the name.
  func child(_ name: String) -> XMLTree? { children.first { $0.name == name } }

  /// The text of the first child of the name; nil if there is none or it is marked `nil="true"`.
  func value(_ name: String) -> String? {
    guard let child = child(name), child.attributes["nil"] != "true" else { return nil }
    return child.text
  }
}

/// Tells why bytes are not the expected XML. Names the place, never the content.
struct XMLError: Error, Hashable, CustomStringConvertible {
  /// The byte in the document; nil for the whole document.
  let position: Int?
  /// The rest of a sentence that begins with the document.
  let problem: String

  var description: String { "the XML " + problem + (position.map { " at byte \($0)" } ?? "") }
}

/// A recursive-descent parser of XML 1.0 without document types.
private struct XMLTreeParser {
  private let bytes: ArraySlice<UInt8>
  private let maximumCount: Int
  private var position: Int
  private var count = 0

  init(_ bytes: ArraySlice<UInt8>, maximumCount: Int) {
    (self.bytes, self.maximumCount) = (bytes, maximumCount)
    position = bytes.startIndex
  }

  mutating func readDocument() throws(XMLError) -> XMLTree {
    _ = take("\u{FEFF}")
    try skipBetweenElements()
    if bytes[position...].starts(with: "<!".utf8) { throw error("must not have a document type") }
    let root = try readElement(depth: 1)
    try skipBetweenElements()
    guard position == bytes.endIndex else { throw error("has something after its root element") }
    return root
  }

  private func error(_ problem: String) -> XMLError {
    XMLError(position: position - bytes.startIndex, problem: problem)
  }

  private func peek() -> UInt8? { position < bytes.endIndex ? bytes[position] : nil }

  private mutating func take(_ text: String) -> Bool {
    guard bytes[position...].starts(with: text.utf8) else { return false }
    position += text.utf8.count
    return true
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

  /// Returns whether there was white space.
  @discardableResult
  private mutating func skipSpace() -> Bool {
    let start = position
    while let byte = peek(), Self.isSpace(byte) { position += 1 }
    return position > start
  }

  /// Returns the bytes before the text, and continues behind it.
  private mutating func readUntil(_ end: String) throws(XMLError) -> ArraySlice<UInt8> {
    let (start, pattern) = (position, Array(end.utf8))
    while position <= bytes.endIndex - pattern.count {
      if bytes[position] == pattern[0], bytes[position...].starts(with: pattern) {
        defer { position += pattern.count }
        return bytes[start..<position]
      }
      position += 1
    }
    position = start
    throw error("has a part without its end")
  }

  /// Skips a comment or processing instruction. Returns false if there is none.
  private mutating func skipAside() throws(XMLError) -> Bool {
    if take("<!--") {
      _ = try readUntil("-->")
    } else if take("<?") {
      _ = try readUntil("?>")
    } else {
      return false
    }
    return true
  }

  private mutating func skipBetweenElements() throws(XMLError) {
    repeat { skipSpace() } while try skipAside()
  }

  private mutating func readName() throws(XMLError) -> ArraySlice<UInt8> {
    let start = position
    while let byte = peek() {
      let isFirst = position == start
      guard
        byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":")
          || byte.isLetterOrDigit && !(isFirst && byte <= UInt8(ascii: "9"))
          || !isFirst && (byte == UInt8(ascii: "-") || byte == UInt8(ascii: "."))
      else { break }
      position += 1
    }
    guard position > start else { throw error("must have a name") }
    return bytes[start..<position]
  }

  private static func local(_ name: ArraySlice<UInt8>) -> String {
    let end = name.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? name.startIndex
    return String(decoding: name[end...], as: UTF8.self)
  }

  private mutating func readElement(depth: Int) throws(XMLError) -> XMLTree {
    guard depth <= XMLTree.maximumDepth else { throw error("nests deeper than \(XMLTree.maximumDepth) levels") }
    count += 1
    guard count <= maximumCount else { throw error("has more than \(maximumCount) elements") }
    guard take("<") else { throw error("must have an element") }
    let name = try readName()
    var element = XMLTree(name: Self.local(name))
    while true {
      let isSeparated = skipSpace()
      if take("/>") { return element }
      if take(">") { break }
      guard isSeparated else { throw error("must have white space or '>'") }
      let attribute = Self.local(try readName())
      skipSpace()
      guard take("=") else { throw error("must have '='") }
      skipSpace()
      element.attributes[attribute] = try readAttributeValue()
    }
    try readContent(of: &element, depth: depth)
    guard try readName().elementsEqual(name) else { throw error("has an end tag that does not match") }
    skipSpace()
    guard take(">") else { throw error("must have '>'") }
    return element
  }

  private mutating func readAttributeValue() throws(XMLError) -> String {
    guard let quote = peek(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw error("must have a quoted value")
    }
    position += 1
    var value: [UInt8] = []
    while let byte = peek(), byte != quote {
      guard byte != UInt8(ascii: "<") else { throw error("must not have '<' in an attribute") }
      try appendCharacter(to: &value)
    }
    guard peek() != nil else { throw error("ends in an attribute") }
    position += 1
    return String(decoding: value, as: UTF8.self)
  }

  /// Reads to the end tag, and the tag's `</`.
  private mutating func readContent(of element: inout XMLTree, depth: Int) throws(XMLError) {
    var text: [UInt8] = []
    while let byte = peek() {
      guard byte == UInt8(ascii: "<") else {
        try appendCharacter(to: &text)
        continue
      }
      if take("</") {
        element.text = String(decoding: text, as: UTF8.self)
        return
      }
      if take("<![CDATA[") {
        let start = position
        let content = try readUntil("]]>")
        guard content.allSatisfy(Self.isAllowed) else {
          position = start
          throw error("has a control character")
        }
        text += content
      } else if try !skipAside() {
        element.children.append(try readElement(depth: depth + 1))
      }
    }
    throw error("ends in the middle of an element")
  }

  private static func isAllowed(_ byte: UInt8) -> Bool { byte >= 0x20 || isSpace(byte) }

  /// Reads a byte of text or a reference.
  private mutating func appendCharacter(to text: inout [UInt8]) throws(XMLError) {
    let byte = bytes[position]
    guard byte == UInt8(ascii: "&") else {
      guard Self.isAllowed(byte) else { throw error("has a control character") }
      text.append(byte)
      position += 1
      return
    }
    let start = position
    position += 1
    // The longest is &#x10FFFF;
    guard let end = bytes[position...].prefix(10).firstIndex(of: UInt8(ascii: ";")) else {
      position = start
      throw error("has a '&' without its ';'")
    }
    let reference = String(decoding: bytes[position..<end], as: UTF8.self)
    guard let scalar = Self.scalar(reference) else {
      position = start
      throw error("has an unknown reference")
    }
    text += String(Character(scalar)).utf8
    position = end + 1
  }

  private static func scalar(_ reference: String) -> Unicode.Scalar? {
    switch reference {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      guard reference.hasPrefix("#") else { return nil }
      let number =
        reference.hasPrefix("#x") ? UInt32(reference.dropFirst(2), radix: 16) : UInt32(reference.dropFirst(), radix: 10)
      guard let number, number >= 0x20 || isSpace(UInt8(number)), number != 0xFFFE, number != 0xFFFF else { return nil }
      return Unicode.Scalar(number)
    }
  }
}
