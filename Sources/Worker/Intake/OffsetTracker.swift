import DequeModule

/// The offsets of one partition, during one assignment, that have been taken and not yet counted as done.
///
/// Work ends in any order; what may be committed is only the contiguous prefix of what has ended. A pure value; every operation is O(1)
/// amortised, and an entry costs eight bytes.
struct OffsetTracker: Sendable {
  /// One entry per record in the order of delivery, so that holes in the log (compaction, transaction markers) do not matter. An offset is never
  /// negative, so its complement marks it as settled.
  private var entries: Deque<Int64> = []
  /// The sequence number of the first entry.
  private var base: Int64 = 0
  /// Records begun and not settled.
  private(set) var unsettled = 0
  /// The offset to be read next by whoever takes over: one more than that of the last record of the settled prefix. Never goes back; nil
  /// until the first record settles.
  private(set) var position: Int64?

  /// How many entries are held: the distance from the first unsettled record to the last one taken.
  var span: Int { entries.count }

  /// Takes note of a record, in the order of delivery. Returns the number to settle it by.
  mutating func begin(_ offset: Int64) -> Int64 {
    entries.append(offset)
    unsettled += 1
    return base + Int64(entries.count) - 1
  }

  /// Counts a record as done. Returns whether `position` has moved. A second time, or an unknown number, changes nothing.
  mutating func settle(_ sequence: Int64) -> Bool {
    guard sequence >= base, sequence - base < Int64(entries.count) else { return false }
    let index = Int(sequence - base)
    let offset = entries[index]
    guard offset >= 0 else { return false }
    entries[index] = ~offset
    unsettled -= 1
    guard index == 0 else { return false }
    while let first = entries.first, first < 0 {
      entries.removeFirst()
      base += 1
      // A consumer that was reset may deliver smaller offsets again; what was committed once stays committed.
      position = max(position ?? 0, ~first + 1)
    }
    return true
  }
}
