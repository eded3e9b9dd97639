import FanfareCore

/// The stored work items of one send, inside the transaction that changes them.
///
/// The items of an attempt count only when the attempt is complete, and then replace those of all others. So the send
/// counts the devices of exactly one attempt, in whatever order and however often the records of several attempts come.
protocol SendItems {
  /// The digest of the record already added for this item; nil when there is none.
  func digest(of item: LedgerEntry.Settlement) throws -> Int64?
  /// Adds an item that is not stored yet. Returns the sum of its attempt's items; with `item.parts` of them the attempt
  /// is complete.
  func add(_ item: LedgerEntry.Settlement, maximumDevices: Int) throws -> ItemSum
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

extension SendRow {
  /// Adds a record whose send is unknown, has several items, or has already settled; the same for every store.
  /// Returns whether the row has changed, and adds the changes of the totals to `delta`.
  mutating func add(
    _ settlement: LedgerEntry.Settlement, items: some SendItems, maximumDevices: Int, delta: inout HubDelta
  ) throws -> Bool {
    let recorded = settlement.parts == 1 ? digest : try items.digest(of: settlement)
    guard recorded != settlement.digest else { return false }
    // A dead letter that was redriven settles with its later result. A noted duplicate stays one.
    let replacesDeadLetter =
      try wasDeadLettered && settlement.state != .deadLettered && (settlement.parts == 1 || recorded == nil)
      && !items.isDuplicate(settlement)
    if !replacesDeadLetter, recorded != nil || isSettled {
      delta.duplicates += try items.noteDuplicate(settlement.digest, part: settlement.part)
      return false
    }
    var sum = ItemSum()
    if settlement.parts == 1 {
      sum.add(settlement, maximumDevices: maximumDevices)
    } else {
      sum = try items.add(settlement, maximumDevices: maximumDevices)
    }
    if sum.items < settlement.parts {
      if replacesDeadLetter {
        // It counts only once its attempt is complete.
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
      // A dead letter may be redriven, and then its earlier items count.
      if settlement.parts > 1 || settlement.state != .deadLettered { try items.close(with: settlement) }
    }
    settle(sum, digest: settlement.parts == 1 ? settlement.digest : nil)
    if let state = sum.state { delta.count(state) }
    delta.devices.add(sum.tally)
    return true
  }
}
