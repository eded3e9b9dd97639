import DequeModule

/// Encodes the header blocks of one connection's requests (RFC 7541), and mirrors the peer's dynamic table.
///
/// nghttp2's own encoder never indexes `authorization`, so that every push would carry some hundred bytes of token, and
/// uses Huffman coding, which costs both sides more time than anything else. (One of Apple's two pages has the token
/// indexed, the other has not; both are valid HPACK, and a service that wants no table says so in its SETTINGS.) Here
/// the fields that requests share are a few bytes, encoded once and copied; the rest is written without compression.
///
/// Blocks must be sent in the order in which they were encoded, and all of them.
struct HPACKEncoder {
  /// An entry of the dynamic table.
  private struct Entry {
    /// The name, followed by the value.
    let bytes: [UInt8]
    let nameLength: Int
    /// The size as RFC 7541 §4.1 counts it.
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

  /// The encoding of shared fields, valid while the table is unchanged.
  private struct Written {
    let headers: HTTP2Headers
    let changes: Int
    let bytes: [UInt8]
  }

  /// The largest table, in bytes as RFC 7541 counts them: the default of a peer that sends no limit (RFC 9113 §6.5.2).
  private static let largestCapacity = 4096
  /// How many blocks of shared fields are remembered: the classes of pushes under the current token and the previous
  /// one.
  private static let remembered = 8

  /// The newest entry first; it has the index 62.
  private var table: Deque<Entry> = []
  private var size = 0
  private var capacity = largestCapacity
  /// The smallest capacity since the last block, if it has changed; the next block announces it.
  private var smallestCapacity: Int?
  /// Counts the changes of the table.
  private var changes = 0
  private var written: [Written] = []

  /// Limits the table to the peer's `SETTINGS_HEADER_TABLE_SIZE`, in bytes.
  mutating func limitTable(to bytes: Int) {
    let allowed = min(bytes, Self.largestCapacity)
    guard allowed != capacity else { return }
    smallestCapacity = min(smallestCapacity ?? allowed, allowed)
    capacity = allowed
    makeRoom(for: 0)
    changes += 1
  }

  mutating func encode(_ request: HTTP2Request, into block: inout [UInt8]) {
    announceCapacity(into: &block)
    // The path is a pseudo field, which must precede regular fields.
    var cursor = 0
    if request.headers.startsWithPseudoField { encodeField(of: request.headers, at: &cursor, into: &block) }
    encode(common: request.shared, into: &block)
    while encodeField(of: request.headers, at: &cursor, into: &block) {}
  }

  /// Appends shared fields.
  private mutating func encode(common headers: HTTP2Headers, into block: inout [UInt8]) {
    // The storages are usually identical, so that the comparison does not read their bytes.
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

  mutating func encode(_ headers: HTTP2Headers, into block: inout [UInt8]) {
    var cursor = 0
    while encodeField(of: headers, at: &cursor, into: &block) {}
  }

  /// Appends the field at `cursor`, which moves to the next one; false at the end.
  @discardableResult
  private mutating func encodeField(of headers: HTTP2Headers, at cursor: inout Int, into block: inout [UInt8]) -> Bool {
    guard let field = headers.field(at: &cursor) else { return false }
    let bytes = headers.storage.span
    encode(name: bytes.extracting(field.name), value: bytes.extracting(field.value), field.indexing, into: &block)
    return true
  }

  /// Announces a changed table size (RFC 7541 §4.2).
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
    // An unknown name enters the table, so that later fields can refer to it; but never with a secret value.
    let isToEnter = indexing == .incremental || (indexing == .withoutIndexing && index == 0)
    // An entry that would evict half of the table is not worth it.
    guard isToEnter, name.count + value.count + 32 <= capacity / 2 else {
      let kind: HPACKIndexing = indexing == .never ? .never : .withoutIndexing
      return appendLiteral(kind, nameIndex: index, name: name, value: value, to: &block)
    }
    appendLiteral(.incremental, nameIndex: index, name: name, value: value, to: &block)
    enter(Entry(name, value))
  }

  /// The index of the field, or of an entry with the same name; 0 if there is none. Without a value only the name is
  /// compared.
  private func find(_ name: Span<UInt8>, _ value: Span<UInt8>?) -> (index: Int, isWhole: Bool) {
    var named = 0
    // The lengths nearly always decide, and comparing them retains no entry.
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

  /// Appends a literal field; its name may be an index.
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
    // The highest bit would mean Huffman coding.
    Self.append(value.count, prefix: 7, pattern: 0, to: &block)
    block.append(copying: value)
  }

  /// Appends an integer whose first bits share a byte with a pattern (RFC 7541 §5.1).
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

/// The static table (RFC 7541 appendix A).
enum HPACKStaticTable {
  /// In order; the first has the index 1.
  static let fields: [(name: [UInt8], value: [UInt8])] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"), (":status", "304"),
    (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""), ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""), ("accept-ranges", ""), ("accept", ""), ("access-control-allow-origin", ""), ("age", ""),
    ("allow", ""), ("authorization", ""), ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""),
    ("content-language", ""), ("content-length", ""), ("content-location", ""), ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""),
    ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
  ].map { (Array($0.0.utf8), Array($0.1.utf8)) }
}
