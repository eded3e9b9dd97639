/// A bounded dictionary. It forgets entries at their end, and those that were not used for the longest time,
/// approximately, when there are too many.
///
/// Two generations: a full young one becomes the old one, and the old one is dropped. So no operation searches the
/// dictionary for entries to remove.
///
/// It stands in the module that uses it: generic code of other modules is not specialised, and costs several times as
/// much.
struct ExpiringCache<Key: Hashable & Sendable, Value: Sendable, Instant: Comparable & Sendable>: Sendable {
  private struct Entry: Sendable {
    let value: Value
    /// Has a beginning too: a clock that was set back must not prolong it. nil: without end.
    let life: Range<Instant>?
  }

  private let capacity: Int
  private var young: [Key: Entry] = [:]
  private var old: [Key: Entry] = [:]

  /// Keeps at most `capacity` entries, and at least the half of that.
  init(capacity: Int) { self.capacity = max(2, capacity) }

  /// The number of entries, including some whose time is over; one that is in both generations counts twice.
  var count: Int { young.count + old.count }

  /// The value of a key that has one at that moment; this counts as a use. nil: regardless of its time.
  mutating func value(_ key: Key, at now: Instant?) -> Value? {
    var entry = young[key]
    if entry == nil, let former = old.removeValue(forKey: key) {
      insert(former, for: key)
      entry = former
    }
    guard let entry else { return nil }
    if let now, let life = entry.life, !life.contains(now) { return nil }
    return entry.value
  }

  /// Keeps a value from `now` to `end`, instead of an earlier one.
  mutating func insert(_ value: Value, for key: Key, from now: Instant, to end: Instant) {
    old[key] = nil
    insert(Entry(value: value, life: now..<max(now, end)), for: key)
  }

  /// Values that have no end.
  subscript(key: Key) -> Value? {
    mutating get { value(key, at: nil) }
    set {
      old[key] = nil
      if let newValue { insert(Entry(value: newValue, life: nil), for: key) } else { young[key] = nil }
    }
  }

  mutating func removeAll() { (young, old) = ([:], [:]) }

  private mutating func insert(_ entry: Entry, for key: Key) {
    young[key] = entry
    if young.count > capacity / 2 {
      old = young
      young = [:]
    }
  }
}
