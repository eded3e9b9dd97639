/// A value with one JSON form.
package protocol JSONWritable {
  /// Writes the value, and nothing before or after it.
  func write(to json: inout JSONWriter)
}

/// Writes one JSON value as bytes: no white space, members in the order of the calls.
///
/// It appends to one buffer and builds no tree, so it is about ten times as fast as `JSONEncoder`: a record is written
/// for every push. Call `member` only inside an object and `element` only inside an array.
package struct JSONWriter {
  /// The bytes written so far.
  package private(set) var bytes: [UInt8] = []
  /// Whether the next member or element has a predecessor in its object or array.
  private var needsComma = false

  /// Begins an empty document. `capacity` bytes can be written without a reallocation.
  package init(capacity: Int = 256) {
    bytes.reserveCapacity(capacity)
  }

  /// The bytes of one value.
  package static func bytes(of value: some JSONWritable, capacity: Int = 256) -> [UInt8] {
    var json = JSONWriter(capacity: capacity)
    value.write(to: &json)
    return json.bytes
  }

  /// The bytes of one object.
  package static func object(capacity: Int = 256, _ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var json = JSONWriter(capacity: capacity)
    json.object(members)
    return json.bytes
  }

  // MARK: Objects and arrays

  /// Writes an object whose members `members` writes.
  package mutating func object(_ members: (inout JSONWriter) -> Void) {
    open("{")
    members(&self)
    close("}")
  }

  /// Writes an array whose elements `elements` writes.
  package mutating func array(_ elements: (inout JSONWriter) -> Void) {
    open("[")
    elements(&self)
    close("]")
  }

  /// Writes a member. A nil optional is written as `null`.
  package mutating func member(_ name: StaticString, _ value: some JSONWritable) {
    key(name)
    value.write(to: &self)
    needsComma = true
  }

  /// Writes a member, or nothing if the value is nil.
  package mutating func member(_ name: StaticString, ifPresent value: (some JSONWritable)?) {
    if let value { member(name, value) }
  }

  /// Writes a member whose value `value` writes.
  package mutating func member(_ name: StaticString, write value: (inout JSONWriter) -> Void) {
    key(name)
    value(&self)
    needsComma = true
  }

  /// Writes a member whose value is an object.
  package mutating func object(_ name: StaticString, _ members: (inout JSONWriter) -> Void) {
    key(name)
    object(members)
  }

  /// Writes a member whose value is an array, or `null` for nil; `write` writes one element.
  package mutating func array<Elements: Sequence>(
    _ name: StaticString, _ elements: Elements?, _ write: (inout JSONWriter, Elements.Element) -> Void
  ) {
    key(name)
    if let elements {
      array { json in
        for element in elements {
          json.separate()
          write(&json, element)
          json.needsComma = true
        }
      }
    } else {
      raw("null")
      needsComma = true
    }
  }

  /// Writes a member whose value is JSON already.
  package mutating func member(_ name: StaticString, json value: some Collection<UInt8>) {
    key(name)
    bytes.append(contentsOf: value)
    needsComma = true
  }

  /// Writes a member whose name is not fixed.
  package mutating func member(named name: String, write value: (inout JSONWriter) -> Void) {
    separate()
    bytes.appendJSON(name)
    bytes.append(UInt8(ascii: ":"))
    value(&self)
    needsComma = true
  }

  /// Writes a member whose name is not fixed.
  package mutating func member(named name: String, _ value: some JSONWritable) {
    member(named: name) { json in value.write(to: &json) }
  }

  /// Writes a member whose value is an object and whose name is not fixed.
  package mutating func object(named name: String, _ members: (inout JSONWriter) -> Void) {
    member(named: name) { json in json.object(members) }
  }

  /// Writes an element of an array.
  package mutating func element(_ value: some JSONWritable) {
    separate()
    value.write(to: &self)
    needsComma = true
  }

  /// Ends a line of newline-delimited JSON after a value.
  package mutating func endLine() { bytes.append(UInt8(ascii: "\n")) }

  // MARK: Values

  /// Writes a string whose content `content` appends without quotes. It must not need escapes.
  package mutating func string(_ content: (inout [UInt8]) -> Void) {
    bytes.append(UInt8(ascii: "\""))
    content(&bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes any number of bytes as they are; no comma is added before or after them.
  mutating func raw(_ literal: StaticString) { bytes.append(literal: literal) }

  /// Writes members that another writer has written, with a comma before the first if it needs one.
  mutating func splice(_ members: [UInt8]) {
    bytes.append(contentsOf: members)
    needsComma = true
  }

  /// Passes the document to `append`, for parts of it that have a form of their own.
  mutating func append(_ append: (inout [UInt8]) -> Void) { append(&bytes) }

  /// Opens an object or array.
  mutating func open(_ bracket: Unicode.Scalar) {
    bytes.append(UInt8(ascii: bracket))
    needsComma = false
  }

  /// Closes the bracket that `open` has opened.
  mutating func close(_ bracket: Unicode.Scalar) {
    bytes.append(UInt8(ascii: bracket))
    needsComma = true
  }

  // In one append: a record has up to twenty names, and each append checks the capacity.
  @inline(__always)
  private mutating func key(_ name: StaticString) {
    let needsComma = needsComma
    bytes.append(addingCapacity: name.utf8CodeUnitCount + 4) { output in
      if needsComma { output.append(UInt8(ascii: ",")) }
      output.append(UInt8(ascii: "\""))
      output.append(literal: name)
      output.append(UInt8(ascii: "\""))
      output.append(UInt8(ascii: ":"))
    }
  }

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
  }
}

// MARK: - What can be written

extension String: JSONWritable {
  package func write(to json: inout JSONWriter) { json.append { $0.appendJSON(self) } }
}

extension Bool: JSONWritable {
  package func write(to json: inout JSONWriter) { json.raw(self ? "true" : "false") }
}

extension JSONWritable where Self: BinaryInteger {
  package func write(to json: inout JSONWriter) { json.append { $0.appendJSON(self) } }
}

extension Int: JSONWritable {}
extension Int32: JSONWritable {}
extension Int64: JSONWritable {}

extension JSONWritable where Self: RawRepresentable, RawValue == String {
  package func write(to json: inout JSONWriter) { json.append { $0.appendJSON(rawValue) } }
}

extension Platform: JSONWritable {
  package func write(to json: inout JSONWriter) { json.append { $0.appendJSON(name) } }
}

extension Priority: JSONWritable {}

extension HubName: JSONWritable {
  package func write(to json: inout JSONWriter) { json.append { $0.appendJSON(rawValue) } }
}

extension Identifier: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string { append(to: &$0) } }
}

