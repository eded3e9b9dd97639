/// A block of header fields, built once and shared by many requests.
///
/// All fields are in one array of bytes, so that a copy costs one reference count and several event loops can read a
/// block without a lock. Names must be lower-case (RFC 9113 §8.2), and neither names nor values may contain control
/// characters; the peer refuses blocks that break these rules, nothing here checks them.
package struct HTTP2Headers: Sendable {
  /// Per field: the indexing byte, the lengths of name and value (4 bytes each, little-endian), name, value.
  private(set) var storage: [UInt8] = []

  /// The number of fields.
  package private(set) var count = 0

  /// The size of the block as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it: names, values and 32 bytes per field (RFC 9113
  /// §6.5.2).
  package private(set) var listSize = 0

  package init() {}

  /// The fields of one request: `:path`, then `others`. The path is never indexed: one that names a device does not
  /// repeat soon enough to be worth a table entry, and intermediaries must not keep it.
  package init(path: String, _ others: HTTP2Headers = HTTP2Headers()) {
    append(":path", path, indexing: .never)
    append(contentsOf: others)
  }

  /// An empty block with capacity for this many fields and bytes of names and values.
  package init(reservingFields fields: Int, bytes: Int) {
    storage.reserveCapacity(fields * Self.prefixLength + bytes)
  }

  package var isEmpty: Bool { count == 0 }

  /// Whether the first field is a pseudo field (RFC 9113 §8.3).
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

  /// Removes all fields, and keeps the memory.
  package mutating func removeAll() {
    storage.removeAll(keepingCapacity: true)
    (count, listSize) = (0, 0)
  }

  /// Adds all fields of `other` at the end.
  package mutating func append(contentsOf other: HTTP2Headers) {
    storage.append(contentsOf: other.storage)
    count += other.count
    listSize += other.listSize
  }

  /// The value of the first field with this name, which must be lower-case; nil if there is none.
  package subscript(name: String) -> String? {
    var cursor = 0
    while let field = field(at: &cursor) {
      if storage[field.name].elementsEqual(name.utf8) { return String(decoding: storage[field.value], as: UTF8.self) }
    }
    return nil
  }

  /// The values of all fields with this name, which must be lower-case, in order.
  package func values(of name: String) -> [String] {
    var (cursor, values): (Int, [String]) = (0, [])
    while let field = field(at: &cursor) {
      if storage[field.name].elementsEqual(name.utf8) {
        values.append(String(decoding: storage[field.value], as: UTF8.self))
      }
    }
    return values
  }

  /// The end of the last value.
  package var end: Int { storage.count }

  /// The value at a place.
  package func text(at place: Range<Int>) -> String { String(decoding: storage[place], as: UTF8.self) }

  /// The field that begins at `cursor`, which moves to the next one; nil at the end.
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

  /// The place of one field in `storage`.
  struct Field {
    let indexing: HPACKIndexing
    let name: Range<Int>
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

/// How a header field is written into the HPACK block.
package enum HPACKIndexing: UInt8, Sendable, Hashable {
  /// Enters the dynamic table: for values that repeat.
  case incremental = 0
  /// Never enters a table, here or at an intermediary: for secret values (RFC 7541 §6.2.3).
  case never = 1
  /// Only the name enters the dynamic table, with the first value: for values that differ in every request (RFC 7541
  /// §6.2.2). Apple asks for it for `apns-id`, `apns-expiration` and `apns-collapse-id`.
  case withoutIndexing = 2
}
