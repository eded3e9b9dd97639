import DequeModule

/// Writes the header blocks of one connection's requests (RFC 7541), and keeps the table that the peer keeps.
///
/// nghttp2's own encoder never puts `authorization` into the table, so that each push would carry some hundred bytes of
/// token, and compresses by Huffman what both sides then work on for longer than on anything else. Of Apple's two pages
/// about it one has the token indexed and the other has not; either is HPACK, and a service that wants no table says so
/// in its SETTINGS. Here what is the same in many requests is a few bytes, which are written once and copied, and the
/// rest goes out as it is.
///
/// Blocks must be sent in the order in which they were encoded, and all of them.
struct HPACKEncoder {
  /// A field that the peer keeps, too.
  private struct Entry {
    /// The name, and behind it the value.
    let bytes: [UInt8]
    let nameLength: Int
    /// RFC 7541 section 4.1.
    var size: Int { bytes.count + 32 }

    init(_ name: Span<UInt8>, _ value: Span<UInt8>) {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(name.count + value.count)
      bytes.append(copying: name)
      bytes.append(copying: value)
      self.bytes = bytes
      nameLength = name.count
    }
  }

  /// Fields that many requests have in common, as they are written for as long as the table stays as it is.
  private struct Written {
    let headers: HTTP2Headers
    let changes: Int
    let bytes: [UInt8]
  }

  /// The largest table that is kept, in bytes as RFC 7541 counts them: what a peer keeps that says nothing about it
  /// (RFC 9113 section 6.5.2).
  private static let largestCapacity = 4096
  /// Blocks of common fields that are remembered: the classes of pushes under one token, and under the one before.
  private static let remembered = 8

  /// The newest first: the first one has the index 62.
  private var table: Deque<Entry> = []
  private var size = 0
  private var capacity = largestCapacity
  /// The smallest capacity since the last block, if it has changed: the peer is told with the next one.
  private var smallestCapacity: Int?
  /// Counts what has happened to the table.
  private var changes = 0
  private var written: [Written] = []

  /// Keeps no larger table than the peer's `SETTINGS_HEADER_TABLE_SIZE` allows, in bytes.
  mutating func limitTable(to bytes: Int) {
    let allowed = min(bytes, Self.largestCapacity)
    guard allowed != capacity else { return }
    smallestCapacity = min(smallestCapacity ?? allowed, allowed)
    capacity = allowed
    makeRoom(for: 0)
    changes += 1
  }

  /// Appends the block of a request.
  mutating func encode(_ request: HTTP2Request, into block: inout [UInt8]) {
    announceCapacity(into: &block)
    // The path is a pseudo field: it goes before those that are none.
    var cursor = 0
    if request.headers.startsWithPseudoField { encodeField(of: request.headers, at: &cursor, into: &block) }
    encode(common: request.shared, into: &block)
    while encodeField(of: request.headers, at: &cursor, into: &block) {}
  }

  /// Appends fields that many requests have in common.
  private mutating func encode(common headers: HTTP2Headers, into block: inout [UInt8]) {
    // Equal storages are one and the same, as a rule, which takes no look at their bytes.
    if let known = written.first(where: { $0.changes == changes && $0.headers.storage == headers.storage }) {
      block.append(contentsOf: known.bytes)
      return
    }
    let (start, before) = (block.count, changes)
    encode(headers, into: &block)
    guard changes == before else { return }
    written.removeAll { $0.changes != changes }
    if written.count == Self.remembered { written.removeFirst() }
    written.append(Written(headers: headers, changes: changes, bytes: Array(block[start...])))
  }

  /// Appends fields one by one.
  mutating func encode(_ headers: HTTP2Headers, into block: inout [UInt8]) {
    var cursor = 0
    while encodeField(of: headers, at: &cursor, into: &block) {}
  }

  /// Appends the field at `cursor`, which moves on to the next one; false at the end.
  @discardableResult
  private mutating func encodeField(of headers: HTTP2Headers, at cursor: inout Int, into block: inout [UInt8]) -> Bool {
    guard let field = headers.field(at: &cursor) else { return false }
    let bytes = headers.storage.span
    encode(name: bytes.extracting(field.name), value: bytes.extracting(field.value), field.indexing, into: &block)
    return true
  }

