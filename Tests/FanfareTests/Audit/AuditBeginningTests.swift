import FanfareCore
import RDKafka
import Support
import Testing

@testable import fanfare

/// What the cluster deletes while an audit runs.
@Suite(.timeLimit(.minutes(1))) struct AuditBeginningTests {
  /// As if no status had ever been deleted, every send whose status was would be lost.
  @Test func `a beginning that is deleted before it is read is later, not unknown`() async throws {
    let kafka = try TestKafka.embedded()
    let topic = TopicSpecification(name: kafka.group(), partitions: 1)
    try #require(kafka.cluster).createTopics([topic])
    // The embedded cluster keeps five megabytes of a partition, as they are when they are compressed.
    var random = SeededGenerator(seed: 1)
    func produce(megabytes: Int) async throws {
      let value = (0..<256 * 1024).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      try await kafka.withProducer { producer in
        for _ in 0..<4 * megabytes {
          for result in await producer.send([ProducerRecord(topic: topic.name, key: nil, value: value)]) { _ = try result.get() }
        }
      }
    }
    let reader = try LogReader(client: kafka.client("audit"), logger: TestKafka.quietLogger)
    let settings = try await Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.client("x").bootstrapServers])
    let audit = Audit(settings: settings, logger: TestKafka.quietLogger)
    try await produce(megabytes: 1)
    #expect(try await audit.beginning(of: try await reader.spans(of: [topic.name]), reader) == nil)
    try await produce(megabytes: 6)
    let spans = try await reader.spans(of: [topic.name])
    let before = SystemWallClock().now()
    try await produce(megabytes: 2)
    #expect(try #require(try await reader.spans(of: [topic.name]).first).start > (try #require(spans.first).start))
    let beginning = try #require(try await audit.beginning(of: spans, reader))
    #expect(beginning > before + .seconds(-3600) && beginning <= before)
  }
}
