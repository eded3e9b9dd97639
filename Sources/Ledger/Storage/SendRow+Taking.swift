import FanfareCore

extension SendRow {
  /// Takes in a record whose send is not known yet, has several items, or has ended already: the same for every store.
  /// Returns whether the row has changed, and adds to `delta` what has become of it.
  mutating func take(
    _ settlement: LedgerEntry.Settlement, items: some SendItems, maximumDevices: Int, delta: inout HubDelta
  ) throws -> Bool {
    let recorded = settlement.parts == 1 ? digest : try items.digest(of: settlement)
    guard recorded != settlement.digest else { return false }
    // What was set aside and then put back ends as it ends now. What did not count before does not count now.
    let takesBack =
      try wasSetAside && settlement.state != .deadLettered && (settlement.parts == 1 || recorded == nil)
      && !items.isDuplicate(settlement)
    if !takesBack, recorded != nil || isSettled {
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
      if takesBack {
        // It counts only once all parts of its attempt are there.
        delta.duplicates += try items.noteDuplicate(settlement.digest, part: settlement.part)
      } else {
        expect(parts: settlement.parts)
      }
      return true
    }
    if takesBack {
      delta.count(.deadLettered, -1)
      if settlement.parts > 1 { delta.duplicates -= try items.redeem(settlement) }
      if let digest { delta.duplicates += try items.noteDuplicate(digest, part: 0) }
    }
    if knownParts > 1 || settlement.parts > 1 || takesBack {
      delta.duplicates += try items.noteOthers(than: settlement)
      // What is set aside may be put back, and what has come of it before counts then.
      if settlement.parts > 1 || settlement.state != .deadLettered { try items.close(with: settlement) }
    }
    settle(sum, digest: settlement.parts == 1 ? settlement.digest : nil)
    if let state = sum.state { delta.count(state) }
    delta.devices.add(sum.tally)
    return true
  }
}
