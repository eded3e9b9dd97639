import CRDKafka
import RDKafka

/// Owns librdkafka's mock cluster and the producer handle it lives on.
///
/// Unchecked: the pointers never change, and the functions on them pass a message to the cluster's own thread.
@safe final class MockCluster: @unchecked Sendable {
  private let handle: OpaquePointer
  private let cluster: OpaquePointer
  /// The brokers' addresses.
  let bootstrapServers: String

  /// Starts the brokers.
  init(brokers: Int) throws(RDKafkaError) {
    let configuration = unsafe rd_kafka_conf_new()
    let properties = [
      ("client.id", "embedded-cluster"),
      // The brokers' sockets use this setting. Without it the last responses of a burst wait for the client's delayed
      // acknowledgements, 40 ms. Real brokers disable Nagle's algorithm too.
      ("socket.nagle.disable", "true"),
    ]
    for (key, value) in properties { _ = unsafe rd_kafka_conf_set(configuration, key, value, nil, 0) }
    unsafe rd_kafka_conf_set_log_cb(configuration, nil)
    var text = [CChar](repeating: 0, count: 512)
    guard let handle = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &text, text.count) else {
      unsafe rd_kafka_conf_destroy(configuration)
      let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      throw RDKafkaError(code: .configuration, message: reason)
    }
    guard let cluster = unsafe rd_kafka_mock_cluster_new(handle, Int32(brokers)) else {
      unsafe rd_kafka_destroy(handle)
      throw RDKafkaError(code: .broker, message: "the embedded cluster does not start")
    }
    unsafe self.handle = unsafe handle
    unsafe self.cluster = unsafe cluster
    bootstrapServers = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
  }

  deinit {
    // Ends the cluster's thread and its connections.
    unsafe rd_kafka_mock_cluster_destroy(cluster)
    unsafe rd_kafka_destroy(handle)
  }

  /// Creates a topic; fails if it exists.
  func createTopic(_ name: String, partitions: Int32, replicationFactor: Int16) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_topic_create(cluster, name, partitions, Int32(replicationFactor)), "topic '\(name)'")
  }

  /// Makes requests about a topic fail; 0 ends that.
  func setError(_ number: Int32, of topic: String) {
    unsafe rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(rawValue: number))
  }

  /// Makes the next requests of a kind fail, one number each.
  func pushErrors(_ numbers: [Int32], request: Int16) {
    let errors = numbers.map { rd_kafka_resp_err_t(rawValue: $0) }
    unsafe rd_kafka_mock_push_request_errors_array(cluster, request, errors.count, errors)
  }

  /// Removes the errors of ``pushErrors(_:request:)`` that have not occurred yet.
  func clearErrors(request: Int16) {
    unsafe rd_kafka_mock_clear_request_errors(cluster, request)
  }

  /// Makes a broker reachable or unreachable; -1 means all brokers.
  func setBroker(_ broker: Int32, isUp: Bool) throws(RDKafkaError) {
    let status =
      isUp ? unsafe rd_kafka_mock_broker_set_up(cluster, broker) : unsafe rd_kafka_mock_broker_set_down(cluster, broker)
    try check(status, "broker \(broker)")
  }

  /// Delays a broker's responses; -1 means all brokers.
  func setRoundTripTime(_ broker: Int32, milliseconds: Int32) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_broker_set_rtt(cluster, broker, milliseconds), "broker \(broker)")
  }

  /// Moves a partition's leadership.
  func setLeader(_ partition: TopicPartition, broker: Int32) throws(RDKafkaError) {
    try check(
      unsafe rd_kafka_mock_partition_set_leader(cluster, partition.topic, partition.partition, broker), "\(partition)")
  }

  /// Moves a group's coordinator.
  func setCoordinator(group: String, broker: Int32) throws(RDKafkaError) {
    try check(unsafe rd_kafka_mock_coordinator_set(cluster, "group", group, broker), "group '\(group)'")
  }

  private func check(_ status: rd_kafka_resp_err_t, _ context: String) throws(RDKafkaError) {
    guard status != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    let text = unsafe String(cString: rd_kafka_err2str(status))
    throw RDKafkaError(code: .broker, message: "\(context): \(text)", number: status.rawValue)
  }
}
