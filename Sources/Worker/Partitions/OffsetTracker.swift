import DequeModule

/// The offsets of one partition during one assignment, from the first unsettled one on.
///
/// Records settle in any order; only the contiguous settled prefix may be committed. Runs settled above it go into the
/// commit's metadata, from which the next owner takes them over. Every operation on a record is O(1) amortised; an
/// entry costs eight bytes.
struct OffsetTracker: Sendable {
  /// One entry per record in the order of delivery, so that holes in the log (compaction,
  /// transaction markers) do not matter. Offsets are never negative: the complement marks a settled one, `gone` one
  /// that the log has lost.
  private var entries: Deque<Int64> = []
  /// The sequence number of the first entry.
  private var base: Int64 = 0
  /// When entries were written, in milliseconds since 1970, by sequence number: the first one, and
  /// each that is at least a second later than the previously noted one. Too few to need room in every entry.
  private var times: Deque<(sequence: Int64, timestamp: Int64)> = []
  /// The offset after the last record; before the first record, the position resumed from.
  private var next: Int64 = 0
  /// Offsets still to be read that an earlier owner has settled.
  private var known = SettledRuns()
  /// Covers the records behind `known`; nil: the commit had no metadata, and every offset is believed.
  private var evidence: LogWitness?
  /// Covers every record of this log that was taken or taken over.
  private(set) var witness = LogWitness()
  /// Records begun and not settled.
  private(set) var unsettled = 0
  /// The offset at which the next owner begins: one after the settled prefix; nil until the first
  /// record settles or the position is renewed. Goes back only when the log was cut or created again.
  private(set) var position: Int64?
  /// The position that an earlier owner has committed; nil without one, and in a new log.
  private var resumed: Int64?

  private static let gone = Int64.min

  /// Sequence numbers below this one may be of entries that the log has lost.
  private var lostBelow: Int64 = 0

  /// The distance from the first unsettled record to the last one taken, in records.
  var span: Int { entries.count }

  /// When the first unsettled record was written, accurate to a second, in milliseconds since 1970;
  /// nil if all have settled or the time is unknown.
  var oldestTimestamp: Int64? { entries.isEmpty ? nil : times.first?.timestamp }

  /// Takes over an earlier owner's position and settled runs. Has no effect after the first record.
  mutating func resume(from position: Int64, settled: SettledRuns, evidence: LogWitness? = nil) {
    guard base == 0, entries.isEmpty else { return }
    next = position
    resumed = position
    known = settled
    self.evidence = evidence
    if let evidence { witness.formUnion(evidence) }
  }

  /// Makes an earlier owner's position one to commit, before anything was settled.
  mutating func renew() { position = position ?? resumed }

  /// Takes over further offsets that an earlier owner has settled: all below `position`, and
  /// `settled`. Has no effect after the first record.
  mutating func learn(_ settled: SettledRuns, below position: Int64, evidence: LogWitness? = nil) {
    guard base == 0, entries.isEmpty else { return }
    known.formUnion(settled)
    if position > next {
      known.formUnion(SettledRuns(next..<position))
      // The evidence in the group's commit is older than these records, so it cannot confirm them.
      if evidence == nil { self.evidence = nil }
    }
    guard let evidence else { return }
    witness.formUnion(evidence)
    self.evidence = witness
  }

  /// Whether a record with that offset belongs to another log: the topic was created again, or an
  /// election has cut its end.
  func isOfNewLog(_ offset: Int64) -> Bool { offset < next }

  /// Begins a record, in the order of delivery.
  /// Returns its number for `settle`; nil if an earlier owner has settled it. `timestamp`: when it was written, in
  /// milliseconds since 1970; negative if unknown. `epoch`: the leader epoch under which it was appended; negative if
  /// unknown.
  mutating func begin(_ offset: Int64, timestamp: Int64 = -1, epoch: Int32 = -1) -> Int64? {
    if isOfNewLog(offset) { startOver(at: offset) }
    if !known.isEmpty, let evidence, !evidence.covers(timestamp: timestamp, epoch: epoch) {
      // Either another record stands at this offset, or the settled ones lie before it.
      known = SettledRuns()
    }
    witness.take(timestamp: timestamp, epoch: epoch)
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

  /// Settles a record, unless it is settled already or unknown. Returns whether it did.
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

  /// The offset of a record that has not settled; nil if it has, or if the log has lost it.
  func offset(of sequence: Int64) -> Int64? {
    guard sequence >= base, sequence - base < Int64(entries.count) else { return nil }
    let offset = entries[Int(sequence - base)]
    return offset >= 0 ? offset : nil
  }

  /// Whether offsets above the position are known to be settled, so that a commit needs metadata.
  var hasSettledAbove: Bool { entries.count > unsettled || !known.isEmpty }

  /// The position to commit and, in at most `limit` bytes, the runs settled above it; nil if
  /// nothing was settled. Looks at every entry if there are runs above the position.
  func committable(limit: Int) -> (position: Int64, metadata: String?)? {
    let isSettledAbove = entries.count > unsettled
    // While the first record taken is unsettled, the next owner begins with it.
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
        // Missing offsets between two settled records are a hole in the log, not unfinished work.
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

  /// Continues the log at `offset`.
  /// Entries from there on are lost and settle nothing. Earlier entries may still exist, and stay unsettled until they
  /// settle.
  private mutating func startOver(at offset: Int64) {
    lostBelow = base + Int64(entries.count)
    for (index, entry) in entries.enumerated() where entry != Self.gone && (entry < 0 ? ~entry : entry) >= offset {
      if entry >= 0 { unsettled -= 1 }
      entries[index] = Self.gone
    }
    known = SettledRuns()
    resumed = nil
    // Both describe records that the log has lost. The new witness covers only records that are taken from now on
    // (`LogWitness.covers`), so the next owner dispatches records again that settled before the cut and are younger
    // than all of those.
    evidence = nil
    witness = LogWitness()
    removeSettledPrefix()
    // At once, not when the next record settles: the log may grow beyond the old position meanwhile, and a next owner
    // that began there would skip the records below it.
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

  /// Whether the record has settled, and not because the log has lost it.
  func isSettled(_ sequence: Int64) -> Bool {
    guard sequence >= base else { return sequence >= lostBelow }
    let index = Int(sequence - base)
    return index < entries.count && entries[index] < 0 && entries[index] != Self.gone
  }

  func checkInvariants() -> [String] {
    var violations: [String] = []
    if entries.count(where: { $0 >= 0 }) != unsettled { violations.append("\(unsettled) unsettled records counted") }
    if let first = entries.first, first < 0 { violations.append("the settled prefix is not removed") }
    return violations
  }
}
