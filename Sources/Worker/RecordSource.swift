package import RDKafka

/// The source of a worker's records.
/// The worker is its only reader, runs it, and closes it when it ends. `Consumer` is the implementation; tests and
/// benchmarks use another, without a broker.
package protocol RecordSource: Sendable {
  /// The events in order: records of a partition come only between its `assigned` and its `revoked`
  /// or `lost`. One reader.
  var events: AsyncStream<ConsumerEvent> { get }

  /// Adds credit for `records` records; a negative number reduces it.
  /// Records already under way still come and may make the credit negative. Callable from any thread.
  func grant(records: Int)

  /// Pauses or resumes the records of the segments topic. Records already under way may still come.
  /// Callable from any thread.
  func setPaused(_ isPaused: Bool)

  /// The id of the Kafka cluster; nil if it has none.
  func clusterID() async throws(RDKafkaError) -> String?

  /// The group's committed positions with metadata; partitions without a position are left out.
  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]

  /// The positions that an earlier owner could not commit to the group, with metadata.
  /// They continue the committed positions, so ask for those before.
  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]

  /// Commits positions with their metadata now; returns when the broker has them.
  /// Throws `.rebalancing` while the group is between two assignments, after keeping the positions for `kept`: a later
  /// commit may succeed for the partitions that are still owned then. Throws `.messageTooLarge` if metadata is too long
  /// for the broker.
  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError)

  /// The number of records behind the position of each assigned partition.
  func lag() -> [TopicPartition: Int64]

  /// Runs the source; returns when it is closed, or after a fatal error.
  func run() async

  /// Leaves the group in order: the last revocation comes through `events`, which then end.
  func close() async
}

/// The destination of a worker's records; `Producer` is the implementation.
/// It must outlive the worker, which does not own it.
package protocol RecordSink: Sendable {
  /// Takes records and returns at once.
  /// `completion` is called once, with one result per record in their order, on any thread.
  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void)
}
