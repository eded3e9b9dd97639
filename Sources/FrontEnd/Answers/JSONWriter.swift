import FanfareCore
import HTTPTypes
import Hummingbird

/// Writes JSON into bytes: places braces, commas and colons, and escapes values.
/// Names are written as they are.
struct JSONWriter {
  private(set) var bytes: [UInt8] = []
  /// Whether the next member is the first of its object.
  private var isFirst = true

  init(capacity: Int = 256) {
    bytes.reserveCapacity(capacity)
  }

  /// Returns an object as a document.
  static func object(capacity: Int = 256, _ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter(capacity: capacity)
    writer.object(members)
    return writer.bytes
  }

  /// Writes an object as an element of an array, or as the whole document.
  mutating func object(_ members: (inout JSONWriter) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    isFirst = true
    members(&self)
    bytes.append(UInt8(ascii: "}"))
    isFirst = false
  }

  /// Ends a line of NDJSON behind an object.
  mutating func endLine() { bytes.append(UInt8(ascii: "\n")) }

  /// Writes a value that is JSON already as an element of an array.
  mutating func element(json: [UInt8]) { bytes.append(contentsOf: json) }

  /// Writes a member that is a string, or null.
  mutating func member(_ name: StaticString, _ value: String?) {
    begin(name)
    if let value { bytes.appendJSON(value) } else { bytes.append(literal: "null") }
  }

  /// Writes a member that is a moment as a string, or null.
  mutating func member(_ name: StaticString, _ value: UnixTime?) {
    begin(name)
    if let value { bytes.appendJSON(value) } else { bytes.append(literal: "null") }
  }

  /// Writes a member that is an id as a string, or null.
  mutating func member<Subject>(_ name: StaticString, _ value: Identifier<Subject>?) {
    begin(name)
    if let value { bytes.appendJSON(value) } else { bytes.append(literal: "null") }
  }

  /// Writes a member that is a number, or null.
  mutating func member<Number: BinaryInteger>(_ name: StaticString, _ value: Number?) {
    begin(name)
    if let value { bytes.appendJSON(value) } else { bytes.append(literal: "null") }
  }

  /// Writes a member that is true or false.
  mutating func member(_ name: StaticString, _ value: Bool) {
    begin(name)
    bytes.append(literal: value ? "true" : "false")
  }

  /// Writes a member whose value is JSON already.
  mutating func member(_ name: StaticString, json: [UInt8]) {
    begin(name)
    bytes.append(contentsOf: json)
  }

  /// Writes a member that is an object.
  mutating func object(_ name: StaticString, _ members: (inout JSONWriter) -> Void) {
    begin(name)
    object(members)
  }

  /// Writes a member that is an object, with a name that is known only at run time.
  mutating func object(named name: String, _ members: (inout JSONWriter) -> Void) {
    begin(named: name)
    object(members)
  }

  /// Writes a member that is a number, with a name that is known only at run time.
  mutating func member(named name: String, _ value: Int) {
    begin(named: name)
    bytes.appendJSON(value)
  }

  /// Writes a member that is an array, or null; `write` writes one element.
  mutating func array<Elements: Sequence>(
    _ name: StaticString, _ elements: Elements?, _ write: (inout JSONWriter, Elements.Element) -> Void
  ) {
    begin(name)
    guard let elements else { return bytes.append(literal: "null") }
    var opening = UInt8(ascii: "[")
    for element in elements {
      bytes.append(opening)
      opening = UInt8(ascii: ",")
      write(&self, element)
    }
    if opening == UInt8(ascii: "[") { bytes.append(opening) }
    bytes.append(UInt8(ascii: "]"))
    isFirst = false
  }

  private mutating func begin(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(literal: name)
    bytes.append(literal: "\":")
  }

  private mutating func begin(named name: String) {
    separate()
    bytes.appendJSON(name)
    bytes.append(UInt8(ascii: ":"))
  }

  private mutating func separate() {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
  }
}

extension Response {
  /// Makes an answer with a JSON body; `isPrivate`: caches must not store it.
  static func json(
    _ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil, isPrivate: Bool = false
  ) -> Response {
    var headers: HTTPFields = [.contentType: "application/json"]
    if isPrivate { headers[.cacheControl] = "no-store" }
    if let location { headers[.location] = location }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
