/// Divides a template into literal bytes and expressions.
struct TemplatePieces {
  private(set) var pieces: [Template.Piece] = []
  private let bytes: [UInt8]
  /// The end of the part that is in `pieces`.
  private var copied = 0

  private init(_ source: String) { bytes = Array(source.utf8) }

  /// Adds the bytes up to `start`, then the expression, which stands for those up to `end`.
  private mutating func add(_ expression: TemplateExpression, for range: Range<Int>) {
    addBytes(upTo: range.lowerBound)
    pieces.append(.value(expression))
    copied = range.upperBound
  }

  private mutating func addBytes(upTo end: Int) {
    if copied < end { pieces.append(.bytes(Array(bytes[copied..<end]))) }
  }
}

// MARK: - JSON

extension TemplatePieces {
  /// Divides a JSON document: each string but the names of members may be an expression.
  init(json source: String) throws(TemplateError) {
    self.init(source)
    // An error of the template language, carried out of the reader's closures, which throw its own errors.
    var failure: TemplateError?
    var reader = JSONReader(validated: bytes[...], refusesLoneSurrogates: true)
    do throws(JSONError) {
      try readValue(&reader, &failure)
      try reader.finish()
    } catch {
      throw failure ?? TemplateError(error)
    }
    addBytes(upTo: bytes.count)
  }

  private mutating func readValue(_ reader: inout JSONReader, _ failure: inout TemplateError?) throws(JSONError) {
    switch try reader.nextKind() {
    case .object:
      try reader.readObject { (_, reader) throws(JSONError) in try readValue(&reader, &failure) }
    case .array:
      try reader.readArray { (reader) throws(JSONError) in try readValue(&reader, &failure) }
    case .string:
      let start = reader.position
      let text = try reader.readString()
      do throws(TemplateError) {
        if let expression = try TemplateExpression(text) { add(expression, for: start..<reader.position) }
      } catch {
        let place = reader.error("is no expression")
        failure = error.within(place.field)
        throw place
      }
    case .number, .boolean, .null: try reader.skipValue()
    }
  }
}

// MARK: - XML

extension TemplatePieces {
  /// The most elements within each other.
  private static let maximumDepth = 32

  /// Divides an XML document: each attribute's value and each text between tags may be an expression.
  ///
  /// Checks that tags match and attributes are quoted; a document type is refused.
  init(xml source: String) throws(TemplateError) {
    self.init(source)
    var scanner = XMLScanner(bytes: bytes)
    var hasRoot = false
    while scanner.position < bytes.count {
      let start = scanner.position
      if scanner.take("<!--") {
        try scanner.skip(past: "-->")
      } else if scanner.take("<![CDATA[") {
        try scanner.skip(past: "]]>")
        let text = String(decoding: bytes[(start + 9)..<(scanner.position - 3)], as: UTF8.self)
        try addExpression(in: text, at: scanner.path, for: start..<scanner.position)
      } else if scanner.take("<?") {
        try scanner.skip(past: "?>")
      } else if scanner.take("<!") {
        throw TemplateError(problem: "must not have a document type")
      } else if scanner.take("</") {
        try scanner.endElement()
      } else if scanner.take("<") {
        guard !hasRoot || !scanner.elements.isEmpty else { throw TemplateError(problem: "must have one root element") }
        hasRoot = true
        guard scanner.elements.count < Self.maximumDepth else {
          throw TemplateError(problem: "nests deeper than \(Self.maximumDepth) elements")
        }
        try readTag(&scanner)
      } else {
        let range = scanner.skipText()
        let text = try scanner.decoded(range, at: scanner.path)
        guard !scanner.elements.isEmpty else {
          guard text.unicodeScalars.allSatisfy({ $0.properties.isWhitespace || $0 == "\u{FEFF}" }) else {
            throw TemplateError(problem: "must have no text outside its root element")
          }
          continue
        }
        try addExpression(in: text, at: scanner.path, for: range)
      }
    }
    guard hasRoot, scanner.elements.isEmpty else {
      throw TemplateError(field: scanner.path, problem: "must have an end tag")
    }
    addBytes(upTo: bytes.count)
  }

  private mutating func readTag(_ scanner: inout XMLScanner) throws(TemplateError) {
    try scanner.beginElement()
    while let attribute = try scanner.nextAttribute() {
      let place = "\(scanner.path).@\(attribute.name)"
      try addExpression(in: try scanner.decoded(attribute.value, at: place), at: place, for: attribute.value)
    }
  }

