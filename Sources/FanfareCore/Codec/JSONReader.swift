/// A pull parser for one JSON document in UTF-8 (RFC 8259).
///
/// It checks the grammar of everything it passes and creates only the values that the caller asks for, so it is several
/// times as fast as a decoder that builds a tree. Nesting is limited, so that no document can exhaust the stack. If a
/// member occurs twice, the caller sees both, in order.
package struct JSONReader: Sendable {
  /// The most levels of objects and arrays.
  package static let maximumDepth = 32

  let bytes: ArraySlice<UInt8>
  var position: Int
  /// The path to the current value, for error messages.
  /// Inline storage saves several allocations per record.
  private var path = InlineArray<32, PathStep>(repeating: .index(0))
  private var depth = 0
  /// Whether an escaped lone surrogate is an error. Otherwise it is read as U+FFFD.
  let refusesLoneSurrogates: Bool

  /// The byte range of a member's key, or an element's index.
  private enum PathStep: Sendable {
    case key(start: UInt32, end: UInt32)
    case index(UInt32)
  }

  /// Begins at the start of a document, behind a byte order mark, which some programs write (RFC 8259 §8.1 permits to
  /// ignore it). Throws if the bytes are not UTF-8.
  ///
  /// `refusesLoneSurrogates` is for documents of callers: text with half a character cannot be passed on. Topic records
  /// may contain such text since before it was refused.
  package init(_ bytes: ArraySlice<UInt8>, refusesLoneSurrogates: Bool = false) throws(JSONError) {
    self.init(validated: bytes, refusesLoneSurrogates: refusesLoneSurrogates)
    do { _ = try UTF8Span(validating: bytes.span) } catch { throw JSONError(field: "", problem: "is not UTF-8") }
    let start = bytes.startIndex
    if bytes.count >= 3, bytes[start] == 0xEF, bytes[start + 1] == 0xBB, bytes[start + 2] == 0xBF { position += 3 }
  }

  /// Begins at the start of a part of a document that another reader has validated as UTF-8.
  init(validated bytes: ArraySlice<UInt8>, refusesLoneSurrogates: Bool = false) {
    self.refusesLoneSurrogates = refusesLoneSurrogates
    self.bytes = bytes
    position = bytes.startIndex
  }

  /// The kinds of JSON values.
  package enum Kind: Hashable, Sendable { case object, array, string, number, boolean, null }

  /// The kind of the next value. Does not consume the value.
  package mutating func nextKind() throws(JSONError) -> Kind {
    skipWhitespace()
    switch peek() {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
    case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean
    case UInt8(ascii: "n"): return .null
    default: throw grammarError()
    }
  }

  /// Reads an object. `body` is called with each member's key and must read or skip its value.
  package mutating func readObject(_ body: (Key, inout JSONReader) throws(JSONError) -> Void) throws(JSONError) {
    // Keys are spans of this copy: `body` has exclusive access to the reader.
    let bytes = bytes
    skipWhitespace()
    guard peek() == UInt8(ascii: "{") else { throw typeError("an object") }
    guard depth < Self.maximumDepth else { throw error("nests deeper than \(Self.maximumDepth) levels") }
    position += 1
    skipWhitespace()
    if take(UInt8(ascii: "}")) { return }
    depth += 1
    while true {
      skipWhitespace()
      guard peek() == UInt8(ascii: "\"") else { throw grammarError() }
      let start = position + 1
      let hasEscapes = try skipString()
      let range = start..<(position - 1)
      path[depth - 1] = .key(start: offset(range.lowerBound), end: offset(range.upperBound))
      skipWhitespace()
      guard take(UInt8(ascii: ":")) else { throw grammarError() }
      if hasEscapes {
        let key = Self.unescaped(bytes[range])
        try body(key.utf8Span.span, &self)
      } else {
        try body(bytes.span.extracting(offsets(of: range)), &self)
      }
      skipWhitespace()
      if take(UInt8(ascii: ",")) { continue }
      guard take(UInt8(ascii: "}")) else { throw grammarError() }
      break
    }
    depth -= 1
  }

  /// Reads an array. `body` is called before each element and must read or skip it.
  package mutating func readArray(_ body: (inout JSONReader) throws(JSONError) -> Void) throws(JSONError) {
    skipWhitespace()
    guard peek() == UInt8(ascii: "[") else { throw typeError("an array") }
    guard depth < Self.maximumDepth else { throw error("nests deeper than \(Self.maximumDepth) levels") }
    position += 1
    skipWhitespace()
    if take(UInt8(ascii: "]")) { return }
    depth += 1
    var index: UInt32 = 0
    while true {
      path[depth - 1] = .index(index)
      try body(&self)
      skipWhitespace()
      index += 1
      if take(UInt8(ascii: ",")) { continue }
      guard take(UInt8(ascii: "]")) else { throw grammarError() }
      break
    }
    depth -= 1
  }

  /// Reads a string.
  package mutating func readString() throws(JSONError) -> String {
    let (range, hasEscapes) = try readContent()
    return hasEscapes ? Self.unescaped(bytes[range]) : bytes.span.extracting(offsets(of: range)).text
  }

  /// Reads a string as UTF-8 without creating a `String`, unless it contains escapes.
  package mutating func readUTF8<Value>(_ body: (Span<UInt8>) -> Value) throws(JSONError) -> Value {
    let (range, hasEscapes) = try readContent()
    guard hasEscapes else { return body(bytes.span.extracting(offsets(of: range))) }
    let text = Self.unescaped(bytes[range])
    return body(text.utf8Span.span)
  }

  /// Skips a string and returns the range of its content between the quotes.
  private mutating func readContent() throws(JSONError) -> (Range<Int>, hasEscapes: Bool) {
    skipWhitespace()
    guard peek() == UInt8(ascii: "\"") else { throw typeError("a string") }
    let start = position + 1
    let hasEscapes = try skipString()
    return (start..<(position - 1), hasEscapes)
  }

  /// Reads a whole number of at most 64 bits, written without exponent.
  ///
  /// A fraction of zeros is accepted: `60.0` is an integer to JSON Schema and to clients whose only numbers are
  /// floating-point ones.
  package mutating func readInteger() throws(JSONError) -> Int64 {
    skipWhitespace()
    let start = position
    guard try nextKind() == .number else { throw typeError("a whole number") }
    try skipNumber()
    let text = bytes[start..<position]
    let end = text.firstIndex(of: UInt8(ascii: ".")) ?? position
    guard let value = Int64(String(decoding: text[..<end], as: UTF8.self)),
      text[end...].dropFirst().allSatisfy({ $0 == UInt8(ascii: "0") })
    else { throw error("must be a whole number") }
    return value
  }

  /// Reads `true` or `false`.
  package mutating func readBoolean() throws(JSONError) -> Bool {
    guard try nextKind() == .boolean else { throw typeError("true or false") }
    if peek() == UInt8(ascii: "t") {
      try skipWord("true")
      return true
    }
    try skipWord("false")
    return false
  }

  /// Skips a `null`. Returns false and consumes nothing if the next value is something else.
  package mutating func readNull() throws(JSONError) -> Bool {
    guard try nextKind() == .null else { return false }
    try skipWord("null")
    return true
  }

  /// Reads any value and returns its bytes as they stand in the document.
  package mutating func readRaw() throws(JSONError) -> ArraySlice<UInt8> {
    skipWhitespace()
    let start = position
    try skipValue()
    return bytes[start..<position]
  }

  /// Skips any value, checking its grammar.
  package mutating func skipValue() throws(JSONError) {
    switch try nextKind() {
    case .object: try readObject { (_, reader) throws(JSONError) in try reader.skipValue() }
    case .array: try readArray { (reader) throws(JSONError) in try reader.skipValue() }
    case .string: _ = try skipString()
    case .number: try skipNumber()
    case .boolean: try skipWord(peek() == UInt8(ascii: "t") ? "true" : "false")
    case .null: try skipWord("null")
    }
  }

  /// Throws if the rest contains more than white space.
  package mutating func finish() throws(JSONError) {
    skipWhitespace()
    guard position == bytes.endIndex else {
      throw JSONError(field: "", problem: "has something after the end of its JSON value")
    }
  }

  /// An error about the current member or element.
  package func error(_ problem: String) -> JSONError {
    var field = ""
    for level in 0..<depth {
      switch path[level] {
      case .key(let start, let end):
        if !field.isEmpty { field += "." }
        let range = (bytes.startIndex + Int(start))..<(bytes.startIndex + Int(end))
        // An empty name is shown as quotes, so that the path stays complete.
        field += range.isEmpty ? "\"\"" : String(decoding: bytes[range].prefix(64), as: UTF8.self)
      case .index(let index): field += "[\(index)]"
      }
    }
    return JSONError(field: field, problem: problem)
  }

  /// The error about a member that occurs twice in its object.
  package func duplicateMember() -> JSONError { error("must be given once") }

  private func offsets(of range: Range<Int>) -> Range<Int> {
    (range.lowerBound - bytes.startIndex)..<(range.upperBound - bytes.startIndex)
  }

  private func offset(_ position: Int) -> UInt32 { UInt32(truncatingIfNeeded: position - bytes.startIndex) }

  func typeError(_ expected: String) -> JSONError {
    position < bytes.endIndex ? error("must be \(expected)") : grammarError()
  }

  func grammarError() -> JSONError {
    position < bytes.endIndex
      ? JSONError(field: "", problem: "is not JSON at byte \(position - bytes.startIndex)")
      : JSONError(field: "", problem: "ends in the middle of its JSON value")
  }
}

