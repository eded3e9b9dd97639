/// A block of header fields, built once and shared by many requests.
///
/// All fields lie in one array of bytes, so a copy costs one reference count and a block read by several event loops
/// needs no lock. Names must be lower-case (RFC 9113 section 8.2); neither names nor values may contain control
/// characters. What breaks these rules is refused by the peer, not here.
package struct HTTP2Headers: Sendable {
  /// Per field: the indexing byte, the lengths of name and value (4 bytes each, little-endian), name, value.
  private(set) var storage: [UInt8] = []

  /// How many fields there are.
  package private(set) var count = 0

  /// The size of the block as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it: names, values and 32 bytes for each field
  /// (RFC 9113 section 6.5.2).
  package private(set) var listSize = 0

  /// An empty block.
  package init() {}

  /// The fields of one request: a `:path` that is sent without indexing, because one that names a device never repeats
  /// soon enough to be worth a place in the table and is no intermediary's to remember, and others behind it.
  package init(path: String, _ others: HTTP2Headers = HTTP2Headers()) {
    append(":path", path, indexing: .never)
    append(contentsOf: others)
  }

  /// An empty block with room for that many bytes of names and values, in that many fields.
  package init(reservingFields fields: Int, bytes: Int) {
    storage.reserveCapacity(fields * Self.prefixLength + bytes)
  }

  /// Whether there is no field.
  package var isEmpty: Bool { count == 0 }

  /// Whether the first field is a pseudo field (RFC 9113 section 8.3).
  var startsWithPseudoField: Bool {
    storage.count > Self.prefixLength && storage[Self.prefixLength] == UInt8(ascii: ":")
  }

  /// Adds a field at the end.
  package mutating func append(_ name: String, _ value: String, indexing: HPACKIndexing = .incremental) {
    appendLengths(name: name.utf8.count, value: value.utf8.count, indexing: indexing)
    storage.append(contentsOf: name.utf8)
    storage.append(contentsOf: value.utf8)
  }

  /// Adds a field given as bytes at the end.
  package mutating func append(name: [UInt8], value: [UInt8], indexing: HPACKIndexing = .incremental) {
    append(name: name.span, value: value.span, indexing: indexing)
  }

  /// Adds a field given as spans at the end.
  package mutating func append(name: Span<UInt8>, value: Span<UInt8>, indexing: HPACKIndexing = .incremental) {
    appendLengths(name: name.count, value: value.count, indexing: indexing)
    storage.append(copying: name)
    storage.append(copying: value)
  }

  /// Adds all fields of `other` at the end.
  package mutating func append(contentsOf other: HTTP2Headers) {
    storage.append(contentsOf: other.storage)
    count += other.count
    listSize += other.listSize
  }

  /// The value of the first field called `name`, nil if there is none. `name` must be lower-case.
  package subscript(name: String) -> String? {
    var cursor = 0
    while let field = field(at: &cursor) {
      if storage[field.name].elementsEqual(name.utf8) { return String(decoding: storage[field.value], as: UTF8.self) }
    }
    return nil
  }

  /// The field whose encoding begins at `cursor`, which moves on to the next one; nil at the end.
  func field(at cursor: inout Int) -> Field? {
    guard cursor < storage.count else { return nil }
    let nameLength = length(at: cursor + 1)
    let valueLength = length(at: cursor + 5)
    let name = cursor + Self.prefixLength
    let value = name + nameLength
    let field = Field(
      indexing: HPACKIndexing(rawValue: storage[cursor]) ?? .never, name: name..<value,
      value: value..<(value + valueLength))
    cursor = field.value.upperBound
    return field
  }

  private static let prefixLength = 9

  private func length(at index: Int) -> Int {
    Int(storage[index]) | Int(storage[index + 1]) << 8 | Int(storage[index + 2]) << 16 | Int(storage[index + 3]) << 24
  }

  private mutating func appendLengths(name: Int, value: Int, indexing: HPACKIndexing) {
    precondition(name <= UInt32.max && value <= UInt32.max, "a header field's name or value is too long")
    storage.append(addingCapacity: Self.prefixLength) { prefix in
      prefix.append(indexing.rawValue)
      for shift in stride(from: 0, to: 32, by: 8) { prefix.append(UInt8(truncatingIfNeeded: name >> shift)) }
      for shift in stride(from: 0, to: 32, by: 8) { prefix.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
    count += 1
    listSize += name + value + 32
  }

  /// Where one field lies in `storage`.
  struct Field {
    /// How it is to be written.
    let indexing: HPACKIndexing
    /// The bytes of its name.
    let name: Range<Int>
    /// The bytes of its value.
    let value: Range<Int>
  }
}

extension HTTP2Headers: Sequence {
  /// The fields in order, as text.
  package func makeIterator() -> AnyIterator<(name: String, value: String)> {
    var cursor = 0
    return AnyIterator {
      field(at: &cursor).map {
        (String(decoding: storage[$0.name], as: UTF8.self), String(decoding: storage[$0.value], as: UTF8.self))
      }
    }
  }
}

extension HTTP2Headers: ExpressibleByDictionaryLiteral {
  /// A block of these fields in this order, all with incremental indexing.
  package init(dictionaryLiteral fields: (String, String)...) {
    for (name, value) in fields { append(name, value) }
  }
}
