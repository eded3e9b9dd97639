import RDKafka

/// What Kafka said about a batch of productions.
struct Acknowledgement: Sendable {
  let productions: Productions
  /// Those that it refused, by their index, in order; all others are durable.
  let refused: [(index: Int, error: RDKafkaError)]
}
