import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// What workers write, byte for byte as the releases before wrote it. See `GoldenFile`.
@Suite struct GoldenTests {
  /// A partition as an owner leaves it: where it began, which offsets it took and settled, and how much metadata the
  /// broker takes.
  private static let commits: [(position: Int64, offsets: [Int64], settled: [Int64], limit: Int)] = [
    (10, Array(10..<30), [], 3500), (10, Array(10..<30), Array(10..<14), 3500), (10, Array(10..<30), [12], 3500),
    (10, Array(10..<30), [11, 12, 13, 20, 29], 3500), (0, Array(0..<100), Array(0..<100), 3500),
    (10, Array(10..<30), [11, 12, 13, 20, 29], 3), (10, Array(10..<30), [11], 0),
    (1 << 40, [1 << 40, 1 << 40 + 5, 1 << 40 + 2000], [1 << 40 + 2000], 3500),
    (7, Array(stride(from: 7, to: 1000, by: 3)), Array(stride(from: 10, to: 1000, by: 6)), 3500),
  ]

  @Test func commitMetadataIsWrittenAndReadAsBefore() throws {
    let lines = try GoldenFile("commits.txt").lines {
      Self.commits.map { position, offsets, settled, limit in
        let (offset, metadata) = Self.committed(position, offsets, settled, limit)
        return "\(offset.map(String.init) ?? "-") \(metadata ?? "-")"
      }
    }
    try #require(lines.count == Self.commits.count)
    for (line, (position, offsets, settled, limit)) in zip(lines, Self.commits) {
      let (offset, metadata) = Self.committed(position, offsets, settled, limit)
      #expect("\(offset.map(String.init) ?? "-") \(metadata ?? "-")" == line)
      let words = line.split(separator: " ")
      guard let next = Int64(words[0]) else { continue }
      let known = SettledRuns(words[1] == "-" ? nil : String(words[1]), from: next)
      // All that has settled is told again where the limit leaves room, and never anything else.
      let repeated = offsets.filter { offset in
        offset >= next && !known.ranges.contains { $0.contains(offset) } && settled.contains(offset)
      }
      #expect(limit < 3500 || repeated.isEmpty)
      #expect(
        offsets.allSatisfy { offset in settled.contains(offset) || !known.ranges.contains { $0.contains(offset) } })
    }
  }

  private static func committed(_ position: Int64, _ offsets: [Int64], _ settled: [Int64], _ limit: Int)
    -> (Int64?, String?)
  {
    var tracker = OffsetTracker()
    tracker.resume(from: position, settled: SettledRuns())
    let numbers = offsets.map { ($0, tracker.begin($0)) }
    for (offset, number) in numbers where settled.contains(offset) { if let number { tracker.settle(number) } }
    let end = tracker.committable(limit: limit)
    return (end?.position, end?.metadata)
  }

  /// Events that make a worker write each kind of record.
  private static let events: [(name: String, happen: @Sendable (inout Desk) -> Void)] = [
    (
      "each outcome that ends at once",
      { desk in
        desk.register("bob", .apns, .fcm, .apns, .fcm)
        desk.deliver(send(1, desk, to: .user("bob")))
        let outcomes = [
          PushOutcome(.accepted, status: 200), PushOutcome(.rejected, reason: "INVALID_ARGUMENT", status: 400),
          PushOutcome(.deviceGone, reason: "Unregistered", status: 410, since: desk.wall),
          PushOutcome(.malformed, reason: "BadPath", status: 404),
        ]
        for (push, outcome) in zip(desk.pushes, outcomes) { desk.answer(push, outcome) }
      }
    ),
    (
      "a service that never answers",
      { desk in
        desk.register("bob", .fcm)
        desk.deliver(send(2, desk, to: .user("bob")))
        for _ in 0..<50 {
          desk.answerAll(PushOutcome(.unknown, reason: "Timeout"))
          desk.advance(.seconds(30))
        }
      }
    ),
    ("nobody", { desk in desk.deliver(send(3, desk, to: .registration(RegistrationID(high: 1, low: 2)))) }),
    (
      "too late",
      { desk in
        desk.register("bob", .fcm)
        let late = send(4, desk, to: .user("bob"), timeToLive: 5)
        desk.advance(.seconds(6))
        desk.deliver(late)
      }
    ),
    (
      "poison",
      { desk in
        desk.deliver([Array("poison \u{1}".utf8), [0xFF]], key: "key")
        let sound = String(decoding: send(5, desk, to: .user("bob")).encoded(), as: UTF8.self)
        desk.deliver([Array(sound.replacing(#""hub":"default""#, with: #""hub":"nowhere""#).utf8)])
        desk.deliver([Array(sound.replacing("send.v1", with: "send.v9").utf8)])
      }
    ),
    (
      "a large send",
      { desk in
        desk.registry[.user("bob")] = (0..<5).map { Desk.target("bob-\($0)", .apns) }
        desk.deliver(send(6, desk, to: .user("bob")))
        desk.answerAll()
      }
    ),
    (
      "a long wait",
      { desk in
        desk.register("bob", .apns, .fcm)
        desk.deliver(send(7, desk, to: .user("bob")))
        desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
        desk.answer(
          desk.pushes[0],
          PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(100)))
      }
    ),
    (
      "a broadcast, and its cancellation",
      { desk in
        let broadcast = send(8, desk, to: .tag("news"))
        desk.registry[.tag("news")] = (0..<60).map { number in
          Target(
            registration: RegistrationID(high: UInt64(number) << 58 | 0x4000, low: 1 << 63 + UInt64(number)),
            platform: number % 4 == 3 ? .fcm : .apns, handle: "h\(number)", registeredAt: UnixTime(milliseconds: 0))
        }
        for target in desk.registry[.tag("news")] ?? [] { desk.registry[.registration(target.registration)] = [target] }
        desk.assign([BroadcastTests.partition])
        desk.deliver(broadcast)
        let segments = SegmentRecord.divide(broadcast, pages: 6, into: 3)
        desk.deliver([segments[0].encoded(at: desk.wall)], from: BroadcastTests.partition)
        for index in 0..<20 where index < desk.pushes.count {
          let isBad = index % 5 == 1
          desk.answer(
            desk.pushes[index],
            isBad ? PushOutcome(.rejected, reason: "BadTopic", status: 400) : PushOutcome(.accepted, status: 200))
        }
        desk.broadcasts.controls[BroadcastID(hub: .default, send: broadcast.id)] = BroadcastControl(
          .cancelled, because: .caller)
        desk.advance(.seconds(1))
        desk.deliver([segments[1].encoded(at: desk.wall)], from: BroadcastTests.partition)
        for _ in 0..<10 { desk.advance(.seconds(1)) }
      }
    ),
  ]

  private static func send(_ number: UInt64, _ desk: Desk, to audience: Audience, timeToLive: Int? = nil) -> SendRequest
  {
    SendRequest(
      id: SendID(high: 0x019F_0000_0000_7000, low: 1 << 63 + number), sender: "alice", acceptedAt: desk.wall,
      audience: audience, content: Content(message: Message(body: "hello")), timeToLive: timeToLive)
  }

  @Test func recordsOfEveryEventAreWrittenAsBefore() throws {
    var lines: [String] = []
    for (name, happen) in Self.events {
      var desk = Desk(retryDelays: [15, 60, 300]) {
        $0.devicesPerStatus = 4
        $0.broadcasts.undividedDevices = 20
        $0.broadcasts.pageDevices = 10
        $0.broadcasts.lookUpPage = 4
        $0.broadcasts.segments = 3
      }
      desk.acknowledges = false
      happen(&desk)
      lines.append("# \(name)")
      var records: [String] = []
      while !desk.unacknowledged.isEmpty {
        records += desk.unacknowledged.map { _, record in
          let key = record.key.map { String(decoding: $0, as: UTF8.self) } ?? "-"
          let value = String(decoding: record.value, as: UTF8.self)
          return "\(record.topic)/\(record.partition.map(String.init) ?? "-") \(key) \(value)"
        }
        desk.acknowledge()
      }
      // Their order, and how a dead letter words its reason, may change.
      lines += records.map { $0.replacing(/"detail":"(?:[^"\\]|\\.)*"/, with: #""detail":"…""#) }.sorted()
    }
    try GoldenFile("produced.txt").expect(lines)
  }
}
