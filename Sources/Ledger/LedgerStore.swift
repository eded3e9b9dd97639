package import FanfareCore
package import RDKafka

/// The store of a ledger: a SQLite file of its own, or a PostgreSQL database that several ledgers share.
///
/// The ledger calls `positions` after each assignment, while no write is pending; `write` for up to `writesAtOnce`
/// batches at a time, started in order; `reach` for batches that are written and have no pending write before them; and
/// `removeExpired` about every second, one call after another. Every failure is a `LedgerError`; every call may be
/// repeated after one.
package protocol LedgerStore: SendHistory {
  /// Results of single devices are kept for sends to at most this many devices; counts always are.
  var maximumDevices: Int { get }

  /// The number of batches that may be written at the same time.
  var writesAtOnce: Int { get }

  /// Writes a batch. Each record counts once, in whatever order and however often records come. Returns the number of
  /// duplicates: records of a work item or of an attempt that had already been counted.
  func write(_ batch: LedgerBatch) async throws -> Int

  /// Stores positions up to which everything is written. A store that stores them with each batch has nothing to do.
  func reach(_ positions: [TopicPartition: Int64]) async throws

  /// The last stored position of each partition, never beyond the records written; unknown partitions are left out.
  func positions() async throws -> [TopicPartition: Int64]

  /// Removes sends older than the retention, if that is due. May take minutes; nothing waits for it. Returns soon after
  /// its task is cancelled, and logs its own failures. A store that removes them with each batch has nothing to do.
  func removeExpired() async

  /// The totals of a hub since the store was created.
  func totals(hub: HubName) async throws -> LedgerTotals
}

extension LedgerStore {
  package var writesAtOnce: Int { 1 }

  package func reach(_ positions: [TopicPartition: Int64]) async throws {}

  package func removeExpired() async {}
}

/// The totals of one hub since its store was created. Retention does not reduce them.
package struct LedgerTotals: Hashable, Sendable {
  /// Sends known from either topic.
  package var accepted = 0
  /// Sends whose work items have all settled, including the four counts below.
  package var settled = 0
  /// Settled without a registered device.
  package var noTarget = 0
  /// Settled because the time to live had passed before the first push.
  package var expired = 0
  /// Settled by a dead letter.
  package var deadLettered = 0
  /// Settled by a cancellation, before every device was pushed to.
  package var cancelled = 0
  /// Sends known only by a status record. Zero once the ledger has read both topics to their ends.
  package var unannounced = 0
  /// Status records that did not count, because their work item had one already or another attempt was complete first:
  /// repeated dispatches after a crash. Records that are only read again are not included.
  package var duplicates = 0
  /// Devices by platform and outcome.
  package var devices: [Platform: [DeviceResult.Outcome: Int]] = [:]

  package init() {}

  /// Sends that are known and not settled: `accepted == settled + inFlight` at any moment.
  package var inFlight: Int { accepted - settled }
}
