/// A bounded dictionary that forgets entries that were not used for the longest time, approximately.
///
/// Two generations: a full young one becomes the old one, and the old one is dropped. So no operation searches the
/// dictionary for entries to remove.
struct RecentEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let capacity: Int
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]

  /// Keeps at most `capacity` entries, and at least the half of that.
  init(capacity: Int) { self.capacity = max(2, capacity) }

  /// The number of entries; an entry that is in both generations counts twice.
  var count: Int { young.count + old.count }

  subscript(key: Key) -> Value? {
    mutating get {
      if let value = young[key] { return value }
      guard let value = old.removeValue(forKey: key) else { return nil }
      insert(value, for: key)
      return value
    }
    set {
      old[key] = nil
      if let newValue { insert(newValue, for: key) } else { young[key] = nil }
    }
  }

  mutating func removeAll() { (young, old) = ([:], [:]) }

  private mutating func insert(_ value: Value, for key: Key) {
    young[key] = value
    if young.count > capacity / 2 {
      old = young
      young = [:]
    }
  }
}