extension UnixTime: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string { append(to: &$0) } }
}

extension Array: JSONWritable where Element: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.array { json in
      for element in self { json.element(element) }
    }
  }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
  package func write(to json: inout JSONWriter) {
    if let self { self.write(to: &json) } else { json.raw("null") }
  }
}

// MARK: - Bytes

extension [UInt8] {
  /// Appends a JSON string with its quotes. Escapes only what RFC 8259 §7 requires.
  package mutating func appendJSON(_ string: String) {
    // A span: iterating over `string.utf8` costs several times as much per byte.
    let bytes = string.utf8Span.span
    guard bytes.plainCount(from: 0) == bytes.count else {
      append(UInt8(ascii: "\""))
      appendEscaped(string)
      return append(UInt8(ascii: "\""))
    }
    append(addingCapacity: bytes.count + 2) { output in
      output.append(UInt8(ascii: "\""))
      output.append(copying: bytes)
      output.append(UInt8(ascii: "\""))
    }
  }

  /// Appends the content of a JSON string, without the quotes.
  mutating func appendEscaped(_ string: String) {
    let bytes = string.utf8Span.span
    for index in bytes.indices { appendEscaped(bytes[index]) }
  }

  /// Appends a JSON number.
  package mutating func appendJSON(_ number: some BinaryInteger) {
    // Nearly all numbers are counts of attempts or HTTP statuses; only larger ones are worth a string.
    guard number >= 0 && number < 1000 else { return append(contentsOf: String(number).utf8) }
    let value = Int(truncatingIfNeeded: number)
    if value >= 100 { append(UInt8(ascii: "0") + UInt8(value / 100)) }
    if value >= 10 { append(UInt8(ascii: "0") + UInt8(value / 10 % 10)) }
    append(UInt8(ascii: "0") + UInt8(value % 10))
  }

  /// Appends a JSON string with an identifier.
  package mutating func appendJSON<Subject>(_ identifier: Identifier<Subject>) {
    append(UInt8(ascii: "\""))
    identifier.append(to: &self)
    append(UInt8(ascii: "\""))
  }

  /// Appends a JSON string with a moment.
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
