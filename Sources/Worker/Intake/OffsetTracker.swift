import DequeModule

/// The offsets of one partition, during one assignment, that have been taken and not yet counted as done.
///
/// Work ends in any order; what may be committed is only the contiguous prefix of what has ended. What has ended above
/// it is remembered beside the position, and taken over by the next owner. A pure value; every operation on a record is
/// O(1) amortised, and an entry costs eight bytes.
struct OffsetTracker: Sendable {
  /// One entry per record in the order of delivery, so that holes in the log (compaction, transaction markers) do not
  /// matter. An offset is never negative, so its complement marks it as settled; `gone` marks one that the log has
  /// lost.
  private var entries: Deque<Int64> = []
  /// The sequence number of the first entry.
  private var base: Int64 = 0
  /// When entries were written, in milliseconds since 1970: the first one, and from there on each that is a second or
  /// more from the one noted before it, by its sequence number. So few that they need no room in every entry.
  private var times: Deque<(sequence: Int64, timestamp: Int64)> = []
  /// One more than the offset of the last record; before the first, where the partition is resumed from.
  private var next: Int64 = 0
  /// What an earlier owner has settled of what has not come yet.
  private var known = SettledRuns()
  /// Records begun and not settled.
  private(set) var unsettled = 0
  /// The offset to be read next by whoever takes over: one more than that of the last record of the settled prefix; nil
  /// until the first record settles. Goes back only where the log has begun anew.
  private(set) var position: Int64?

  private static let gone = Int64.min

  /// How many entries are held: the distance from the first unsettled record to the last one taken.
  var span: Int { entries.count }

  /// When the first unsettled record was written, give or take a second, in milliseconds since 1970; nil where all have
  /// settled, or nobody knows.
  var oldestTimestamp: Int64? { entries.isEmpty ? nil : times.first?.timestamp }

  /// Takes over what an earlier owner has settled above `position`. Before the first record; later it changes nothing.
  mutating func resume(from position: Int64, settled: SettledRuns) {
    guard base == 0, entries.isEmpty else { return }
    next = position
    known = settled
  }

  /// Takes over what else an earlier owner has settled: all below `position`, and `settled`. Before the first record;
  /// later it changes nothing.
  mutating func learn(_ settled: SettledRuns, below position: Int64) {
    guard base == 0, entries.isEmpty else { return }
    known.formUnion(settled)
    if position > next { known.formUnion(SettledRuns(next..<position)) }
  }

  /// Whether a record with that offset is of another log than those before: the topic was made anew, or an election has
  /// cut its end.
  func isAnew(_ offset: Int64) -> Bool { offset < next }

  /// Takes note of a record, in the order of delivery. Returns the number to settle it by; nil when an earlier owner
  /// has settled it: then it counts as done. `timestamp` is when it was written, in milliseconds since 1970; negative
  /// where nobody knows.
  mutating func begin(_ offset: Int64, timestamp: Int64 = -1) -> Int64? {
    if isAnew(offset) { startOver(at: offset) }
    if timestamp >= 0, times.last.map({ abs(timestamp - $0.timestamp) >= 1000 }) ?? true {
      if entries.isEmpty { times.removeAll(keepingCapacity: true) }
      times.append((base + Int64(entries.count), timestamp))
    }
    if !known.isEmpty, known.take(offset) {
      next = offset + 1
      entries.append(~offset)
      removeSettledPrefix()
      return nil
    }
    next = offset + 1
    entries.append(offset)
    unsettled += 1
    return base + Int64(entries.count) - 1
  }

  /// Counts a record as done. A second time, or an unknown number, changes nothing. Returns whether anything has
  /// changed.
  @discardableResult
  mutating func settle(_ sequence: Int64) -> Bool {
    guard sequence >= base, sequence - base < Int64(entries.count) else { return false }
    let index = Int(sequence - base)
    let offset = entries[index]
    guard offset >= 0 else { return false }
    entries[index] = ~offset
    unsettled -= 1
    if index == 0 { removeSettledPrefix() }
    return true
  }

  /// What to commit: the position, and with it, in at most `limit` bytes, what is settled above it; nil when nothing
  /// was settled. Costs a look at every entry where something is settled above the position, and nothing otherwise.
  func committable(limit: Int) -> (position: Int64, metadata: String?)? {
    let isSettledAbove = entries.count > unsettled
    // As long as the first record taken is not settled, it is where the next owner begins.
    guard let position = position ?? (isSettledAbove ? entries.first : nil) else { return nil }
    guard isSettledAbove || !known.isEmpty else { return (position, nil) }
    var writer = SettledRuns.Writer(from: position, limit: limit)
    var run: Range<Int64>?
    var end = position
    for entry in entries where entry != Self.gone {
      let offset = entry < 0 ? ~entry : entry
      guard !writer.isFull else { break }
      end = offset + 1
      if entry < 0 {
        // What lies between two settled records and never came is a hole, not work that is left.
        run = (run?.lowerBound ?? offset)..<end
      } else if let settled = run {
        writer.append(settled)
        run = nil
      }
    }
    if let run { writer.append(run) }
    for run in known.ranges where !writer.isFull {
      writer.append(max(next, run.lowerBound)..<max(next, run.upperBound))
    }
    return (position, writer.finish())
  }

  /// Forgets what the log has lost, which goes on at `offset`: all from there on, and what still ends of it settles
  /// nothing. What lies before may be there as it was, and is not done before it has ended; where a topic was made anew
  /// there is nothing before.
  private mutating func startOver(at offset: Int64) {
    for (index, entry) in entries.enumerated() where entry != Self.gone && (entry < 0 ? ~entry : entry) >= offset {
      if entry >= 0 { unsettled -= 1 }
      entries[index] = Self.gone
    }
    known = SettledRuns()
    removeSettledPrefix()
    // At once, not with the first record that settles: the old position may come to lie within the new log.
    if entries.isEmpty { position = offset }
  }

  private mutating func removeSettledPrefix() {
    while let first = entries.first, first < 0 {
      entries.removeFirst()
      base += 1
      if first != Self.gone { position = ~first + 1 }
    }
    while times.count > 1, times[1].sequence <= base { times.removeFirst() }
  }
}
