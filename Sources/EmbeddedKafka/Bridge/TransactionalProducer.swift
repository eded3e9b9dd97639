import CRDKafka
import Dispatch
package import RDKafka

/// A producer that writes in transactions, for tests: Fanfare reads topics into which others may write so.
///
/// Its calls block a thread of its own for at most half a minute each. One call at a time. When it is released, an open
/// transaction stays open, as after a crash: the next producer with the same id aborts it.
///
/// Unchecked: the pointers never change, and librdkafka's functions on them may be called from any thread.
@safe package final class TransactionalProducer: @unchecked Sendable {
  private static let timeout: Int32 = 30_000

  private let handle: OpaquePointer
  private let queue = DispatchQueue(label: "rdkafka.transactions")

  /// Makes a producer with a transactional id. Contacts no broker.
  package init(_ client: KafkaClientConfiguration, transactionalID: String) throws(RDKafkaError) {
    let configuration = unsafe rd_kafka_conf_new()
    let properties =
      client.properties.map { ($0.key, $0.value) } + [
        ("bootstrap.servers", client.bootstrapServers), ("client.id", client.clientID),
        ("transactional.id", transactionalID), ("linger.ms", "0"),
      ]
    for (key, value) in properties
    where unsafe rd_kafka_conf_set(configuration, key, value, nil, 0) != RD_KAFKA_CONF_OK {
      unsafe rd_kafka_conf_destroy(configuration)
      throw RDKafkaError(code: .configuration, message: "librdkafka refuses the property '\(key)'")
    }
    unsafe rd_kafka_conf_set_log_cb(configuration, nil)
    unsafe rd_kafka_conf_set_events(configuration, RD_KAFKA_EVENT_DR)
    guard let handle = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
      unsafe rd_kafka_conf_destroy(configuration)
      throw RDKafkaError(code: .configuration, message: "the transactional producer does not start")
    }
    unsafe self.handle = unsafe handle
  }

  deinit {
    unsafe rd_kafka_destroy(handle)
  }

  /// Aborts what an earlier producer with the same id has left open, and locks that producer out. To be called once,
  /// first.
  package func prepare() async throws {
    try await run { try unsafe Self.check(rd_kafka_init_transactions($0.handle, Self.timeout), "prepare") }
  }

  /// Begins a transaction.
  package func begin() async throws {
    try await run { try unsafe Self.check(rd_kafka_begin_transaction($0.handle), "begin") }
  }

  /// Produces records into the open transaction. They are in the log when this returns their offsets, in no order.
  package func produce(_ values: [String], to partition: TopicPartition) async throws -> [Int64] {
    try await run { try $0.write(values, to: partition) }
  }

  /// Commits the open transaction.
  package func commit() async throws {
    try await run { try unsafe Self.check(rd_kafka_commit_transaction($0.handle, Self.timeout), "commit") }
  }

  /// Returns when the broker has acknowledged all records.
  private func write(_ values: [String], to partition: TopicPartition) throws(RDKafkaError) -> [Int64] {
    guard let topic = unsafe rd_kafka_topic_new(handle, partition.topic, nil) else {
      throw Self.error(rd_kafka_last_error())
    }
    defer { unsafe rd_kafka_topic_destroy(topic) }
    for value in values {
      var bytes = Array(value.utf8)
      let status = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe rd_kafka_produce(
          topic, partition.partition, RD_KAFKA_MSG_F_COPY, buffer.baseAddress, buffer.count, nil, 0, nil)
      }
      guard status == 0 else { throw Self.error(rd_kafka_last_error()) }
    }
    guard let reports = unsafe rd_kafka_queue_get_main(handle) else { throw Self.error(RD_KAFKA_RESP_ERR__FAIL) }
    defer { unsafe rd_kafka_queue_destroy(reports) }
    var offsets: [Int64] = []
    while offsets.count < values.count {
      guard let event = unsafe rd_kafka_queue_poll(reports, Self.timeout) else {
        throw Self.error(RD_KAFKA_RESP_ERR__TIMED_OUT)
      }
      defer { unsafe rd_kafka_event_destroy(event) }
      while let message = unsafe rd_kafka_event_message_next(event) {
        let response = unsafe message.pointee.err
        guard response == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Self.error(response) }
        unsafe offsets.append(message.pointee.offset)
      }
    }
    return offsets
  }

  private func run<Value: Sendable>(
    _ body: @escaping @Sendable (TransactionalProducer) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in continuation.resume(with: Result { try body(self) }) }
    }
  }

  /// Throws the error of a call, if it has one.
  private static func check(_ error: OpaquePointer?, _ step: String) throws(RDKafkaError) {
    guard let error = unsafe error else { return }
    defer { unsafe rd_kafka_error_destroy(error) }
    let text = unsafe String(cString: rd_kafka_error_string(error))
    throw RDKafkaError(
      code: unsafe rd_kafka_error_is_fatal(error) != 0 ? .fatal : .broker, message: "cannot \(step): \(text)")
  }

  private static func error(_ response: rd_kafka_resp_err_t) -> RDKafkaError {
    RDKafkaError(
      code: .broker, message: "cannot produce in a transaction: \(unsafe String(cString: rd_kafka_err2str(response)))")
  }
}
