import FanfareCore

/// The stored work items of one send, inside the transaction that changes them.
///
/// The items of an attempt count only when the attempt is complete, and then replace those of all others. So the send
/// counts the devices of exactly one attempt, in whatever order and however often the records of several attempts come.
protocol SendItems {
  /// The stored ranges of the item's attempt that overlap the item, in ascending order. They do not overlap each other.
  func stored(_ item: LedgerEntry.Settlement) throws -> [StoredRange]
  /// Adds the ranges of an item, which are not stored yet. Returns the sum of its attempt's items; with `item.parts` of
  /// them the attempt is complete.
  func add(_ item: LedgerEntry.Settlement, _ ranges: [Range<Int>], maximumDevices: Int) throws -> ItemSum
  /// Notes the records of all other attempts as duplicates. Returns how many were not noted before.
  func noteOthers(than item: LedgerEntry.Settlement) throws -> Int
  /// Removes the other attempts, which have been noted as duplicates, after the send has settled with this item. The
  /// records of the item's own attempt stay, so that they are recognised when read again.
  func close(with item: LedgerEntry.Settlement) throws
  /// Removes the notes of the item's attempt, whose records count after all. Returns how many there were.
  func redeem(_ item: LedgerEntry.Settlement) throws -> Int
  /// Whether the record is noted as a duplicate.
  func isDuplicate(_ item: LedgerEntry.Settlement) throws -> Bool
  /// Notes a record as a duplicate. Returns 1 if it was not noted before, else 0.
  func noteDuplicate(_ digest: Int64, part: Int) throws -> Int
}

/// Consecutive work items of an attempt that one record has settled: nearly always one.
struct StoredRange {
  let items: Range<Int>
  let digest: Int64

  /// The items of a row; nil for values that no release has written.
  static func items(_ part: Int64, _ span: Int64) -> Range<Int>? {
    guard (0..<Int64(StatusRecord.maximumParts)).contains(part), (1...Int64(StatusRecord.maximumSpan)).contains(span)
    else { return nil }
    return Int(part)..<Int(part + span)
  }
}

extension [StoredRange] {
  /// The parts of `range` outside these ranges.
  ///
  /// So a record of many pages costs one row for each gap between the pages that are known, and not one for each page.
  func gaps(in range: Range<Int>) -> [Range<Int>] {
    var (gaps, next) = ([Range<Int>](), range.lowerBound)
    for known in self {
      if known.items.lowerBound > next { gaps.append(next..<known.items.lowerBound) }
      next = Swift.max(next, known.items.upperBound)
    }
    if next < range.upperBound { gaps.append(next..<range.upperBound) }
    return gaps
  }
}

extension SendRow {
  /// Adds a record whose send is unknown, has several items, or has already settled; the same for every store.
  /// Returns whether the row has changed, and adds the changes of the totals to `delta`.
  ///
  /// The first complete attempt settles a send. Records that do not count are *duplicates*, each noted by its digest
  /// and counted once. The exception is a send that was dead-lettered and then redriven: it settles again, with the
  /// later result, and the dead letter's record becomes a duplicate. Items of the later attempt are noted as duplicates
  /// until the attempt is complete, because it may never be; then they are redeemed. A record that was a duplicate
  /// before, of an attempt that did not count, stays one.
  mutating func add(
    _ settlement: LedgerEntry.Settlement, items: some SendItems, maximumDevices: Int, delta: inout HubDelta
  ) throws -> Bool {
    var (isRecorded, gaps) = (digest != nil, [Range<Int>]())
    if settlement.parts == 1 {
      guard digest != settlement.digest else { return false }
    } else {
      let stored = try items.stored(settlement)
      guard !stored.contains(where: { $0.digest == settlement.digest }) else { return false }
      gaps = stored.gaps(in: settlement.range)
      isRecorded = gaps.isEmpty
    }
    let replacesDeadLetter =
      try wasDeadLettered && settlement.state != .deadLettered && (settlement.parts == 1 || !isRecorded)
      && !items.isDuplicate(settlement)
    if !replacesDeadLetter, isRecorded || isSettled {
      delta.duplicates += try items.noteDuplicate(settlement.digest, part: settlement.part)
      return false
    }
    var sum = ItemSum()
    if settlement.parts == 1 {
      sum.add(settlement, maximumDevices: maximumDevices)
    } else {
      sum = try items.add(settlement, gaps, maximumDevices: maximumDevices)
    }
    if sum.items < settlement.parts {
      if replacesDeadLetter {
        delta.duplicates += try items.noteDuplicate(settlement.digest, part: settlement.part)
      } else {
        expect(parts: settlement.parts)
      }
      return true
    }
    if replacesDeadLetter {
      delta.count(.deadLettered, -1)
      if settlement.parts > 1 { delta.duplicates -= try items.redeem(settlement) }
      if let digest { delta.duplicates += try items.noteDuplicate(digest, part: 0) }
    }
    if knownParts > 1 || settlement.parts > 1 || replacesDeadLetter {
      delta.duplicates += try items.noteOthers(than: settlement)
      // The items of a dead letter are kept: they count if it is redriven.
      if settlement.parts > 1 || settlement.state != .deadLettered { try items.close(with: settlement) }
    }
    settle(sum, digest: settlement.parts == 1 ? settlement.digest : nil)
    if let state = sum.state { delta.count(state) }
    delta.devices.add(sum.tally)
    return true
  }
}
