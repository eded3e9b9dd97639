import FanfareCore
import Support
import Testing

@Suite struct CodecTests {
  static let time = UnixTime(milliseconds: 1_795_248_000_123)
  static let hostile = "say \"hi\" \\ </toast>\n\r\t\u{0}\u{1F}\u{7F} é 👩‍👩‍👧 \u{2028}"

  static let requests: [SendRequest] = [
    SendRequest(
      id: .timeOrdered(at: time), acceptedAt: time, audience: .user("bob"),
      content: Content(message: Message(body: "hello"))),
    SendRequest(
      id: .random(), hub: HubName("app-2") ?? .default, sender: "zoë", acceptedAt: time, audience: .tag("news:sport"),
      platforms: PlatformSet(.wns), content: Content.of(wns: "<toast>\(hostile)</toast>"), timeToLive: 0,
      priority: .normal,
      collapseKey: "score", traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      tracestate: "vendor=1"),
    SendRequest(
      id: .random(), acceptedAt: time, audience: .registration(.random()),
      platforms: [PlatformSet(.apns), PlatformSet(.fcm)],
      content: Content.of(
        message: Message(title: hostile, body: hostile, data: [hostile: hostile, "k": ""], badge: 0, sound: "default"),
        apns: Array(#"{"aps":{"alert":"x"},"n":1.50}"#.utf8), fcm: Array(#"{"data":{}}"#.utf8)),
      timeToLive: SendRequest.maximumTimeToLive),
    SendRequest(
      id: .random(), acceptedAt: time, audience: .device(.apns, handle: "00ff"),
      content: Content(message: Message(badge: 3)),
      replay: .random()),
    SendRequest(
      id: .random(), acceptedAt: time, audience: Audience(anyOf: ["b", "a", "username:zoë müller", "b"]),
      content: Content(message: Message(body: "x")), maximumPerSecond: SendRequest.greatestMaximumPerSecond),
    SendRequest(
      id: .random(), acceptedAt: time,
      audience: .expression(.any([.all([.tag("a"), .not(.tag("b"))]), .tag("username:a \"\\ b")])),
      content: Content(message: Message(body: "x")), maximumPerSecond: 1),
    SendRequest(id: .random(), acceptedAt: time, audience: .everyone, content: Content(message: Message(body: "x"))),
  ]

  @Test(arguments: requests)
  func sendIsDecodedAsEncoded(request: SendRequest) throws {
    #expect(try SendRequest.decode(request.encoded()[...], recordTime: UnixTime(milliseconds: 0)) == request)
  }

  @Test func recordWriterEqualsEncoded() {
    var writer = SendRecordWriter()
    // Two of the names look the same but have different bytes.
    let origins: [(sender: String?, hub: String, time: Int64)] = [
      ("zo\u{EB}", "default", 0), ("zo\u{EB}", "default", 0), ("zoe\u{308}", "default", 0), (nil, "default", 0),
      (nil, "app-2", 0),
      (nil, "app-2", 1), ("bob", "app-2", 1), (nil, "app-2", 1),
    ]
    let sends = origins.map { origin in
      SendRequest(
        id: .random(), hub: HubName(origin.hub) ?? .default, sender: origin.sender,
        acceptedAt: UnixTime(milliseconds: origin.time),
        audience: .everyone, content: Content(message: Message(body: "x")))
    }
    for send in Self.requests + sends { #expect(writer.record(of: send) == send.encoded()) }
  }

  @Test func membersInAnyOrderAndUnknownOnesAreRead() throws {
    let record = #"""
       { "data" : {"later":[{"a":null}],"message":{"body":"\u00e9\ud83d\ude00","new":1},"to":{"user":"bob"},"platforms":["GCM"]},
         "traceparent":"x","type":"fanfare.send.v1","id":"0190F5FE-7C00-7000-8000-000000000001","specversion":"1.0" }
      """#
    let send = try decoded(record)
    #expect(send.content.message?.body == "é😀")
    #expect(send.platforms == PlatformSet(.fcm))
    #expect(send.acceptedAt == Self.time)
    #expect(send.hub == .default)
    #expect(send.id.description == "0190f5fe-7c00-7000-8000-000000000001")
  }

  @Test func wholeNumberMayHaveAFractionOfZeros() throws {
    for (number, badge) in [("3.0", 3), ("3.00", 3), ("3", 3)] {
      let send = try decoded(Self.record(data: #"{"to":{"user":"bob"},"message":{"badge":\#(number)}}"#))
      #expect(send.content.message?.badge == badge)
    }
  }

  static let id = "0190f5fe-7c00-7000-8000-000000000001"

  /// The beginning of a record whose data comes last.
  static let head = #"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v1","source":"/x","data":"#

  /// A record with the given `data`, otherwise valid.
  static func record(data: String) -> String { "\(head)\(data)}" }

  private static let audiences = "user, tag, tags, expression, registration, device and everyone"
  private static let cut = "the record ends in the middle of its JSON value"

  /// Records that are no sends, and why.
  static let undecodable: [(record: String, detail: String)] =
    envelopes + bodies.map { data, detail in (record(data: data), "data\(detail)") }

  private static let envelopes: [(String, String)] = [
    ("", "the record is empty"), ("hello", "the record must be an object"), (#"\#(head){"to":{"us"#, cut),
    (record(data: #"{"to":{"user":"bob"}"#), cut),
    (#"\#(head){"to":{"user":"bob"},"message":{"body":"caf\u00"#, cut), ("{}", "specversion must be \"1.0\""),
    (#"{"specversion":"1.0","id":"\#(id)","data":{}}"#, "type is missing"),
    (
      #"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v1","time":"0000-01-01T00:00:00+00:01","data":{}}"#,
      "time must be an RFC 3339 date-time"
    ),
    (#"{"specversion":"1.0","id":"7","type":"fanfare.send.v1","data":{}}"#, "id must be a UUID"),
    (#"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v1"}"#, "data is missing"),
    (record(data: #"{"x":"\#u{1}"}"#), "the record is not JSON at byte 117"),
  ]

  private static let bodies: [(String, String)] = [
    ("{}", ".to is missing"), ("7", " must be an object"),
    (#"{"to":{"user":"bob"}}"#, ".message or native or template must be given"),
    (#"{"to":{}}"#, ".to must have exactly one of \(audiences)"),
    (#"{"to":{"user":"a","tag":"b"}}"#, ".to must have exactly one of \(audiences)"),
    (#"{"to":{"all":true}}"#, ".to.all is not an audience; \(audiences) are"),
    (#"{"to":{"expression":"\u0061 && (b || )"}}"#, ".to.expression must have a tag, ! or ( at character 12"),
    (#"{"to":{"user":"bob"},"message":{"badge":-1}}"#, ".message.badge must be 0 to 2147483647"),
    (#"{"to":{"user":"bob"},"message":{"badge":1.5}}"#, ".message.badge must be a whole number"),
    (#"{"to":{"user":"bob"},"message":{"badge":1e2}}"#, ".message.badge must be a whole number"),
    (#"{"to":{"user":"bob"},"message":{"body":3}}"#, ".message.body must be a string"),
    (
      #"{"to":{"user":"bob"},"message":{"data":{"caf\#u{E9}":"1","k":"2","cafe\#u{301}":"3"}}}"#,
      ".message.data.cafe\u{301} is another spelling of a key before it"
    ),
    (#"{"platforms":["apns","pager"]}"#, ".platforms[1] must be \(Platform.allCases.map { "\"\($0)\"" }.alternatives)"),
    (#"{"ttl":2419201}"#, ".ttl must be 0 to 2419200 seconds"),
    (#"{"native":{"apns":"text"}}"#, ".native.apns must be an object"),
    (
      String(repeating: "[", count: 100),
      String(repeating: "[0]", count: JSONReader.maximumDepth - 1)
        + " nests deeper than \(JSONReader.maximumDepth) levels"
    ),
  ]

  private func decoded(_ record: String) throws -> SendRequest {
    try SendRequest.decode(Array(record.utf8)[...], recordTime: Self.time)
  }

  /// Every accepted send, with any escapes, can be divided into segments that can be read, and replayed: no other record
  /// of a replay's size is accepted on the sends topic.
  @Test func sendThatGrowsWhenEncodedAgainCanBeReplayedAndDivided() throws {
    let text = String(repeating: #"\b"#, count: 200_000)
    let send = try decoded(Self.record(data: #"{"to":{"everyone":true},"message":{"body":"\#(text)"}}"#))
    let replay = send.replayed(by: .random(), on: .all)
    for send in [send, replay] {
      let segment = SegmentRecord(send: send, pages: 7, range: 2..<5).encoded(at: Self.time)
      #expect(segment.count > SendRequest.maximumRecordSize)
      let isSame = try SegmentRecord.decode(segment[...], recordTime: Self.time).send == send
      #expect(isSame)
    }
    let isSame = try SendRequest.decode(replay.encoded()[...], recordTime: Self.time) == replay
    #expect(isSame)
    #expect(throws: RecordError(.tooLarge, "the record has more than 524288 bytes")) {
      try SendRequest.decode(send.encoded()[...], recordTime: Self.time)
    }
  }

  /// A member of a later version is kept whenever this version writes the send again.
  @Test func unknownMembersOfASendAreKept() throws {
    let data = #"{"later":{"a":[1.50,null]},"to":{"user":"bob"},"k\u0065y\n":"é","message":{"body":"x"}}"#
    let send = try decoded(Self.record(data: data))
    let retry = RetryRecordTests.record(send: send).encoded(at: Self.time)
    let segment = SegmentRecord(send: send, pages: 7, range: 2..<5).encoded(at: Self.time)
    for record in [send.encoded(), retry, segment, send.replayed(by: .random(), on: .all).encoded()] {
      #expect(String(decoding: record, as: UTF8.self).contains(#","later":{"a":[1.50,null]},"key\n":"é"}}"#))
    }
    #expect(try RetryRecord.decode(retry[...], recordTime: Self.time).send == send)
    #expect(try SegmentRecord.decode(segment[...], recordTime: Self.time).send == send)
  }

  /// If a member is repeated the last one counts, also in `data`.
  @Test func repeatedDataOfAMessageIsReplacedByTheLast() throws {
    let data = #"{"to":{"user":"bob"},"message":{"data":{"a":"1","b":"2"},"data":{"a":"3","a":"4"}}}"#
    let send = try decoded(Self.record(data: data))
    #expect(send.content.message?.data == ["a": "4"])
  }

  /// A producer may give microseconds instead of milliseconds; the time is clamped to a value that can be written.
  /// The time of an event, the log's time of its record, and the moment of acceptance, in milliseconds.
  @Test(arguments: [
    ("2026-11-21T08:00:00Z", 300, 300), ("2026-11-21T08:00:00Z", 1500, 999), ("2026-11-21T08:00:00Z", -400, 0),
    ("2026-11-21T09:00:00+01:00", 300, 300), ("2026-11-21T08:00:00.000Z", 300, 0),
    ("2026-11-21T08:00:00.0Z", 300, 0), ("2026-11-21T08:00:00.250Z", 300, 250),
  ])
  func timeInWholeSecondsLeavesOutNoDeviceOfThatSecond(time: String, recorded: Int64, accepted: Int64) throws {
    let second = try #require(UnixTime("2026-11-21T08:00:00.000Z"))
    let id = SendID.random()
    let record =
      #"{"specversion":"1.0","id":"\#(id)","type":"fanfare.send.v1","time":"\#(time)","#
      + #""data":{"to":{"user":"bob"},"message":{"body":"b"}}}"#
    let recordTime = second + .milliseconds(recorded)
    let send = try SendRequest.decode(Array(record.utf8)[...], recordTime: recordTime)
    #expect(send.acceptedAt == second + .milliseconds(accepted))
    let later = recordTime + .seconds(60)
    #expect(try SendRequest.decode(send.encoded()[...], recordTime: later).acceptedAt == send.acceptedAt)
  }

  @Test func recordTimeIsClampedToTheLastWritableMoment() throws {
    let data = #"{"to":{"user":"a"},"message":{"body":"x"}}"#
    let value = Array(
      #"{"specversion":"1.0","type":"fanfare.send.v1","source":"/x","id":"\#(SendID.random())","data":\#(data)}"#.utf8)
    let send = try SendRequest.decode(value[...], recordTime: UnixTime(milliseconds: 1_795_000_000_000_000))
    #expect(send.acceptedAt == UnixTime("9999-12-31T23:59:59.999Z"))
    #expect(try SendRequest.decode(send.encoded()[...], recordTime: Self.time) == send)
  }

  /// Members in any order give the same send; the last of repeated members counts.
  @Test(arguments: [
    #""data":{"to":{"user":"bob"},"message":{"body":"x"}},"specversion":"1.0","type":"fanfare.send.v1""#,
    #""type":"fanfare.send.v1","data":{"to":{"user":"bob"},"message":{"body":"x"}},"specversion":"1.0""#,
    #""data":{"to":{"user":"al"},"ttl":5},"specversion":"1.0","type":"fanfare.send.v1","data":{"to":{"user":"bob"},"message":{"body":"x"}}"#,
    #""specversion":"1.0","type":"fanfare.send.v1","data":{"to":{"user":"al"},"ttl":5},"data":{"to":{"user":"bob"},"message":{"body":"x"}}"#,
    #""specversion":"1.0","type":"fanfare.send.v1","data":{"to":{}},"d\u0061ta":{"to":{"user":"bob"},"message":{"body":"x"}}"#,
  ])
  func membersMayHaveAnyOrder(members: String) throws {
    let send = SendRequest(
      id: try #require(SendID(Self.id)), acceptedAt: Self.time, audience: .user("bob"),
      content: Content(message: Message(body: "x")))
    #expect(try decoded(#"{"id":"\#(Self.id)",\#(members)}"#) == send)
  }

  @Test(arguments: undecodable)
  func poisonedRecordIsRejectedWithTheField(record: String, detail: String) {
    #expect(throws: RecordError(.undecodable, detail)) { try decoded(record) }
    guard record.hasPrefix(Self.head), record.hasSuffix("}") else { return }
    // The same error if `data` comes before the type of the record.
    let data = record.dropFirst(Self.head.count).dropLast()
    let turned = #"{"data":\#(data),\#(Self.head.dropFirst().dropLast(#","data":"#.count))}"#
    #expect(throws: RecordError(.undecodable, detail.replacing("at byte 117", with: "at byte 14"))) {
      try decoded(turned)
    }
  }

  @Test func laterTypeIsUnknown() {
    #expect(throws: RecordError(.unknownType, "type must be \"fanfare.send.v1\"")) {
      try decoded(#"{"specversion":"1.0","id":"\#(Self.id)","type":"fanfare.send.v2","data":{}}"#)
    }
  }

  @Test func invalidUTF8IsRejected() {
    #expect(throws: RecordError(.undecodable, "the record is not UTF-8")) {
      try SendRequest.decode([UInt8(ascii: "\""), 0xFF, UInt8(ascii: "\"")], recordTime: Self.time)
    }
  }

  @Test func hugeRecordIsRejectedUnparsed() {
    let record = [UInt8](repeating: UInt8(ascii: " "), count: SendRequest.maximumRecordSize + 1)
    #expect(throws: RecordError(.tooLarge, "the record has more than 524288 bytes")) {
      try SendRequest.decode(record[...], recordTime: Self.time)
    }
  }

  @Test func equalTagsOfAListCountOnce() throws {
    func audience(_ count: Int, different: Int) throws -> Audience {
      let tags = (0..<count).map { "\"t\($0 % different)\"" }.joined(separator: ",")
      var reader = try JSONReader(Array(#"{"tags":[\#(tags)]}"#.utf8)[...])
      return try Audience.read(from: &reader)
    }
    #expect(try audience(1000, different: 64) == Audience(anyOf: (0..<64).map { "t\($0)" }))
    #expect(throws: JSONError.self) { try audience(65, different: 65) }
    var reader = try JSONReader(Array(#"["a","b","a","username:bob","username:bob"]"#.utf8)[...])
    #expect(try reader.readTags(upTo: 2) == ["a", "b", "username:bob"])
  }

  /// No broker has a topic with such a name, but any producer may write a dead letter. It must stay readable when it is
  /// written again.
  @Test(arguments: [Array("plain {}".utf8), [0xFF, 0x00], []])
  func deadLetterKeepsUndecodableBytes(value: [UInt8]) throws {
    let letter = DeadLetter(
      reason: .undecodable, detail: Self.hostile, origin: .init(topic: Self.hostile, partition: 3, offset: 1 << 40),
      at: Self.time, key: value.isEmpty ? nil : value, value: value)
    #expect(try DeadLetter.decode(letter.encoded()[...]) == letter)
  }

  @Test func deadLetterReportsACutValue() throws {
    func letter(_ value: [UInt8], _ size: Int? = nil) -> DeadLetter {
      DeadLetter(
        reason: .tooLarge, detail: "too large", origin: .init(topic: "fanfare.sends", partition: 0, offset: 1),
        at: Self.time, key: nil, value: value, valueSize: size)
    }
    // The second value fits, but not with its escapes.
    for (byte, size) in [(UInt8(ascii: "x"), StatusRecord.maximumRecordSize), (0, StatusRecord.maximumRecordSize / 2)] {
      let record = letter(Array(repeating: byte, count: size)).encoded()
      #expect(record.count < StatusRecord.maximumRecordSize)
      let cut = try DeadLetter.decode(record[...])
      #expect(cut.value.count == DeadLetter.maximumKeptBytes && cut.valueSize == size && !cut.isWhole)
    }
    let shortened = try DeadLetter.decode(letter([], 900).encoded()[...])
    #expect(!shortened.isWhole)
    #expect(try DeadLetter.decode(letter([1, 2]).encoded()[...]).isWhole)
  }
}
