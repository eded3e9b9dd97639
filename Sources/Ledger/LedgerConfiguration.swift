package import FanfareCore
package import RDKafka

/// What a ledger reads, and how much of it at a time.
package struct LedgerConfiguration: Sendable {
  /// The names of the topics; sends and status are read.
  package var topics: Topics
  /// The consumer. One group per store: its members share the partitions, so ledgers with files of their own need
  /// groups of their own.
  package var consumer: ConsumerConfiguration
  /// The most records in one transaction.
  package var batchRecords = 5000
  /// The most records taken from Kafka and not in the file yet.
  package var windowRecords = 20_000
  /// About the most bytes of such records.
  package var windowBytes = 64 * 1024 * 1024
  /// The wait after the first failed transaction; doubles with each further one.
  package var firstRetryDelay: Duration = .milliseconds(100)
  /// The longest wait between two tries.
  package var longestRetryDelay: Duration = .seconds(5)
  /// How long failing transactions are tried again while shutting down; what is not in the file then is read again next
  /// time.
  package var drainTimeout: Duration = .seconds(5)

  /// The defaults, with the group `<prefix>.ledger`.
  package init(client: KafkaClientConfiguration, topics: Topics = Topics(), group: String? = nil) {
    self.topics = topics
    consumer = ConsumerConfiguration(
      client: client, groupID: group ?? topics.prefix + ".ledger", topics: [topics.sends, topics.status])
    consumer.readsHeaders = false
    // Nobody waits for the ledger by the millisecond; the embedded cluster answers every idle fetch after this long.
    consumer.fetchWait = .milliseconds(100)
    // An assignment waits for the transaction under way and for a look at the committed offsets.
    consumer.rebalanceDeadline = .seconds(10)
    consumer.closeTimeout = .seconds(15)
  }
}
