package import Logging
package import RDKafka
import Synchronization

/// A Kafka cluster inside this process, for development and tests: librdkafka's mock cluster. It speaks the real
/// protocol over TCP on loopback, on ports chosen by the kernel, so other processes of the machine can use it through
/// ``bootstrapServers``.
///
/// Limits:
/// - It keeps everything in memory, at most 5 MiB (compressed) and 100,000 batches per partition, and silently drops
///   the oldest beyond that, consumed or not. Give high-volume topics many partitions, and ask a ``BacklogMonitor``
///   before producing.
/// - A group's first assignment takes 3 s, every later rebalance the session timeout less one second.
/// - **A member that joins a group with another assignor than the group's ends the whole process.** ``Consumer`` always
///   uses cooperative-sticky; with kcat, consume without a group.
/// - Transactions, static membership, idempotent deduplication, topic settings and the admin requests are not
///   implemented. It does not compare sequence numbers either: when it refuses a batch, it takes the one behind it.
package final class EmbeddedCluster: Sendable {
  /// The brokers' addresses, `127.0.0.1:port`, separated by commas. Constant until ``close()``.
  package let bootstrapServers: String

  private let cluster: Mutex<MockCluster?>
  private let logger: Logger

  /// Starts the brokers and creates `topics`. They are ready when this returns.
  ///
  /// - Parameters:
  ///   - brokers: The number of brokers, 1 to 9, and the largest replication factor.
  ///   - topics: The topics; their settings are ignored.
  ///   - logger: Logs start and end.
  /// - Throws: `configuration` for a number of brokers out of range, `broker` for a topic that cannot be created.
  package init(brokers: Int = 1, topics: [TopicSpecification], logger: Logger) throws(RDKafkaError) {
    guard (1...9).contains(brokers) else {
      throw RDKafkaError(code: .configuration, message: "an embedded cluster has 1 to 9 brokers, not \(brokers)")
    }
    let mock = try MockCluster(brokers: brokers)
    bootstrapServers = mock.bootstrapServers
    cluster = Mutex(mock)
    self.logger = logger
    try createTopics(topics)
    logger.notice(
      "Embedded Kafka cluster started: in memory, volatile, at most 5 MiB per partition",
      metadata: [LogKeys.servers: "\(bootstrapServers)"])
  }

  /// Creates topics.
  ///
  /// - Throws: `broker` if one exists already; those before it are created.
  package func createTopics(_ topics: [TopicSpecification]) throws(RDKafkaError) {
    let cluster = try open()
    for topic in topics {
      try cluster.createTopic(topic.name, partitions: topic.partitions, replicationFactor: topic.replicationFactor)
    }
  }

  /// Stops the brokers and drops their records. Calling it again has no effect.
  package func close() {
    let last = cluster.withLock { cluster in
      defer { cluster = nil }
      return cluster
    }
    if last != nil { logger.info("Embedded Kafka cluster stopped") }
  }

  private func open() throws(RDKafkaError) -> MockCluster {
    guard let cluster = cluster.withLock({ $0 }) else {
      throw RDKafkaError(code: .closed, message: "the embedded cluster is closed")
    }
    return cluster
  }
}

// MARK: - Faults on demand

extension EmbeddedCluster {
  /// A kind of request that can be made to fail. The raw value is the protocol's API key.
  package enum Request: Int16, Sendable, CaseIterable {
    case produce = 0
    case fetch = 1
    case listOffsets = 2
    case metadata = 3
    case offsetCommit = 8
    case offsetFetch = 9
    case findCoordinator = 10
    case joinGroup = 11
    case heartbeat = 12
    case leaveGroup = 13
    case syncGroup = 14
    case initProducerID = 22
  }

  /// How a request fails. The raw value is the protocol's error number, or librdkafka's for what is not in the
  /// protocol.
  package enum Fault: Int32, Sendable, CaseIterable {
    /// The connection is dropped without an answer.
    case disconnect = -195
    case unknownTopic = 3
    case notLeader = 6
    case requestTimedOut = 7
    case messageTooLarge = 10
    case offsetMetadataTooLarge = 12
    case coordinatorNotAvailable = 15
    case notCoordinator = 16
    case notEnoughReplicas = 19
    case notEnoughReplicasAfterAppend = 20
    case rebalanceInProgress = 27
    case topicAuthorizationFailed = 29
    case outOfOrderSequence = 45
  }

  /// Makes the next requests of one kind fail, one fault each, in order, whichever broker they go to.
  package func inject(_ faults: [Fault], into request: Request) throws(RDKafkaError) {
    try open().pushErrors(faults.map(\.rawValue), request: request.rawValue)
  }

  /// Removes injected faults that have not occurred yet.
  package func clearFaults(of request: Request) throws(RDKafkaError) {
    try open().clearErrors(request: request.rawValue)
  }

  /// Refuses to describe a topic, as to a client without rights on it.
  package func hide(_ topic: String) throws(RDKafkaError) {
    try open().setError(Fault.topicAuthorizationFailed.rawValue, of: topic)
  }

  /// Makes brokers, numbered from 1, unreachable or reachable again; -1 means all. Leaders do not move by
  /// themselves.
  package func setBroker(_ broker: Int32 = -1, isUp: Bool) throws(RDKafkaError) {
    try open().setBroker(broker, isUp: isUp)
  }

  /// Delays every response of a broker; -1 means all.
  package func setRoundTripTime(_ time: Duration, broker: Int32 = -1) throws(RDKafkaError) {
    try open().setRoundTripTime(broker, milliseconds: Int32(clamping: Int64(time / .milliseconds(1))))
  }

  /// Moves a partition's leadership to a broker.
  package func setLeader(of partition: TopicPartition, broker: Int32) throws(RDKafkaError) {
    try open().setLeader(partition, broker: broker)
  }

  /// Moves a group's coordinator to a broker.
  package func setCoordinator(ofGroup group: String, broker: Int32) throws(RDKafkaError) {
    try open().setCoordinator(group: group, broker: broker)
  }
}
