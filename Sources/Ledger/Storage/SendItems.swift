/// The work items of one send as a store keeps them, inside the transaction that changes them.
///
/// What they have come to counts only when an attempt is complete, and then replaces all others: so whatever records of
/// however many attempts come, in any order and any number of times, the send counts the devices of exactly one.
protocol SendItems {
  /// The digest of the record that was added as this item of several; nil when there is none.
  func digest(of item: LedgerEntry.Settlement) throws -> Int64?
  /// Adds an item that is not there yet. Returns what the items of its attempt have come to; with as many as
  /// `item.parts` it is complete.
  func add(_ item: LedgerEntry.Settlement, maximumDevices: Int) throws -> ItemSum
  /// The records of all attempts but the item's have come for nothing. Returns how many those are that were not noted
  /// yet.
  func noteOthers(than item: LedgerEntry.Settlement) throws -> Int
  /// The send has ended with this item: its attempt needs only be known again, and the others, which have been noted,
  /// can never be complete.
  func close(with item: LedgerEntry.Settlement) throws
  /// The records of the item's attempt count after all. Returns how many had been noted as such that do not.
  func redeem(_ item: LedgerEntry.Settlement) throws -> Int
  /// Whether the record has been noted as one that does not count.
  func isDuplicate(_ item: LedgerEntry.Settlement) throws -> Bool
  /// Notes a record that does not count. Returns how many were not noted yet: 0 or 1.
  func noteDuplicate(_ digest: Int64, part: Int) throws -> Int
}
