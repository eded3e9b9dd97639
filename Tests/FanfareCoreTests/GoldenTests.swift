import FanfareCore
import Foundation
import Support
import Testing

@testable import Operations

/// Compares the records of every topic with the bytes that earlier releases wrote. See `GoldenFile`.
@Suite struct GoldenTests {
  private static let time = UnixTime(milliseconds: 1_790_000_000_123)
  private static let shop = HubName("shop") ?? .default
  private static let message = Content(message: Message(title: "Goal", body: "1:0"))
  private static let attempt = DispatchID(high: 0x1111_2222_3333_4444, low: 0x8555_6666_7777_8888)
  private static let counts: OutcomeCounts = {
    var counts = OutcomeCounts()
    for (index, platform) in Platform.allCases.enumerated() {
      for (number, outcome) in DeviceResult.Outcome.allCases.enumerated() {
        counts.add(10 * index + number + 1, to: OutcomeCounts.Kind(platform, outcome))
      }
    }
    return counts
  }()

  private static func id(_ number: UInt64) -> SendID { SendID(high: 0x019F_0000_0000_7000 + number, low: 1 << 63) }
  private static func device(_ number: UInt64) -> RegistrationID {
    RegistrationID(high: 0xDEAD_BEEF_0000_4000, low: 1 << 63 + number)
  }

