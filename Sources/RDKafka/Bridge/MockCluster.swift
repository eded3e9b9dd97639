import CRDKafka

/// Owns librdkafka's mock cluster and the handle it lives on.
///
/// Unchecked: the pointer never changes, and the functions on it pass a message to the cluster's own thread.
@safe final class MockCluster: @unchecked Sendable {
  private let handle: Handle
  private let pointer: OpaquePointer
  /// The brokers' addresses.
  let bootstrapServers: String

  /// Starts the brokers.
  init(brokers: Int) throws(RDKafkaError) {
    let properties = PropertySet(
      required: [
        Property("client.id", "embedded-cluster"),
        // The brokers' own sockets take it from here. Without it the last answers of a burst wait for the client's
        // delayed acknowledgements, 40 ms; Kafka's brokers never wait for those either.
        Property("socket.nagle.disable", "true"),
      ], ifSupported: [], further: [:], reserved: [])
    handle = try Handle(kind: .producer, properties: properties, events: 0, logsToQueue: false)
    guard let pointer = unsafe rd_kafka_mock_cluster_new(handle.pointer, Int32(brokers)) else {
      throw RDKafkaError(code: .broker, message: "the embedded cluster does not start")
    }
    unsafe self.pointer = unsafe pointer
    bootstrapServers = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(pointer))
  }

  deinit {
    // Ends the cluster's thread and its connections; the handle follows.
    unsafe rd_kafka_mock_cluster_destroy(pointer)
  }

  /// Creates a topic; fails if it exists.
  func createTopic(_ name: String, partitions: Int32, replicationFactor: Int16) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_topic_create(pointer, name, partitions, Int32(replicationFactor)), "topic '\(name)'")
  }

  /// Makes the next requests of a kind fail, one number each.
  func pushErrors(_ numbers: [Int32], request: Int16) {
    let errors = numbers.map { rd_kafka_resp_err_t(rawValue: $0) }
    unsafe rd_kafka_mock_push_request_errors_array(pointer, request, errors.count, errors)
  }

  /// Takes back what ``pushErrors(_:request:)`` has left over.
  func clearErrors(request: Int16) {
    unsafe rd_kafka_mock_clear_request_errors(pointer, request)
  }

  /// Opens or closes a broker's door; -1 is all of them.
  func setBroker(_ broker: Int32, isUp: Bool) throws(RDKafkaError) {
    let status =
      isUp ? unsafe rd_kafka_mock_broker_set_up(pointer, broker) : unsafe rd_kafka_mock_broker_set_down(pointer, broker)
    try check(status, "broker \(broker)")
  }

  /// Delays a broker's answers; -1 is all of them.
  func setRoundTripTime(_ broker: Int32, milliseconds: Int32) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_broker_set_rtt(pointer, broker, milliseconds), "broker \(broker)")
  }

  /// Moves a partition.
  func setLeader(_ partition: TopicPartition, broker: Int32) throws(RDKafkaError) {
    try check(
      unsafe rd_kafka_mock_partition_set_leader(pointer, partition.topic, partition.partition, broker), "\(partition)")
  }

  /// Moves a group.
  func setCoordinator(group: String, broker: Int32) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_coordinator_set(pointer, "group", group, broker), "group '\(group)'")
  }

  private func check(_ status: rd_kafka_resp_err_t, _ context: String) throws(RDKafkaError) {
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: context) }
  }
}
