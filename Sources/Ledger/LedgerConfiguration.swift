package import FanfareCore
package import RDKafka

/// The topics and the consumer of a ledger, and its limits.
package struct LedgerConfiguration: Sendable {
  /// The topic names; the sends and status topics are read.
  package var topics: Topics
  /// The consumer. One group per store: a group's members share the partitions, so each SQLite ledger needs a group of
  /// its own.
  package var consumer: ConsumerConfiguration
  /// The most records in one transaction.
  package var batchRecords = 5000
  /// The most records consumed and not yet written.
  package var windowRecords = 20_000
  /// The approximate limit of the bytes of those records.
  package var windowBytes = 64 * 1024 * 1024
  /// The backoff after failed transactions.
  package var backoff = Backoff(first: .milliseconds(100), limit: .seconds(5))
  /// How long failing transactions are retried during a shutdown; unwritten records are read again after a restart.
  package var drainTimeout: Duration = .seconds(5)

  /// The defaults; the group is `<prefix>.ledger` unless given.
  package init(client: KafkaClientConfiguration, topics: Topics = Topics(), group: String? = nil) {
    self.topics = topics
    consumer = ConsumerConfiguration(
      client: client, groupID: group ?? topics.prefix + ".ledger", topics: [topics.sends, topics.status])
    consumer.readsHeaders = false
    // Reports may be late by this much. The embedded cluster answers every idle fetch only after this time.
    consumer.fetchWait = .milliseconds(100)
    // An assignment waits for the pending transaction and for the committed offsets.
    consumer.rebalanceDeadline = .seconds(10)
    consumer.closeTimeout = .seconds(15)
  }
}
