package import RDKafka

/// Where accepted sends are made durable. Called by the front end with one request's or one batch's records; answered by RDKafka's producer.
///
/// Returns when each record is acknowledged by all in-sync replicas or has failed, in the records' order and within a bounded time.
package protocol SendSink: Sendable {
  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>]
}

extension Producer: SendSink {}
