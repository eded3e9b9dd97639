package import FanfareCore
package import RDKafka

/// Where a ledger puts what it reads: a SQLite file of its own, or a PostgreSQL database that several ledgers share.
///
/// The ledger calls `positions` whenever it is given partitions and nothing is being written, `write` for several
/// batches at once, begun in their order, and `reach` for what has been written and has nothing open before it. Every
/// failure is a `LedgerError`, and the same call may be repeated after any of them. Beside all that it calls `retire`
/// every second or so, one call after the other.
package protocol LedgerStorage: SendHistory {
  /// Each device's result is kept for sends to at most this many devices; counts always are.
  var maximumDevices: Int { get }

  /// How many batches may be written at the same time.
  var writesAtOnce: Int { get }

  /// Puts a batch into the store. Every record counts once, whatever is repeated and in whatever order it comes.
  /// Returns how many records have turned out to have come for nothing.
  func write(_ batch: LedgerBatch) async throws -> Int

  /// Notes how far the log has been read: everything before these positions is in the store. What a store takes one
  /// batch at a time it can note together with the batch, and then there is nothing left to do here.
  func reach(_ positions: [TopicPartition: Int64]) async throws

  /// The offset that was noted last for each partition, and never more than what is in the store; partitions of which
  /// there is none are left out.
  func positions() async throws -> [TopicPartition: Int64]

  /// Removes what has been kept for long enough, where that is due: it may take minutes, and nothing else waits for it.
  /// Ends soon after its task is cancelled. What a store removes with each batch it need not remove here. Says itself
  /// what fails.
  func retire() async

  /// The sums of a hub since the store was made.
  func totals(hub: HubName) async throws -> LedgerTotals
}

extension LedgerStorage {
  /// One after the other.
  package var writesAtOnce: Int { 1 }

  /// Noted with the batches.
  package func reach(_ positions: [TopicPartition: Int64]) async throws {}

  /// Removed with the batches.
  package func retire() async {}
}
