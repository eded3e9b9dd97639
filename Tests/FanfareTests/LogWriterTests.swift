import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import Roles

@Suite(.timeLimit(.minutes(1))) struct LogWriterTests {
  /// Writes more records of the largest size than fit into the producer's queue.
  @Test func largeRecordsAreWrittenInBatchesThatFitTheProducersQueue() async throws {
    let kafka = try TestKafka.embedded()
    let cluster = try #require(kafka.cluster)
    let settings = try Settings.load(
      file: nil,
      environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrapServers]
    ).kafka
    try cluster.createTopics(settings.specifications(replicationFactor: 1))
    // No record leaves the queue while a batch is handed over.
    try cluster.setRoundTripTime(.milliseconds(500))
    let value = [UInt8](repeating: UInt8(ascii: "x"), count: SendRequest.maximumRewrittenSize)
    let records = 64
    #expect(records * value.count > ProducerConfiguration(client: kafka.client()).queueBytes)
    try await LogWriter.with(settings, command: "test", logger: TestKafka.quietLogger) { writer in
      for number in 0..<records {
        try await writer.add(
          ProducerRecord(topic: settings.topics.sends, key: Array("\(number)".utf8), value: value))
      }
    }
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let spans = try await reader.spans(of: [settings.topics.sends])
    #expect(spans.reduce(0) { $0 + $1.count } == records)
  }
}
