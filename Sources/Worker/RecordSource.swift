package import RDKafka

/// The source of a worker's records. The worker is the only reader, runs it, and closes it at its own end. `Consumer`
/// is the implementation; the seam lets tests and benchmarks do without a broker.
package protocol RecordSource: Sendable {
  /// What happens, in order: records of a partition come only between its `assigned` and its `revoked` or `lost`. One
  /// reader.
  var events: AsyncStream<ConsumerEvent> { get }

  /// Allows so many records more to be delivered, or fewer where the number is negative: what is on its way then still
  /// comes, and is a debt. Callable from any thread.
  func grant(records: Int)

  /// Keeps back, from now on or no more, the records of the segments' topic; those that are on their way may still
  /// come. Callable from any thread.
  func setPaused(_ isPaused: Bool)

  /// What the group has committed, with metadata; partitions without a position are left out.
  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]

  /// What the group has refused most recently, with metadata, where that is kept for the next owner; it may be older
  /// than what is committed.
  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]

  /// Commits positions with their metadata now; returns when the broker has them. Throws `.rebalancing` while the group
  /// is between two assignments: later it may succeed, for the partitions that are still owned then. Throws
  /// `.messageTooLarge` where metadata is too long for it.
  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError)

  /// How many records lie behind the position of each partition assigned.
  func lag() -> [TopicPartition: Int64]

  /// The lifetime; returns when closed, or after a fatal error.
  func run() async

  /// Leaves the group in order: the last revocation comes through `events`, which then end.
  func close() async
}

/// Where a worker's records go; `Producer` is the implementation. It is not the worker's own, and must outlive it.
package protocol RecordSink: Sendable {
  /// Takes records and returns at once. `completion` is called once, with one result per record in their order, on any
  /// thread.
  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void)
}