  private static func sends() throws -> [SendRequest] {
    let audiences: [Audience] = [
      .user("bob"), .user("Zoë \"the\" \\ 👩‍🚀"), .tag("news"), .tag("username:carol"), .registration(device(1)),
      .device(.apns, handle: DeviceHandle.normalized("00FC13ADFF785122B4AD28809A342098", platform: .apns)),
      .device(.fcm, handle: "token:1-_"), .device(.wns, handle: "https://db5.notify.windows.com/?token=a%2fb"),
      Audience(anyOf: ["sports", "news", "a:b"]), .expression(try TagExpression("(news && !muted) || vip")), .everyone,
    ]
    let contents = [
      Content(message: Message(body: "")),
      Content(
        message: Message(
          title: "Tab\t\"quoted\" \\ / \u{1}\u{7F}é€𝄞", body: "Line one\nline two\r",
          data: ["b": "2", "a": "", "ä": "\u{0}"],
          badge: 0, sound: "default")),
      Content.of(apns: Array(#"{"aps": {"alert" : "raw"}}"#.utf8)),
      Content.of(fcm: Array(#"{"notification":{"title":"T"},"data":{"k":"v"}}"#.utf8)),
      Content.of(wns: #"<toast><visual><binding template="ToastText01"/></visual></toast>"#),
      Content.of(
        message: Message(data: ["only": "data"]), apns: Array("{}".utf8), fcm: Array(#"{"android":{}}"#.utf8),
        wns: "raw"),
    ]
    let options = [
      SendRequest(
        id: id(100), hub: shop, sender: "alice", acceptedAt: time, audience: .user("bob"),
        platforms: [PlatformSet(.apns), PlatformSet(.wns)], content: message, timeToLive: 0, priority: .normal,
        collapseKey: "score \"1\"", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        tracestate: "vendor=1,other=2", replay: ReplayID(high: 7, low: 8), maximumPerSecond: 5000,
        unknownMembers: Array(#","x-new":{"deep":[1,2.5e3,null,true]},"other":"\u00e9""#.utf8)),
      SendRequest(
        id: id(101), acceptedAt: UnixTime(milliseconds: 0), audience: .everyone, platforms: PlatformSet(.fcm),
        content: message, timeToLive: SendRequest.maximumTimeToLive,
        maximumPerSecond: SendRequest.greatestMaximumPerSecond),
      SendRequest(
        id: id(102), sender: "é", acceptedAt: UnixTime(milliseconds: 253_402_300_799_999), audience: .user("x"),
        content: message),
      SendRequest(
        id: id(103), acceptedAt: time, audience: .tag("news"),
        content: Content(
          template: TemplateContent(name: "goal", version: 3, properties: ["team": "Rapid \"1\"", "a": ""]))),
      SendRequest(
        id: id(104), acceptedAt: time, audience: .everyone,
        content: Content(template: TemplateContent(properties: ["x": "é"]))),
      SendRequest(
        id: id(105), acceptedAt: time, audience: .user("bob"),
        content: Content.of(
          apns: Array("{}".utf8), wns: "<toast/>", headers: ["x-wns-type": "wns/toast", "apns-priority": "5"])),
    ]
    return audiences.enumerated().map {
      SendRequest(id: id(UInt64($0)), sender: "alice", acceptedAt: time, audience: $1, content: message)
    }
      + contents.enumerated().map {
        SendRequest(id: id(50 + UInt64($0)), acceptedAt: time, audience: .user("bob"), content: $1)
      } + options
  }

  private static let results = DeviceResult.Outcome.allCases.enumerated().map { index, outcome in
    DeviceResult(
      registration: device(UInt64(index)), platform: Platform.allCases[index % 3], outcome: outcome,
      reason: ["", "BadDeviceToken", "UNREGISTERED"][index % 3], status: [200, 400, 0][index % 3], attempts: index)
  }

  private static let statuses: [StatusRecord] =
    StatusRecord.State.allCases.enumerated().map { index, state in
      StatusRecord(
        send: id(UInt64(index)), hub: .default, state: state, sender: index == 0 ? nil : "alice",
        audience: index == 1 ? .everyone : .user("bob"), acceptedAt: time, settledAt: time + .seconds(index),
        devices: state == .settled ? results : [])
    } + [
      StatusRecord(
        send: id(20), hub: shop, part: 3, parts: 20, attempt: attempt, state: .settled, sender: "alice",
        audience: .tag("news"), acceptedAt: time, settledAt: time + .milliseconds(1), devices: [results[1]],
        counts: counts,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "vendor=1,other=2"),
      StatusRecord(
        send: id(21), hub: shop, part: 0, parts: 1, attempt: attempt, state: .cancelled, sender: nil,
        audience: .everyone, acceptedAt: time, settledAt: time, devices: [], counts: counts),
      StatusRecord(
        send: id(22), hub: .default, state: .settled, sender: "alice", audience: .user("bob"), acceptedAt: time,
        settledAt: time + .seconds(1),
        devices: results.enumerated().map { index, result in
          var result = result
          if index < 5 { result.pushedAt = time + .milliseconds(index) }
          if index < 4 { result.answeredAt = time + .milliseconds(index * 10) }
          return result
        }, times: times),
      StatusRecord(
        send: id(23), hub: .default, state: .deadLettered, sender: nil, audience: .user("bob"), acceptedAt: time,
        settledAt: time, devices: [], times: SendTimes(consumed: time)),
      StatusRecord(
        send: id(24), hub: shop, part: 2, parts: 9, span: 4, attempt: attempt, state: .settled, sender: "alice",
        audience: .tags(["a", "b"]), acceptedAt: time, settledAt: time, devices: []),
    ]

  private static let times = SendTimes(
    consumed: time + .milliseconds(3), lookedUp: time + .milliseconds(5), pushed: time + .milliseconds(6),
    answered: time + .milliseconds(90))

  private static let retries: [RetryRecord] = {
    let waiting = [
      RetryRecord.Waiting(
        registration: device(1), platform: .apns, notBefore: time + .seconds(60), attempts: 0, heldAttempts: 0,
        waits: 0,
        wasUnanswered: false, firstAttemptAt: nil, reason: "", status: 0),
      RetryRecord.Waiting(
        registration: device(2), platform: .fcm, notBefore: time + .seconds(15), attempts: 5, heldAttempts: 2, waits: 3,
        wasUnanswered: true, firstAttemptAt: time, reason: "UNAVAILABLE", status: 503, contradictions: 4),
    ]
    let send = SendRequest(
      id: id(1), hub: shop, sender: "alice", acceptedAt: time, audience: .tag("news"), content: message, timeToLive: 60,
      unknownMembers: Array(#","x-new":1"#.utf8))
    return [
      RetryRecord(
        send: send, part: 0, parts: 1, attempt: nil, deferrals: 1, devices: waiting.map { .waiting($0) }),
      RetryRecord(
        send: send, part: 7, parts: 9, attempt: attempt, deferrals: 12, cameEarly: true,
        devices: results.map { .done($0) } + [.waiting(waiting[1])], counts: counts),
      RetryRecord(
        send: send, part: 0, parts: 1, attempt: nil, deferrals: 3,
        devices: [
          .waiting(waiting[0]),
          .done(
            DeviceResult(
              registration: device(9), platform: .wns, outcome: .delivered, reason: "", status: 200, attempts: 1,
              pushedAt: time, answeredAt: time + .milliseconds(7))),
        ], times: times),
    ].map {
      var record = $0
      record.writtenAt = time
      return record
    }
  }()

  private static let segments = SegmentRecord.divide(
    SendRequest(id: id(1), acceptedAt: time, audience: .everyone, content: message, maximumPerSecond: 100), pages: 20,
    into: 3)

  private static let deadLetters = DeadLetter.Reason.allCases.enumerated().map { index, reason in
    DeadLetter(
      reason: reason, detail: "data.to must have \"one\" audience",
      origin: DeadLetter.Origin(topic: "fanfare.sends", partition: Int32(index), offset: 1 << 40 + Int64(index)),
      at: time,
      key: [nil, Array("username:bob".utf8), [], [0xFF, 0x00]][index % 4],
      value: [Array(#"{"not":"a send"}"#.utf8), [0xFF, 0xFE, 0x00], [], Array("plain\n".utf8)][index % 4],
      valueSize: index == 3 ? 1_000_000 : nil)
  }

  @Test func sendRecordsAreWrittenAndReadAsBefore() throws {
    let file = GoldenFile("sends.jsonl")
    let sends = try Self.sends()
    let read = { (bytes: ArraySlice<UInt8>) in try SendRequest.decode(bytes, recordTime: UnixTime(milliseconds: 1)) }
    try file.expect(sends, write: { $0.encoded() }, read: read)
    var writer = SendRecordWriter()
    for send in sends { #expect(writer.record(of: send) == send.encoded()) }
  }

  @Test func statusRecordsAreWrittenAndReadAsBefore() throws {
    try GoldenFile("status.jsonl").expect(Self.statuses, write: { $0.encoded() }, read: { try StatusRecord.decode($0) })
  }

  @Test func retryRecordsAreWrittenAndReadAsBefore() throws {
    try GoldenFile("retries.jsonl").expect(Self.retries, write: { $0.encoded(at: Self.time) }) {
      #expect(try RetryRecord.wait(of: $0, at: Self.time) > .seconds(14))
      return try RetryRecord.decode($0, recordTime: Self.time)
    }
  }

  @Test func segmentRecordsAreWrittenAndReadAsBefore() throws {
    try GoldenFile("segments.jsonl").expect(
      Self.segments, write: { $0.encoded(at: Self.time) },
      read: { try SegmentRecord.decode($0, recordTime: Self.time) })
  }

  @Test func deadLettersAreWrittenAndReadAsBefore() throws {
    try GoldenFile("dead-letters.jsonl").expect(
      Self.deadLetters, write: { $0.encoded() }, read: { try DeadLetter.decode($0) })
  }

  /// Ids, keys and names that different processes, or one process after a restart, must derive equally.
  @Test func derivedValuesAreTheSameAsBefore() throws {
    let sends = try Self.sends()
    var lines = ["content-type: \(CloudEvent.contentType)"]
    for send in sends {
      for hub in [HubName.default, Self.shop] {
        lines.append("key: \(String(decoding: send.audience.recordKey(of: send.id, hub: hub), as: UTF8.self))")
      }
      lines.append("identity: \(send.identity) attempt: \(SegmentRecord.attempt(of: send)) \(send.isBroadcast)")
      lines.append("push: \(PushID(send: send.id, registration: Self.device(3)))")
      lines.append("audience: \(send.audience.text)")
    }
    lines += Self.segments.map { "segment: \($0.identity) \($0.range)" }
    lines += Self.retries.map { "retry: \($0.identity)" }
    for (number, count) in [(0, 1), (0, 3), (1, 3), (2, 3), (19, 20), (123, 1000)] {
      let slice = RegistrationSlice.page(number, of: count)
      lines.append("page \(number) of \(count): \(slice.first) \(slice.last)")
    }
    for topics in [Topics(), Topics(prefix: "a", retryDelays: [300, 15])] { lines += topics.all.map { "topic: \($0)" } }
    for handle in ["ab01", "token"] {
      lines += Platform.allCases.map { "handle: \(DeviceHandle.normalized(handle, platform: $0))" }
    }
    lines += Platform.allCases.map { "platform: \($0) \($0.code)" }
    lines += PushOutcome.Verdict.allCases.map { "verdict: \($0.rawValue)" }
    lines += ScheduledSend.State.allCases.map { "schedule: \($0.rawValue)" }
    lines += BroadcastControl.State.allCases.map { "control: \($0.rawValue)" }
    lines += BroadcastControl.Cause.allCases.map { "cause: \($0.rawValue)" }
    lines += SendReport.State.allCases.map { "report: \($0.rawValue)" }
    try GoldenFile("derived.txt").expect(lines)
  }

  @Test func registrationsAreExportedAsBefore() throws {
    let registrations = [(nil, Self.time), ("phone-1", Self.time + .seconds(5))].map { installation, seen in
      Registration(
        id: Self.device(1), hub: Self.shop, user: "Zoë", platform: .fcm, handle: "token:1",
        tags: ["news", "username:Zoë"],
        installation: installation, registeredAt: Self.time, createdAt: Self.time + .seconds(-9), seenAt: seen)
    }
    let template = DeviceTemplate(name: "goal", body: #"{"data":{"a":"$(b)"}}"#, headers: ["apns-priority": "5"])
    let profiled = Registration(
      id: Self.device(2), hub: Self.shop, user: "bob", platform: .wns, handle: "https://x.notify.windows.com/?token=a",
      tags: ["username:bob"], installation: "pc-1", registeredAt: Self.time, createdAt: Self.time,
      profile: DeviceProfile(
        template: template, locale: "de-AT", timeZone: "Europe/Vienna", attributes: ["b": "2", "a": "é"],
        tile: "news", azure: ["id": "1-2-3"]),
      validUntil: Self.time + .seconds(60))
    let lines = (registrations + [profiled]).map { String(decoding: $0.json, as: UTF8.self) }
    try GoldenFile("registrations.jsonl").expect(lines)
  }

  /// The members of its JSON are in no order.
  @Test func pulsesAreWrittenAndReadAsBefore() throws {
    let process = Pulse.Process(id: "p-1", role: "worker", version: "1.0", host: "h", pid: 7, startedAt: 1)
    var pulses = [Pulse(process: process, time: Self.time), Pulse(process: process, time: Self.time)]
    pulses[1].isLast = true
    pulses[1].problems = [
      Pulse.Problem(check: "kafka", problem: "away"), Pulse.Problem(check: "apns", problem: "no", hubs: [Self.shop]),
    ]
    pulses[1].samples = [
      MetricSample("fanfare_a_total", .counter, labels: ["hub": "shop"], value: 3),
      MetricSample("b", .gauge, value: 0.5),
    ]
    pulses[1].hubs = ["shop"]
    pulses[1].segments = [
      Pulse.Segments(hub: "shop", send: Self.id(1).description, segments: 2, pagesAhead: 30)
    ]
    try GoldenFile("pulses.jsonl").expect(
      pulses,
      write: { pulse in
        let object = try JSONSerialization.jsonObject(with: Data(try pulse.record()))
        return Array(try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys]))
      }, read: { try #require(Pulse(record: $0)) })
  }
}