  private mutating func addExpression(in text: String, at place: String, for range: Range<Int>) throws(TemplateError) {
    do throws(TemplateError) {
      if let expression = try TemplateExpression(text) { add(expression, for: range) }
    } catch {
      throw error.within(place)
    }
  }
}

/// Finds the tags, attributes and texts of an XML document (XML 1.0, without document types).
private struct XMLScanner {
  let bytes: [UInt8]
  private(set) var position = 0
  private(set) var elements: [String] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// The names of the open elements, as an error names them.
  var path: String { elements.joined(separator: ".") }

  private func error(_ problem: String) -> TemplateError {
    TemplateError(field: path, problem: "\(problem) at byte \(position)")
  }

  mutating func take(_ text: String) -> Bool {
    guard bytes[position...].starts(with: text.utf8) else { return false }
    position += text.utf8.count
    return true
  }

  mutating func skip(past end: String) throws(TemplateError) {
    while position < bytes.count {
      if take(end) { return }
      position += 1
    }
    throw error("must have \(end)")
  }

  /// Skips to the next tag. Returns the range of the text before it.
  mutating func skipText() -> Range<Int> {
    let start = position
    position = bytes[start...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
    return start..<position
  }

  private mutating func skipWhitespace() -> Bool {
    let start = position
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    return position > start
  }

  private mutating func readName() throws(TemplateError) -> String {
    let start = position
    while position < bytes.count, Self.isNameByte(bytes[position]) { position += 1 }
    guard position > start, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[start]) else {
      throw error("must have a name")
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: ":"), 0x80...:
      true
    default: false
    }
  }

  /// Reads the name of a start tag, behind its `<`.
  mutating func beginElement() throws(TemplateError) { elements.append(try readName()) }

  /// Reads the rest of an end tag, behind its `</`.
  mutating func endElement() throws(TemplateError) {
    let name = try readName()
    guard elements.last == name else { throw error("must have the end tag of the open element") }
    _ = skipWhitespace()
    guard take(">") else { throw error("must have '>'") }
    elements.removeLast()
  }

  /// Reads the next attribute of a start tag; nil after the tag's end.
  mutating func nextAttribute() throws(TemplateError) -> (name: String, value: Range<Int>)? {
    let hasSpace = skipWhitespace()
    if take("/>") {
      elements.removeLast()
      return nil
    }
    if take(">") { return nil }
    guard hasSpace else { throw error("must have white space before an attribute") }
    let name = try readName()
    _ = skipWhitespace()
    guard take("=") else { throw error("must have '=' after an attribute's name") }
    _ = skipWhitespace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'") else {
      throw error("must have a quoted value")
    }
    let (start, quote) = (position + 1, bytes[position])
    guard let end = bytes[start...].firstIndex(of: quote), !bytes[start..<end].contains(UInt8(ascii: "<")) else {
      throw error("must have a closing quote")
    }
    position = end + 1
    return (name, start..<end)
  }

  /// The text of a range, with its references replaced by characters.
  func decoded(_ range: Range<Int>, at place: String) throws(TemplateError) -> String {
    var text = ""
    var rest = bytes[range]
    while let ampersand = rest.firstIndex(of: UInt8(ascii: "&")) {
      text += String(decoding: rest[..<ampersand], as: UTF8.self)
      guard let end = rest[ampersand...].prefix(12).firstIndex(of: UInt8(ascii: ";")),
        let scalar = Self.character(String(decoding: rest[(ampersand + 1)..<end], as: UTF8.self))
      else { throw TemplateError(field: place, problem: "has an '&' that begins no reference to a character") }
      text.unicodeScalars.append(scalar)
      rest = rest[(end + 1)...]
    }
    return text + String(decoding: rest, as: UTF8.self)
  }

  private static func character(_ reference: String) -> Unicode.Scalar? {
    switch reference {
    case "lt": "<"
    case "gt": ">"
    case "amp": "&"
    case "quot": "\""
    case "apos": "'"
    case let code where code.hasPrefix("#x"): UInt32(code.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
    case let code where code.hasPrefix("#"): UInt32(code.dropFirst()).flatMap(Unicode.Scalar.init)
    default: nil
    }
  }
}