// MARK: - Values of the domain

extension JSONReader {
  /// Reads a moment (RFC 3339); nil if the string is not one.
  package mutating func readTime() throws(JSONError) -> UnixTime? { try readUTF8 { UnixTime(utf8: $0) } }

  /// Reads a registration's id; nil if the string is not one.
  package mutating func readRegistrationID() throws(JSONError) -> RegistrationID? {
    try readUTF8 { RegistrationID(utf8: $0) }
  }

  /// Reads the name or an alias of a platform in any letter case.
  package mutating func readPlatform() throws(JSONError) -> Platform {
    guard let platform = Platform(name: try readString()) else {
      throw error("must be \(Platform.allCases.map { "\"\($0)\"" }.alternatives)")
    }
    return platform
  }

  /// Reads the tags that a caller gives a device, each once; `null` is an empty list.
  ///
  /// Reserved tags do not count against the limit, so that a caller can send back the tags that the registry returned.
  package mutating func readTags(upTo maximum: Int = Tag.maximumCount) throws(JSONError) -> [String] {
    if try readNull() { return [] }
    return try readDistinctTags(upTo: maximum, counting: { !Tag.isReserved($0) }) { maximum in
      "is one tag more than the \(maximum) allowed"
    }
  }

  /// Reads an array of tags, each once. Only those that are counted may not be more than `maximum`.
  mutating func readDistinctTags(
    upTo maximum: Int, counting isCounted: (String) -> Bool = { _ in true }, orElse problem: (Int) -> String
  ) throws(JSONError) -> [String] {
    var (tags, count): ([String], Int) = ([], 0)
    // By bytes: canonically equivalent texts are different tags.
    var known: Set<[UInt8]> = []
    try readArray { (reader) throws(JSONError) in
      let tag = try reader.readTag()
      guard known.insert(Array(tag.utf8)).inserted else { return }
      if isCounted(tag) { count += 1 }
      guard count <= maximum else { throw reader.error(problem(maximum)) }
      tags.append(tag)
    }
    return tags
  }

  /// Reads one tag.
  /// A user's tag follows the rule for user names. The registry decides who may use it.
  package mutating func readTag() throws(JSONError) -> String {
    let tag = try readString()
    guard Tag.isAddressable(tag) else { throw error("must be \(Tag.rule)") }
    return tag
  }
}

/// An error that tells why bytes are not the expected JSON. Names the place, never the value.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The wrong member as a dotted path (`message.badge`, `platforms[1]`); empty for the whole
  /// document.
  package let field: String
  /// The problem: the rest of a sentence that begins with the field.
  package let problem: String

  package init(field: String, problem: String) {
    self.field = field
    self.problem = problem
  }

  package var description: String { field.isEmpty ? problem : "\(field) \(problem)" }
}
