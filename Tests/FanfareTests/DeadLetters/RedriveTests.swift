import EmbeddedKafka
import FanfareCore
import FrontEnd
import RDKafka
import Support
import Testing

@testable import Roles

@Suite(.timeLimit(.minutes(1))) struct RedriveTests {
  private func settings(of kafka: TestKafka) async throws -> KafkaSettings {
    let environment = ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrapServers]
    let settings = try Settings.load(file: nil, environment: environment).kafka
    try #require(kafka.cluster).createTopics(settings.specifications(replicationFactor: 1))
    return settings
  }

  private func produce(_ letters: [DeadLetter], _ settings: KafkaSettings, to kafka: TestKafka) async throws {
    try await kafka.withProducer { producer in
      let records = letters.map { ProducerRecord(topic: settings.topics.deadLetter, key: $0.key, value: $0.encoded()) }
      for result in await producer.send(records) { _ = try result.get() }
    }
  }

  private func values(of topic: String, in kafka: TestKafka) async throws -> [String] {
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let scan = try reader.scan(try await reader.spans(of: [topic]))
    var values: [String] = []
    while let records = try await scan.next() { values += records.map { String(decoding: $0.value, as: UTF8.self) } }
    return values
  }

  /// The segments topic refused it, so that it has the place of its send.
  @Test func segmentIsRedrivenToItsTopic() async throws {
    let kafka = try TestKafka.embedded()
    let settings = try await settings(of: kafka)
    let now = SystemWallClock().now()
    let send = SendRequest(
      id: .random(), sender: "tester", acceptedAt: now, audience: .tag("news"),
      content: Content(message: Message(body: "hello")))
    let segment = SegmentRecord(send: send, pages: 4, range: 2..<4).encoded(at: now)
    let letter = DeadLetter(
      reason: .tooLarge, detail: "", origin: DeadLetter.Origin(topic: settings.topics.sends, partition: 0, offset: 7),
      at: now, key: Array("key".utf8), value: segment)
    try await produce([letter], settings, to: kafka)
    for expected in [[1, 0], [0, 1]] {
      let redrive = Redrive(kafka: settings, isDryRun: false, isRepeated: false, logger: TestKafka.quietLogger)
      let outcome = try await redrive.run(only: nil) { _ in true }
      #expect([outcome.redriven, outcome.redrivenBefore] == expected)
    }
    let redriven = try await values(of: settings.topics.segments, in: kafka)
    #expect(redriven == [String(decoding: segment, as: UTF8.self)])
    #expect(try await values(of: settings.topics.sends, in: kafka) == [])
  }

  @Test func letterIsRedrivenOnce() async throws {
    let kafka = try TestKafka.embedded()
    let cluster = try #require(kafka.cluster)
    let settings = try await settings(of: kafka)
    let letters = (0..<3).map { number in
      DeadLetter(
        reason: .unknownHub, detail: "",
        origin: DeadLetter.Origin(topic: settings.topics.sends, partition: 0, offset: number),
        at: SystemWallClock().now(), key: Array("key".utf8), value: Array("value \(number)".utf8))
    }
    try await produce(letters, settings, to: kafka)
    func redrive(isDryRun: Bool = false, isRepeated: Bool = false) async throws -> [Int] {
      let redrive = Redrive(kafka: settings, isDryRun: isDryRun, isRepeated: isRepeated, logger: TestKafka.quietLogger)
      let outcome = try await redrive.run(only: nil) { _ in true }
      return [outcome.redriven, outcome.redrivenBefore]
    }

    // A failure reports how many records were redriven; the next run redrives the rest.
    try cluster.inject(Array(repeating: .topicAuthorizationFailed, count: 20), into: .produce)
    let interruption = await #expect(throws: Redrive.Interruption.self) { try await redrive() }
    #expect(interruption?.redriven == 3)
    try cluster.clearFaults(of: .produce)

    #expect(try await redrive(isDryRun: true) == [3, 0])
    #expect(try await redrive() == [3, 0])
    #expect(try await redrive() == [0, 3])
    #expect(try await redrive(isDryRun: true) == [0, 3])
    #expect(try await redrive(isRepeated: true) == [3, 0])

    let values = try await values(of: settings.topics.sends, in: kafka)
    #expect(values.sorted() == (0..<6).map { "value \($0 / 2)" })
  }
}