  /// Tells the peer how large a table is kept from now on (RFC 7541 section 4.2).
  mutating func announceCapacity(into block: inout [UInt8]) {
    guard let smallest = smallestCapacity else { return }
    smallestCapacity = nil
    if smallest < capacity { Self.append(smallest, prefix: 5, pattern: 0x20, to: &block) }
    Self.append(capacity, prefix: 5, pattern: 0x20, to: &block)
  }

  private mutating func encode(
    name: Span<UInt8>, value: Span<UInt8>, _ indexing: HPACKIndexing, into block: inout [UInt8]
  ) {
    let (index, isWhole) = find(name, indexing == .incremental ? value : nil)
    if isWhole { return Self.append(index, prefix: 7, pattern: 0x80, to: &block) }
    // What nothing is known of by name is known from now on, but nobody may keep a secret.
    let isToEnter = indexing == .incremental || (indexing == .withoutIndexing && index == 0)
    // What would drive out half of what is known is not worth it.
    guard isToEnter, name.count + value.count + 32 <= capacity / 2 else {
      let kind: HPACKIndexing = indexing == .never ? .never : .withoutIndexing
      return appendLiteral(kind, nameIndex: index, name: name, value: value, to: &block)
    }
    appendLiteral(.incremental, nameIndex: index, name: name, value: value, to: &block)
    enter(Entry(name, value))
  }

  /// The index of the field, or of one with its name alone; 0 where there is none. Without a value the name alone is
  /// looked for.
  private func find(_ name: Span<UInt8>, _ value: Span<UInt8>?) -> (index: Int, isWhole: Bool) {
    var named = 0
    // The lengths first, which nearly always decide, and for which no entry is held on to.
    for place in table.indices where table[place].nameLength == name.count {
      let (bytes, index) = (table[place].bytes, HPACKStaticTable.fields.count + 1 + place)
      guard name.isEqual(to: bytes.span.extracting(first: name.count)) else { continue }
      guard let value else { return (index, false) }
      if value.isEqual(to: bytes.span.extracting(droppingFirst: name.count)) { return (index, true) }
      if named == 0 { named = index }
    }
    for (place, field) in HPACKStaticTable.fields.enumerated() where name.isEqual(to: field.name.span) {
      guard let value else { return (place + 1, false) }
      if value.isEqual(to: field.value.span) { return (place + 1, true) }
      if named == 0 { named = place + 1 }
    }
    return (named, false)
  }

  private mutating func enter(_ entry: Entry) {
    makeRoom(for: entry.size)
    table.prepend(entry)
    size += entry.size
    changes += 1
  }

  private mutating func makeRoom(for bytes: Int) {
    while size + bytes > capacity, let oldest = table.popLast() { size -= oldest.size }
  }

  // MARK: The wire

  /// Appends a field that is no entry of a table; its name may be one's.
  private func appendLiteral(
    _ indexing: HPACKIndexing, nameIndex: Int, name: Span<UInt8>, value: Span<UInt8>, to block: inout [UInt8]
  ) {
    switch indexing {
    case .incremental: Self.append(nameIndex, prefix: 6, pattern: 0x40, to: &block)
    case .withoutIndexing: Self.append(nameIndex, prefix: 4, pattern: 0x00, to: &block)
    case .never: Self.append(nameIndex, prefix: 4, pattern: 0x10, to: &block)
    }
    if nameIndex == 0 {
      Self.append(name.count, prefix: 7, pattern: 0, to: &block)
      block.append(copying: name)
    }
    // The highest bit, which is not set, would say that Huffman has been at work.
    Self.append(value.count, prefix: 7, pattern: 0, to: &block)
    block.append(copying: value)
  }

  /// Appends a number whose first bits share a byte with a pattern (RFC 7541 section 5.1).
  private static func append(_ number: Int, prefix bits: Int, pattern: UInt8, to block: inout [UInt8]) {
    let most = 1 << bits - 1
    guard number >= most else { return block.append(pattern | UInt8(truncatingIfNeeded: number)) }
    block.append(pattern | UInt8(truncatingIfNeeded: most))
    var rest = number - most
    while rest >= 0x80 {
      block.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    block.append(UInt8(truncatingIfNeeded: rest))
  }
}
