package import FanfareCore
package import RDKafka

/// Where a ledger puts what it reads: a SQLite file of its own, or a PostgreSQL database that several ledgers share.
///
/// The ledger calls `positions` whenever it is given partitions and nothing is being written, and `write` in the order of the batches. Every failure is a `LedgerError`, and the
/// same call may be repeated after any of them.
package protocol LedgerStorage: SendHistory {
  /// Each device's result is kept for sends to at most this many devices; counts always are.
  var maximumDevices: Int { get }

  /// How many batches may be written at the same time.
  var writesAtOnce: Int { get }

  /// Puts a batch into the store, and with the last of it how far the log has been read: a position never says more than what is there. Every record counts
  /// once, whatever is repeated and in whatever order it comes. Returns how many records have turned out to have come for nothing.
  func write(_ batch: LedgerBatch) async throws -> Int

  /// The offset after the last record of each partition that is in the store; partitions of which there is none are left out.
  func positions() async throws -> [TopicPartition: Int64]

  /// The sums of a hub since the store was made.
  func totals(hub: HubName) async throws -> LedgerTotals
}

extension LedgerStorage {
  /// One after the other.
  package var writesAtOnce: Int { 1 }
}
