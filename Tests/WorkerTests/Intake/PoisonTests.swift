import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct PoisonTests {
  static var poisons: [(name: String, value: [UInt8], reason: DeadLetter.Reason)] {
    let sound = String(
      decoding: SendRequest(
        id: .random(), acceptedAt: UnixTime(milliseconds: 1_800_000_000_000), audience: .user("bob"),
        content: Content(message: Message(body: "hello"))
      ).encoded(), as: UTF8.self)
    return [
      ("empty", [], .undecodable),
      ("binary", (0...255).map { UInt8($0) }, .undecodable),
      ("not an event", Array(#"{"hello":"world"}"#.utf8), .undecodable),
      ("huge", Array(#"{"id":""#.utf8) + [UInt8](repeating: 0x61, count: 2 << 20), .tooLarge),
      ("cut off", Array(sound.utf8.dropLast(10)), .undecodable),
      ("missing field", Array(sound.replacing(#""to":"#, with: #""two":"#).utf8), .undecodable),
      ("deep nesting", [UInt8](repeating: UInt8(ascii: "["), count: 100_000), .undecodable),
      ("unknown hub", Array(sound.replacing(#""hub":"default""#, with: #""hub":"nowhere""#).utf8), .unknownHub),
    ]
  }

  @Test(arguments: poisons.indices) func unusableRecordIsDeadLetteredAndNextIsTaken(
    index: Int
  ) throws {
    let poison = Self.poisons[index]
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.acknowledges = false
    desk.deliver([poison.value], key: "key")
    desk.deliver(desk.send(to: .user("bob")))
    #expect(desk.pushes.count == 1, "\(poison.name)")
    desk.answerAll()
    #expect(desk.position == nil)
    desk.acknowledge()
    #expect(desk.position == 2)
    let letter = try #require(desk.deadLetters.first)
    #expect(letter.reason == poison.reason, "\(poison.name): \(letter.detail)")
    // Compared outside of #expect, which would compute the difference of a megabyte.
    let isKept = letter.value == poison.value
    #expect(isKept)
    #expect(letter.key == Array("key".utf8))
    #expect(letter.origin == DeadLetter.Origin(topic: "fanfare.sends", partition: 0, offset: 0))
    #expect(desk.statuses.map(\.state) == (poison.reason == .unknownHub ? [.deadLettered, .settled] : [.settled]))
    #expect(desk.held.records == 0)
  }

  @Test func unknownVersionIsToldFromGarbage() throws {
    var desk = Desk()
    let sound = String(decoding: desk.send(to: .user("bob")).encoded(), as: UTF8.self)
    let type = try #require(sound.firstMatch(of: /"type":"([^"]*)"/)).output.1
    desk.deliver([Array(sound.replacing(type, with: "\(type)9").utf8)])
    #expect(desk.deadLetters.map(\.reason) == [.unknownType])
    #expect(desk.position == 1)
  }

  @Test func valueTooLargeForDeadLetterTopicIsLeftOut() throws {
    var desk = Desk()
    desk.acknowledges = false
    desk.deliver([[UInt8](repeating: 0x61, count: 1000)])
    desk.acknowledge(RDKafkaError(code: .messageTooLarge, message: "injected"))
    desk.acknowledge()
    let letter = try #require(desk.deadLetters.first)
    #expect(letter.value.isEmpty)
    #expect(letter.detail.contains("1000 bytes"))
    #expect(desk.position == 1)
  }

  /// Other workers may know the hub already, and deliver the broadcast's other segments.
  @Test func segmentOfUnknownHubIsDeadLetteredWithoutStatus() throws {
    var desk = BroadcastTests.desk(devices: 100)
    let send = SendRequest(
      id: .random(), hub: try #require(HubName("nowhere")), sender: "tester", acceptedAt: desk.wall,
      audience: .tag("news"),
      content: Content(message: Message(body: "hello")))
    let segment = SegmentRecord(send: send, pages: 10, range: 0..<2)
    desk.deliver([segment.encoded(at: desk.wall)], from: BroadcastTests.partition)
    #expect(desk.deadLetters.map(\.reason) == [.unknownHub])
    #expect(desk.deadLetters.first?.origin.topic == "fanfare.segments")
    #expect(desk.statuses.isEmpty)
  }

  private static func retry(of send: SendRequest, parts: Int = 1) -> RetryRecord {
    let device = RetryRecord.Waiting(
      registration: .random(), platform: .fcm, notBefore: send.acceptedAt, attempts: 1, heldAttempts: 0, waits: 1,
      wasUnanswered: false, firstAttemptAt: send.acceptedAt, reason: "Busy", status: 503)
    return RetryRecord(
      send: send, part: parts - 1, parts: parts, attempt: parts > 1 ? .random() : nil, deferrals: 1,
      devices: [.waiting(device)])
  }

  /// The end of all of a send is one status; of one of several parts nothing can be said.
  @Test(arguments: [1, 3]) func retryOfUnknownHubEndsSendOnlyIfWhole(parts: Int)
    throws
  {
    var desk = Desk()
    let send = desk.send(to: .user("bob"), hub: try #require(HubName("nowhere")))
    desk.deliver([Self.retry(of: send, parts: parts).encoded(at: desk.wall)])
    #expect(desk.deadLetters.map(\.reason) == [.unknownHub])
    #expect(desk.statuses.map(\.state) == (parts == 1 ? [.deadLettered] : []))
    #expect(desk.position == 1)
  }

  @Test func faultyRetryOrSegmentRecordIsNamed() {
    var desk = Desk()
    let retry = String(decoding: Self.retry(of: desk.send(to: .user("bob"))).encoded(at: desk.wall), as: UTF8.self)
    let segment = String(
      decoding: SegmentRecord(send: desk.send(to: .everyone), pages: 10, range: 0..<2).encoded(at: desk.wall),
      as: UTF8.self)
    desk.deliver([
      Array(retry.replacing(#""deferrals":1"#, with: #""deferrals":0"#).utf8),
      Array(segment.replacing(#""count":2"#, with: #""count":0"#).utf8),
    ])
    #expect(desk.deadLetters.map(\.reason) == [.undecodable, .undecodable])
    #expect(desk.deadLetters.map(\.detail) == ["data.deferrals must be 1 to 1000000", "data.count must be 1 to 10"])
  }
}
