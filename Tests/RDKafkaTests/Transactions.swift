import EmbeddedKafka
import RDKafka
import Support
import Testing

/// Writes transactions of another producer to a topic.
enum Transactions {
  /// Commits `first` and `second`, then leaves a transaction open that holds `dropped`. Returns its producer, and the
  /// offset of the open transaction's record.
  static func leaveOneOpen(
    in topic: String, of kafka: TestKafka
  ) async throws -> (producer: TransactionalProducer, offsets: [Int64]) {
    let partition = TopicPartition(topic: topic, partition: 0)
    let producer = try TransactionalProducer(kafka.client("test-transactions"), transactionalID: topic)
    try await producer.prepare()
    try await producer.begin()
    _ = try await producer.produce(["first", "second"], to: partition)
    try await producer.commit()
    try await producer.begin()
    return (producer, try await producer.produce(["dropped"], to: partition))
  }

  /// Commits `third` as another producer with the same id, which first aborts the open transaction.
  static func replaceProducer(in topic: String, of kafka: TestKafka) async throws {
    let producer = try TransactionalProducer(kafka.client("test-transactions"), transactionalID: topic)
    try await producer.prepare()
    try await producer.begin()
    _ = try await producer.produce(["third"], to: TopicPartition(topic: topic, partition: 0))
    try await producer.commit()
  }
}

/// The embedded cluster accepts transactions but writes no control records and aborts nothing. It shows that records of
/// an open transaction reach the log, which `RealClusterTests` relies on.
@Suite(.timeLimit(.minutes(1))) struct TransactionTests {
  @Test func recordsOfAnOpenTransactionAreInTheLog() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    let left = try await Transactions.leaveOneOpen(in: topic, of: kafka)
    #expect(left.offsets == [2])
    #expect(try await texts(in: topic, of: kafka) == ["first", "second", "dropped"])
    try await Transactions.replaceProducer(in: topic, of: kafka)
    #expect(try await texts(in: topic, of: kafka) == ["first", "second", "dropped", "third"])
  }

  private func texts(in topic: String, of kafka: TestKafka) async throws -> [String] {
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let scan = try reader.scan(try await reader.spans(of: [topic]))
    var texts: [String] = []
    while let records = try await scan.next() { texts += records.map(\.text) }
    return texts
  }
}
