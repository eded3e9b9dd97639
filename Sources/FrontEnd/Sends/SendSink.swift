package import RDKafka

/// Where accepted sends are made durable. Called by the front end with one request's or one batch's records; answered
/// by RDKafka's producer.
package protocol SendSink: Sendable {
  /// Returns when each record is acknowledged by all in-sync replicas or has failed, in the records' order and within a
  /// bounded time.
  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>]

  /// Hands a record over. `completion` comes once, within a bounded time, when it is acknowledged by all in-sync
  /// replicas or has failed.
  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
}

extension Producer: SendSink {
  package func submit(
    _ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void
  ) {
    // It answers with as many results as it is given records.
    submit([record]) { completion($0[0]) }
  }
}
