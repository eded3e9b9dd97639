import FanfareCore
import Store

/// Copies new registrations into the tables within one transaction, each table in the order of its key: successive rows
/// then go to the same pages of the index.
///
/// An id, handle or installation that is already stored, or comes twice, throws a `PostgreSQLError` with the SQLSTATE
/// `uniqueViolation`.
struct RegistrationCopy {
  /// The SQLSTATE of a duplicate key.
  static let uniqueViolation = "23505"

  private let connection: PostgreSQLConnection
  private let hub: HubName
  /// Read member by member: copying a whole registration would retain every reference in it.
  private let registrations: [Registration]
  /// The order of the ids.
  private let order: KeyOrder

  /// The registrations must all be of the hub.
  init(_ connection: PostgreSQLConnection, _ hub: HubName, _ registrations: [Registration]) {
    self.connection = connection
    self.hub = hub
    self.registrations = registrations
    order = KeyOrder(ids: registrations.map(\.id))
  }

  /// Fills the table `registrations`.
  func copyRegistrations() throws {
    try copy(into: "registrations", StoredRegistration.common) { rows in
      for place in order { try StoredRegistration.write(registrations, place, to: &rows) }
    }
  }

  /// Fills the table `handles`.
  func copyHandles() throws {
    let order = KeyOrder(count: registrations.count) { registrations[$0].address }
    try copy(into: "handles", "handle, registration, platform, registered_at") { rows in
      for place in order {
        try rows.row(columns: 5)
        rows.text(hub.rawValue)
        rows.text(registrations[place].address)
        rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
        rows.int2(registrations[place].storedPlatform)
        rows.int8(registrations[place].registeredAt.milliseconds)
      }
    }
  }

  /// Fills the table `installations`.
  func copyInstallations() throws {
    let installed = registrations.compactMap { registration in
      registration.heldInstallation.map { (name: $0, id: registration.id) }
    }
    guard !installed.isEmpty else { return }
    try copy(into: "installations", "installation, registration") { rows in
      for index in KeyOrder(count: installed.count, text: { installed[$0].name }) {
        try rows.row(columns: 3)
        rows.text(hub.rawValue)
        rows.text(installed[index].name)
        rows.uuid(high: installed[index].id.high, low: installed[index].id.low)
      }
    }
  }

  /// Fills the table `tags`.
  func copyTags() throws {
    var tags: [(place: Int, tag: Int)] = []
    tags.reserveCapacity(registrations.count * 4)
    for place in order {
      for tag in registrations[place].tags.indices { tags.append((place, tag)) }
    }
    // Nearly half of all tags have this prefix. Equal tags keep the order of the ids.
    let order = KeyOrder(count: tags.count, prefix: Tag.usernamePrefix) {
      registrations[tags[$0].place].tags[tags[$0].tag]
    }
    try copy(into: "tags", "tag, registration, platform, handle, registered_at, created_at") { rows in
      for index in order {
        let (place, tag) = tags[index]
        try rows.row(columns: 7)
        rows.text(hub.rawValue)
        rows.text(registrations[place].tags[tag])
        rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
        rows.int2(registrations[place].storedPlatform)
        rows.text(registrations[place].address)
        rows.int8(registrations[place].registeredAt.milliseconds)
        rows.int8(registrations[place].createdAt.milliseconds)
      }
    }
  }

  private func copy(into table: String, _ columns: String, _ write: (inout CopyWriter) throws -> Void) throws {
    _ = try connection.copyIn("COPY \(table) (hub, \(columns)) FROM STDIN (FORMAT binary)", write)
  }
}

/// The indices of many keys in the order of the keys; equal keys in the order of their indices.
///
/// Keeps two words of each key beside its index, so that few comparisons need the key itself. Sorting the rows directly
/// retains and releases references with every move, and took longer than sending them.
struct KeyOrder: Sequence {
  private struct Entry {
    let first: UInt64
    let second: UInt64
    let index: Int
  }

  private let entries: [Entry]

  /// The order of ids.
  init(ids: [RegistrationID]) {
    var entries = ids.enumerated().map { Entry(first: $1.high, second: $1.low, index: $0) }
    entries.sort { left, right in Self.words(left, right) ?? (left.index < right.index) }
    self.entries = entries
  }

  /// The order of texts by their bytes, those with the prefix first. `text` may be called more than once for an index.
  init(count: Int, prefix: String = "", text: (Int) -> String) {
    var entries = (0..<count).map { Self.entry(text($0), prefix: prefix, index: $0) }
    entries.sort { left, right in
      if let isLess = Self.words(left, right) { return isLess }
      // A text that ends within the two words has no further bytes to compare.
      guard left.second & 0xFF != 0 else { return left.index < right.index }
      let (one, other) = (text(left.index), text(right.index))
      return one == other ? left.index < right.index : one < other
    }
    self.entries = entries
  }

  func makeIterator() -> some IteratorProtocol<Int> { entries.lazy.map(\.index).makeIterator() }

  /// Whether the left words are less; nil when they are equal.
  private static func words(_ left: Entry, _ right: Entry) -> Bool? {
    if left.first != right.first { return left.first < right.first }
    return left.second == right.second ? nil : left.second < right.second
  }

  private static func entry(_ text: String, prefix: String, index: Int) -> Entry {
    let (bytes, prefix) = (text.utf8Span.span, prefix.utf8Span.span)
    var start = 0
    while start < prefix.count, start < bytes.count, bytes[start] == prefix[start] { start += 1 }
    // A complete prefix is skipped; a text without it is marked with a 1 above the first seven bytes.
    let isPrefixed = start == prefix.count
    if !isPrefixed { start = 0 }
    var words: (UInt64, UInt64) = (isPrefixed ? 0 : 1, 0)
    for place in 0..<15 {
      let byte = start + place < bytes.count ? UInt64(bytes[start + place]) : 0
      if place < 7 { words.0 = words.0 << 8 | byte } else { words.1 = words.1 << 8 | byte }
    }
    return Entry(first: words.0, second: words.1, index: index)
  }
}
