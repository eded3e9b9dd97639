import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Synchronization
import Testing

@testable import Worker

/// The ingress topics of hubs, on the embedded cluster.
@Suite(.timeLimit(.minutes(2))) struct IngressTests {
  private static let hub = HubName("acme") ?? .default
  private static let topics: Topics = {
    var topics = Topics(prefix: "ingress")
    topics.ingressHubs = [hub]
    return topics
  }()

  private static func record(hub: String?, id: SendID = .random(), body: String = "hello") -> [UInt8] {
    let member = hub.map { #""hub":"\#($0)","# } ?? ""
    return Array(
      (#"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v1","source":"/crm","time":"2026-11-21T08:00:00Z","#
        + #""data":{\#(member)"to":{"user":"bob"},"message":{"body":"\#(body)"},"own":[1]}}"#).utf8)
  }

  /// What becomes of a record.
  private func checked(
    _ value: [UInt8], hub: HubName = Self.hub, written: UnixTime = UnixTime(milliseconds: 0),
    at now: UnixTime = UnixTime(milliseconds: 0)
  ) throws -> (copy: ProducerRecord, refusal: DeadLetter.Reason?) {
    let record = ConsumedRecord(
      topic: Self.topics.ingress(of: hub), partition: 3, offset: 7, timestamp: written.milliseconds,
      key: Array("k".utf8)[...], value: value[...])
    var state = PumpState(PumpPolicy(.asWritten))
    let moment = Moment(wall: now, uptime: 0)
    _ = state.advance(.event(.assigned([record.topicPartition], Rebalance {})), at: moment)
    var held = try #require(state.advance(.event(.records([record])), at: moment).due.first)
    let copies = IngressTopic(topics: Self.topics, hub: hub).records(for: &held, at: now)
    return (try #require(copies.first), held.refusal)
  }

  private func pump(
    _ source: FakeTopic, into sink: any RecordSink, topics: Topics = Self.topics,
    delays: any DelayClock = SystemDelayClock()
  ) -> Pump {
    Pump(
      IngressTopic(topics: topics, hub: Self.hub), consumer: source, producer: sink, delays: delays,
      logger: TestKafka.quietLogger)
  }

  @Test func recordOfTheHubIsCopiedUnchanged() throws {
    let value = Self.record(hub: "acme")
    let (copy, refusal) = try checked(value)
    #expect(refusal == nil && copy.topic == Self.topics.sends && copy.key == Array("k".utf8) && copy.value == value)
  }

  @Test func recordWithoutHubGetsTheTopics() throws {
    let id = SendID.random()
    let (copy, refusal) = try checked(Self.record(hub: nil, id: id))
    #expect(refusal == nil)
    let send = try SendRequest.decode(copy.value[...], recordTime: UnixTime(milliseconds: 0))
    #expect(send.hub == Self.hub && send.id == id)
    // Members that this release does not know survive.
    #expect(String(decoding: copy.value, as: UTF8.self).contains(#""own":[1]"#))
    let (unchanged, _) = try checked(Self.record(hub: nil, id: id), hub: .default)
    #expect(unchanged.value == Self.record(hub: nil, id: id))
  }

  @Test(arguments: ["acme", nil]) func recordWithoutTimeGetsThatOfItsLog(hub: String?) throws {
    let value = String(decoding: Self.record(hub: hub), as: UTF8.self).replacing(
      #""time":"2026-11-21T08:00:00Z","#, with: "")
    let written = UnixTime(milliseconds: 1_800_000_000_123)
    let (copy, refusal) = try checked(Array(value.utf8), written: written, at: written + .seconds(3600))
    #expect(refusal == nil)
    // The copy is written an hour later.
    let send = try SendRequest.decode(copy.value[...], recordTime: written + .seconds(3600))
    #expect(send.acceptedAt == written && send.hub == Self.hub)
  }

  @Test func traceContextOfTheProducerIsKept() throws {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for hub in ["acme", nil] {
      let value = String(decoding: Self.record(hub: hub), as: UTF8.self).replacing(
        #""source""#, with: #""traceparent":"\#(parent)","tracestate":"crm=1","source""#)
      let (copy, refusal) = try checked(Array(value.utf8))
      #expect(refusal == nil)
      let send = try SendRequest.decode(copy.value[...], recordTime: UnixTime(milliseconds: 0))
      #expect(send.traceparent == parent && send.tracestate == "crm=1")
      #expect(String(decoding: copy.value, as: UTF8.self).contains(#","tracestate":"crm=1""#))
    }
  }

  @Test func recordOfAnotherHubIsDeadLettered() throws {
    for value in [Self.record(hub: "other"), Self.record(hub: "default")] {
      let (copy, refusal) = try checked(value)
      #expect(refusal == .foreignHub && copy.topic == Self.topics.deadLetter)
      let letter = try DeadLetter.decode(copy.value[...])
      #expect(letter.reason == .foreignHub && letter.value == value && letter.key == Array("k".utf8))
      #expect(letter.origin == DeadLetter.Origin(topic: "ingress.sends.acme", partition: 3, offset: 7))
      #expect(letter.detail == "hub: names another hub than the topic's")
    }
  }

  @Test func onlySendsMayCome() throws {
    #expect(try checked(Array("{".utf8)).refusal == .undecodable)
    let status = String(decoding: Self.record(hub: "acme"), as: UTF8.self).replacing("send.v1", with: "status.v1")
    #expect(try checked(Array(status.utf8)).refusal == .unknownType)
    let large = Self.record(hub: "acme", body: String(repeating: "x", count: SendRequest.maximumRecordSize))
    #expect(try checked(large).refusal == .tooLarge)
  }

  @Test func sendsOfAKeyStayInOrder() async throws {
    let kafka = try TestKafka.embedded()
    let topics = Self.topics
    let cluster = try #require(kafka.cluster)
    try cluster.createTopics(topics.all.map { TopicSpecification(name: $0, partitions: 2) })
    let ids = (0..<200).map { _ in SendID.random() }
    try await kafka.withProducer { producer in
      let records = ids.enumerated().map { number, id in
        ProducerRecord(
          topic: topics.ingress(of: Self.hub), key: Array("key-\(number % 5)".utf8),
          value: Self.record(hub: number % 2 == 0 ? "acme" : nil, id: id))
      }
      for result in await producer.send(records) { _ = try result.get() }
      let pump = try Pump(
        IngressTopic(topics: topics, hub: Self.hub), client: kafka.client(), producer: producer,
        clock: SystemWallClock(), logger: TestKafka.quietLogger)
      let running = Task { try await pump.run() }
      let reader = try LogReader(client: kafka.client(), logger: TestKafka.quietLogger)
      var spans: [LogSpan] = []
      repeat { spans = try await reader.spans(of: [topics.sends]) } while spans.reduce(0) { $0 + $1.end } < ids.count
      running.cancel()
      _ = await running.result
      var seen: [[UInt8]: [SendID]] = [:]
      let scan = try reader.scan(spans)
      while let records = try await scan.next() {
        for record in records {
          let send = try SendRequest.decode(record.value, recordTime: UnixTime(milliseconds: 0))
          #expect(send.hub == Self.hub)
          seen[record.key.map(Array.init) ?? [], default: []].append(send.id)
        }
      }
      for key in 0..<5 {
        let expected = ids.enumerated().filter { $0.offset % 5 == key }.map(\.element)
        #expect(seen[Array("key-\(key)".utf8)] == expected)
      }
    }
    cluster.close()
  }

  /// Fails as when the role stops.
  private struct StoppedClock: DelayClock {
    func uptime() -> Int64 { 0 }
    func sleep(for duration: Duration) async throws { throw CancellationError() }
  }

  /// Refuses the first submission, and takes all others.
  private final class LateSink: RecordSink {
    private let isFirst = Mutex(true)

    func submit(
      _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
    ) {
      let isFirst = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      completion(
        records.map {
          isFirst
            ? .failure(RDKafkaError(code: .queueFull, message: "refused by the test"))
            : .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0))
        })
    }
  }

  private func consumed(at offset: Int64, _ value: [UInt8]) -> ConsumedRecord {
    ConsumedRecord(
      topic: Self.topics.ingress(of: Self.hub), partition: 0, offset: offset, timestamp: 0, key: Array("k".utf8)[...],
      value: value[...])
  }

  @Test func noOffsetIsCommittedBehindABatchThatTheStopInterrupted() async throws {
    let source = FakeTopic([
      [consumed(at: 0, Self.record(hub: "acme"))], [consumed(at: 1, Self.record(hub: "acme"))],
    ])
    try await pump(source, into: LateSink(), delays: StoppedClock()).run()
    #expect(source.committed == [])
  }

  @Test func creditIsBoundedInBytes() async throws {
    let size = IngressTopic.maximumBytes / 16
    let large = Self.record(
      hub: "acme", body: String(repeating: "x", count: size - Self.record(hub: "acme", body: "").count))
    let source = FakeTopic([(0..<4).map { consumed(at: $0, large) }, [consumed(at: 4, large)]], last: 5)
    try await pump(source, into: MemorySink()).run()
    // Of 252 records that may still come 240 are taken back: 16 of this size are as much as the pump holds, and it has
    // four. Later grants depend on when the copies are acknowledged.
    #expect(source.granted.prefix(2) == [256, -240])
    #expect(source.committed.last == 5)
  }

  @Test func recordThatKafkaNeverTakesDoesNotStopTheTopic() async throws {
    let long = Self.record(hub: "acme", body: String(repeating: "long ", count: 300))
    let source = FakeTopic([[consumed(at: 0, long)], [consumed(at: 1, Self.record(hub: "other"))]], last: 2)
    let sink = SmallTopics {}
    var topics = Topics()
    topics.ingressHubs = [Self.hub]
    try await pump(source, into: sink, topics: topics).run()
    let letters = try sink.written.records.map { try DeadLetter.decode($0.value[...]) }
    // What stands behind a failure is produced again.
    #expect(letters.suffix(2).map(\.reason) == [.tooLarge, .foreignHub])
    let large = letters.first { $0.reason == .tooLarge }
    #expect(large?.value == [] && large?.valueSize == long.count)
    #expect(source.committed.last == 2)
  }

  @Test func frontEndsProduceToTheHubsTopic() {
    #expect(
      Self.topics.intake(of: Self.hub) == "ingress.sends.acme" && Self.topics.intake(of: .default) == "ingress.sends")
    #expect(Topics().intake(of: Self.hub) == "fanfare.sends" && !Topics().all.contains { $0.hasSuffix("acme") })
    #expect(Self.topics.all.contains("ingress.sends.acme"))
  }
}
