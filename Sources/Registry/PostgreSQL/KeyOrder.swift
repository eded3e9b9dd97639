import FanfareCore

/// The order of many keys: their indices, ascending by the keys and, where these are equal, by themselves.
///
/// Two words of each key are kept beside its index, so that hardly any comparison has to look at the key: sorting the
/// rows themselves, which count references whenever they move, took longer than sending them.
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

  /// The order of so many texts, by their bytes; those that begin with `prefix` come first. `text` is asked for some of
  /// them more than once.
  init(count: Int, prefix: String = "", text: (Int) -> String) {
    var entries = (0..<count).map { Self.entry(text($0), prefix: prefix, index: $0) }
    entries.sort { left, right in
      if let isLess = Self.words(left, right) { return isLess }
      // A text that ends within the words is known by them.
      guard left.second & 0xFF != 0 else { return left.index < right.index }
      let (one, other) = (text(left.index), text(right.index))
      return one == other ? left.index < right.index : one < other
    }
    self.entries = entries
  }

  func makeIterator() -> some IteratorProtocol<Int> { entries.lazy.map(\.index).makeIterator() }

  /// Whether the left one's words are less; nil where they are equal.
  private static func words(_ left: Entry, _ right: Entry) -> Bool? {
    if left.first != right.first { return left.first < right.first }
    return left.second == right.second ? nil : left.second < right.second
  }

  private static func entry(_ text: String, prefix: String, index: Int) -> Entry {
    let (bytes, prefix) = (text.utf8Span.span, prefix.utf8Span.span)
    var start = 0
    while start < prefix.count, start < bytes.count, bytes[start] == prefix[start] { start += 1 }
    // Only the whole of it is passed over; what has not got it is marked by the highest bit, and the words take the
    // rest.
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
