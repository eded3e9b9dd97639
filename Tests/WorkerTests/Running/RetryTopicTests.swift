import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct RetryTopicTests {
  private static func pump(_ source: FakeTopic, into sink: any RecordSink) throws -> Pump {
    let topics = Topics(retryDelays: [15])
    let topic = RetryTopic(try #require(topics.retries.first), topics: topics, logger: TestKafka.quietLogger)
    return Pump(topic, consumer: source, producer: sink, logger: TestKafka.quietLogger)
  }

  @Test func readmittedRecordIsTheOriginalEvent() async throws {
    let value = Array("what cannot be read is due at once".utf8)
    let record = ConsumedRecord(
      topic: "fanfare.retry.15s", partition: 0, offset: 0, timestamp: 0, key: Array("key".utf8)[...], value: value[...])
    let sink = MemorySink()
    try await Self.pump(FakeTopic([[record]]), into: sink).run()
    #expect(sink.records.map(\.topic) == ["fanfare.sends"])
    #expect(sink.records.map(\.value) == [value])
    #expect(sink.records.map(\.key) == [Array("key".utf8)])
    #expect(sink.records.map(\.headers) == [Desk.headers])
  }

  @Test func recordThatSendsNeverTakesIsDeadLetteredAndItsPartSettled() async throws {
    let send = SendRequest(
      id: .random(), acceptedAt: UnixTime(milliseconds: 0), audience: .user("bob"),
      content: Content(message: Message(body: String(repeating: "long ", count: 300))))
    let device = RetryRecord.Waiting(
      registration: .random(), platform: .apns, notBefore: UnixTime(milliseconds: 0), attempts: 1, heldAttempts: 0,
      waits: 1, wasUnanswered: false, firstAttemptAt: nil, reason: "Busy", status: 503)
    let retry = RetryRecord(
      send: send, part: 2, parts: 5, attempt: .random(), deferrals: 1, devices: [.waiting(device), .waiting(device)])
    let value = retry.encoded(at: UnixTime(milliseconds: 0))
    let record =
      ConsumedRecord(
        topic: "fanfare.retry.15s", partition: 3, offset: 7, timestamp: 0, key: Array("key".utf8)[...],
        value: value[...])
    let source = FakeTopic([[record]], ends: false)
    let sink = SmallTopics { source.end() }
    try await Self.pump(source, into: sink).run()
    let letter = try #require(
      sink.written.records.filter { $0.topic == "fanfare.dead-letter" }.map { try DeadLetter.decode($0.value[...]) }
        .last)
    #expect(letter.origin == DeadLetter.Origin(topic: "fanfare.retry.15s", partition: 3, offset: 7))
    #expect(letter.reason == .tooLarge && letter.value.isEmpty && letter.valueSize == value.count)
    let status = try #require(
      sink.written.records.filter { $0.topic == "fanfare.status" }.map { try StatusRecord.decode($0.value[...]) }.last)
    #expect(status.send == send.id && status.part == 2 && status.parts == 5 && status.attempt == retry.attempt)
    #expect(status.devices.isEmpty && status.counts.total == 2)
  }
}
