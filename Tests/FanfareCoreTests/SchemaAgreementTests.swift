import FanfareCore
import Foundation
import Support
import Testing

/// The codec reads exactly the records that the AsyncAPI document permits.
@Suite struct SchemaAgreementTests {
  private let checker: SchemaChecker

  init() throws {
    checker = try SchemaChecker()
  }

  private static func device(_ platform: String, _ handle: String, more: String = "") -> String {
    #"{"to":{"device":{"platform":"\#(platform)","handle":"\#(handle)"\#(more)}},"message":{"body":"x"}}"#
  }

  private static func to(_ audience: String) -> String { #"{"to":{\#(audience)},"message":{"body":"x"}}"# }

  private static func send(_ members: String) -> String { #"{"to":{"user":"bob"},\#(members)}"# }

  private static func text(_ count: Int, _ character: Character = "x") -> String {
    String(repeating: character, count: count)
  }

  private static func tags(_ count: Int) -> String { (0..<count).map { #""t\#($0)""# }.joined(separator: ",") }

  private static func keys(_ count: Int) -> String { (0..<count).map { #""k\#($0)":"v""# }.joined(separator: ",") }

  /// The `data` of sends that are read.
  static let sound: [String] = [
    to(#""user":"zoë müller""#), to(#""user":"\#(text(111))""#), to(#""user":"\#(text(55, "é"))x""#),
    to(#""tag":"A-z_0@#.:-""#),
    to(#""tag":"\#(text(120))""#), to(#""tag":"username:zoë müller""#), to(#""tag":"username:\#(text(111))""#),
    to(#""tag":"username:""#), to(#""tag":"username:a:b""#),
    to(#""tags":["news"]"#), to(#""tags":["news","username:zoë müller","news"]"#), to(#""tags":[\#(tags(64))]"#),
    to(#""expression":"(news && !muted) || vip""#), to(#""expression":"\"username:zoë müller\"&&\ninstallation:7""#),
    to(#""everyone":true"#),
    to(#""registration":"0190F5FE-7C00-7000-8000-000000000001""#),
    device("apns", "00fF"), device("APNS", text(400, "a")), device("fcm", "a:b~!"), device("gCm", text(2048)),
    device("wns", "https://notify.windows.com"), device("WNS", "HTTPS://Dm3p.Notify.Windows.Com:443/w/?token=a%2b"),
    device("wns", "https://notify.windows.com?x"), device("wns", "https://a.\(text(63)).notify.windows.com/"),
    send(#""message":{"title":""}"#), send(#""message":{"badge":0}"#), send(#""message":{"badge":2147483647}"#),
    send(#""message":{"data":{"k":""}}"#), send(#""message":{"data":{\#(keys(100))}}"#),
    send(#""message":{"sound":"\#(text(256))"}"#),
    send(#""message":{"body":"x","later":{"a":[null]}}"#), send(#""native":{"apns":{}}"#),
    send(#""native":{"fcm":{"a":[]}}"#),
    send(#""native":{"gcm":{}}"#), send(#""native":{"wns":"<toast/>","later":1}"#),
    send(#""native":{},"message":{"body":"x"}"#),
    send(#""native":{"wns":"<toast/>","headers":{"X-WNS-Type":"wns/toast"}}"#),
    send(#""template":{}"#), send(#""template":{"name":"Größe 1","version":1,"properties":{"A_1":""}}"#),
    send(#""template":{"later":1,"version":2},"message":{"body":"x"}"#),
    send(#""message":{"body":"x"},"platforms":["apns","FCM","gcm","Wns","wns"]"#),
    send(#""message":{"body":"x"},"hub":"a-0""#),
    send(#""message":{"body":"x"},"hub":"\#(text(64))""#), send(#""message":{"body":"x"},"later":true"#),
  ]

  /// Values at the limits of the members with plain schemas, and beyond them.
  static func limits() throws -> [(data: String, isSound: Bool)] {
    try SendFields.members.filter { $0.place != .bodies }.flatMap { member in
      let schema = try JSONSerialization.jsonObject(with: Data("{\(member.schema)}".utf8)) as? [String: Any] ?? [:]
      var values: [(String, Bool)] = []
      if let least = schema["minimum"] as? Int, let most = schema["maximum"] as? Int {
        values += [("\(least)", true), ("\(most)", true), ("\(least - 1)", false), ("\(most + 1)", false)]
      }
      if let most = schema["x-maxBytes"] as? Int {
        values += [(#""\#(text(most))""#, true), (#""\#(text(most / 2, "é"))""#, true), (#""""#, false)]
        values += [(#""\#(text(most / 2 + 1, "é"))""#, false)]
      }
      values += (schema["enum"] as? [String] ?? []).map { (#""\#($0)""#, true) }
      if schema["format"] as? String == "uuid" { values.append((#""\#(CodecTests.id)""#, true)) }
      if schema["type"] as? String == "string" { values += [("1", false)] }
      if schema["type"] as? String == "integer" { values += [(#""1""#, false)] }
      if schema["enum"] != nil || schema["format"] != nil { values += [(#""x""#, false)] }
      return values.map { (send(#""message":{"body":"x"},"\#(member.name)":\#($0)"#), $1) }
    }
  }

  /// The `data` of sends that are refused.
  static let broken: [String] = [
    "{}", "[]", #"{"message":{"body":"x"}}"#, #"{"to":{"user":"bob"}}"#, to(""), to(#""user":"a","tag":"b""#),
    to(#""everyone":false"#), to(#""everyone":1"#), to(#""everyone":true,"tag":"a""#), to(#""tags":[]"#),
    to(#""tags":"news""#),
    to(#""tags":["news","a b"]"#), to(#""tags":["news",1]"#), to(#""tags":[\#(tags(65))]"#), to(#""expression":"""#),
    to(#""expression":"news &&""#), to(#""expression":"username:zoë""#), to(#""expression":["news"]"#),
    to(#""expression":"a\#(text(65_536, " "))""#),
    to(#""user":"bob","later":1"#), to(#""user":"""#), to(#""user":"a:b""#), to(#""user":"a:\#u{301}b""#),
    to(#""user":"a\nb""#),
    to(#""user":"\#(text(112))""#), to(#""user":"\#(text(56, "é"))""#), to(#""user":7"#), to(#""tag":"""#),
    to(#""tag":"a b""#),
    to(#""tag":"é""#), to(#""tag":"\#(text(121))""#), to(#""tag":"username:a b:c""#),
    to(#""tag":"username:\#(text(112))""#),
    to(#""tag":"x\n""#), to(#""registration":"7""#), to(#""registration":"0190f5fe7c007000800000000000000001""#),
    to(#""device":"00ff""#), to(#""device":{"platform":"apns"}"#), to(#""device":{"handle":"00ff"}"#),
    device("apns", "00ff", more: #","later":1"#), device("pager", "00ff"), device("apns", ""), device("apns", "00f"),
    device("apns", "zz"), device("apns", text(402, "a")), device("fcm", "a b"), device("fcm", "é"),
    device("fcm", text(2049)),
    device("wns", "https://..notify.windows.com/"), device("wns", "https://\(text(64)).notify.windows.com/"),
    device("wns", "http://notify.windows.com/"), device("wns", "https://evilnotify.windows.com/"),
    device("wns", "https://notify.windows.com.evil.example/"), device("wns", "https://u@notify.windows.com/"),
    device("wns", "https://notify.windows.com:8443/"), device("wns", "https://notify.windows.com:443:443/"),
    device("wns", "https://notify.windows.com/#x"), device("wns", #"https://notify.windows.com/\\x"#),
    device("wns", "https://notify.windows.com/?a[]"), device("wns", "https://notify.windows.com/?a%2"),
    device("wns", "https://notify.windows.com/ x"), device("wns", "https://notify.windows.com/?\(text(2048))"),
    send(#""message":{}"#), send(#""message":{"later":1}"#), send(#""message":{"data":{}}"#),
    send(#""message":{"data":{"":"v"}}"#),
    send(#""message":{"data":{"k":1}}"#), send(#""message":{"data":{\#(keys(101))}}"#), send(#""message":{"title":1}"#),
    send(#""message":{"badge":-1}"#), send(#""message":{"badge":2147483648}"#), send(#""message":{"badge":1.5}"#),
    send(#""message":{"badge":true}"#), send(#""message":{"sound":""}"#),
    send(#""message":{"sound":"\#(text(129, "é"))"}"#),
    send(#""message":null"#), send(#""native":{}"#), send(#""native":{"later":1}"#), send(#""native":{"apns":"x"}"#),
    send(#""native":{"fcm":[]}"#), send(#""native":{"gcm":null}"#), send(#""native":{"wns":""}"#),
    send(#""native":{"headers":{"apns-priority":"5"}}"#), send(#""native":{"apns":{},"headers":{"apns-priority":5}}"#),
    send(#""template":"x""#), send(#""template":{"name":""}"#), send(#""template":{"name":"a\u0009"}"#),
    send(#""template":{"name":"a","version":0}"#), send(#""template":{"properties":{"a-b":""}}"#),
    send(#""template":{"properties":{"a":1}}"#), send(#""template":{"properties":{\#(keys(101))}}"#),
    send(#""message":{"body":"x"},"native":[]"#), send(#""message":{"body":"x"},"platforms":[]"#),
    send(#""message":{"body":"x"},"platforms":["apns","pager"]"#), send(#""message":{"body":"x"},"platforms":"apns""#),
    send(#""message":{"body":"x"},"hub":"-a""#), send(#""message":{"body":"x"},"hub":"A""#),
    send(#""message":{"body":"x"},"hub":"""#),
    send(#""message":{"body":"x"},"hub":"a\n""#), send(#""message":{"body":"x"},"hub":"\#(text(65))""#),
    send(#""message":{"title":"\#(text(SendRequest.maximumRecordSize))"}"#),
  ]

  /// Envelopes, each with true if it can be read.
  static let envelopes: [(members: String, isSound: Bool)] = [
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1""#, true),
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1","source":7,"later":[]"#, true),
    (
      #""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1","time":"2026-11-21t08:00:00+01:00""#, true
    ),
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1","time":null"#, true),
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1","time":"today""#, false),
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v1","time":7"#, false),
    (#""specversion":"1.1","id":"\#(CodecTests.id)","type":"fanfare.send.v1""#, false),
    (#""id":"\#(CodecTests.id)","type":"fanfare.send.v1""#, false),
    (#""specversion":"1.0","id":"7","type":"fanfare.send.v1""#, false),
    (#""specversion":"1.0","type":"fanfare.send.v1""#, false),
    (#""specversion":"1.0","id":"\#(CodecTests.id)","type":"fanfare.send.v2""#, false),
    (#""specversion":"1.0","id":"\#(CodecTests.id)""#, false),
  ]

  private func isRead<Record>(_ decode: () throws(RecordError) -> Record) -> Bool {
    do throws(RecordError) {
      _ = try decode()
      return true
    } catch {
      return false
    }
  }

  private func isReadAsSend(_ record: [UInt8]) -> Bool {
    isRead { () throws(RecordError) in try SendRequest.decode(record[...], recordTime: CodecTests.time) }
  }

  private func expectBoth(_ isSound: Bool, _ record: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let found = try checker.complaints(about: Array(record.utf8), schema: "SendEvent", .open)
    #expect(found.isEmpty == isSound, "the document: \(found)", sourceLocation: sourceLocation)
    #expect(isReadAsSend(Array(record.utf8)) == isSound, "the codec", sourceLocation: sourceLocation)
  }

  @Test(arguments: sound) func validSendsAreRead(data: String) throws {
    try expectBoth(true, CodecTests.record(data: data))
  }

  @Test(arguments: broken) func invalidSendsAreRejected(data: String) throws {
    try expectBoth(false, CodecTests.record(data: data))
  }

  @Test func limitsAreThoseOfTheSchema() throws {
    let limits = try Self.limits()
    #expect(Set(limits.map(\.isSound)) == [true, false])
    for (data, isSound) in limits { try expectBoth(isSound, CodecTests.record(data: data)) }
  }

  @Test(arguments: envelopes) func envelopesAreReadAsDocumented(members: String, isSound: Bool) throws {
    try expectBoth(isSound, #"{\#(members),"data":\#(Self.to(#""user":"bob""#))}"#)
  }

  /// Valid records with random parts replaced, removed and added: the codec and the schema give the same verdict.
  @Test func codecAndSchemaAgreeOnRandomRecords() throws {
    var random = SeededGenerator(seed: 11)
    let seeds = try Self.sound.filter { $0.utf8.count < 4096 }.map {
      try JSONTree(Array(CodecTests.record(data: $0).utf8))
    }
    var (readable, refused) = (0, 0)
    for round in 0..<4_000 {
      var tree = seeds[round % seeds.count]
      for _ in 0..<Int.random(in: 1...3, using: &random) { tree = Self.changed(tree, using: &random) }
      let record = tree.encoded
      let found = try checker.complaints(about: record, schema: "SendEvent", .open)
      let isRead = isReadAsSend(record)
      #expect(found.isEmpty == isRead, "\(String(decoding: record, as: UTF8.self)): \(found)")
      if isRead { readable += 1 } else { refused += 1 }
    }
    #expect(readable > 400 && refused > 400)
  }

  private static let pool: [JSONTree] = [
    .null, .boolean(true), .number(0), .number(-1), .number(1.5), .number(1e12), .string(""), .string("x"),
    .string("a:b"),
    .string("é"), .string("apns"), .string("GCM"), .string("00ff"), .string("https://notify.windows.com/?a"),
    .string(text(100, "é")), .string(CodecTests.id), .string("2026-11-21T08:00:00Z"), .string("username:zoë"),
    .array([]),
    .array([.string("fcm")]), .object([:]), .object(["x": .string("y")]), .object(["apns": .object([:])]),
    .object(["user": .string("u")]),
    .object(["everyone": .boolean(true)]), .object(["tags": .array([.string("a"), .string("username:zoë")])]),
    .string("a && !b"),
    .object(["platform": .string("fcm"), "handle": .string("t")]),
  ]
  private static let names =
    SendFields.members.map(\.name) + [
      "user", "tag", "tags", "expression", "everyone", "registration", "device", "platform", "handle", "title", "body",
      "data", "badge", "sound", "apns", "fcm", "gcm", "wns", "id", "type", "time", "source", "specversion", "later",
    ]

  /// The value with one random change.
  private static func changed(_ tree: JSONTree, using random: inout SeededGenerator) -> JSONTree {
    switch tree {
    case .object(var members):
      // Sorted, so that a seed always gives the same records.
      let key = members.keys.sorted().randomElement(using: &random)
      switch (Int.random(in: 0..<10, using: &random), key) {
      case (0, let key?): members[key] = nil
      case (1, _), (_, nil): members[names.randomElement(using: &random) ?? ""] = pool.randomElement(using: &random)
      case (2, let key?): members[key] = pool.randomElement(using: &random)
      case (_, let key?): members[key] = members[key].map { changed($0, using: &random) }
      }
      return .object(members)
    case .array(var elements):
      guard let index = elements.indices.randomElement(using: &random) else { return .array([.string("apns")]) }
      elements[index] = changed(elements[index], using: &random)
      return .array(elements)
    case .string, .number, .boolean, .null: return pool.randomElement(using: &random) ?? .null
    }
  }

  /// The document restricts records of Fanfare more than the codec does. These cases concern rules of both.
  @Test(arguments: [
    (#""part":0"#, #""part":0"#, true), (#""part":0"#, #""part":1,"parts":2,"attempt":"\#(CodecTests.id)""#, true),
    (#""part":0"#, #""part":-1"#, false), (#""part":0"#, #""part":0,"parts":0"#, false),
    (#""part":0"#, #""part":0,"parts":10000001"#, false), (#""part":0"#, #""part":0,"attempt":"x""#, false),
    (#""part":0"#, #""later":0"#, false), (#""state":"settled""#, #""state":"done""#, false),
    (#""hub":"default""#, #""hub":"Default""#, false), (#"{"user":"bob"}"#, #"{"user":"a:b"}"#, false),
    (#""outcome":"failed""#, #""outcome":"lost""#, false), (#""platform":"wns""#, #""platform":"pager""#, false),
    (#""acceptedAt":""#, #""acceptedAt":"x"#, false), (#""settledAt":""#, #""settled":""#, false),
    (#""consumed":1795"#, #""consumed":-1795"#, false), (#""pushed":1795"#, #""pushed":1795.5,"later":1795"#, false),
    (#""answered":1795"#, #""answered":9991795"#, false), (#""lookedUp":1795"#, #""later":1795"#, true),
    (#""times":{"#, #""times":7,"later":{"#, false),
    (#""send":""#, #""send":"x"#, false), (#""type":"fanfare.status.v1""#, #""type":"fanfare.status.v2""#, false),
  ])
  func statusesAreReadAsDocumented(part: String, replacement: String, isSound: Bool) throws {
    let device = DeviceResult(
      registration: .random(), platform: .wns, outcome: .failed, reason: "x", status: 500, attempts: 2)
    let status = StatusRecord(
      send: .random(), hub: .default, state: .settled, sender: nil, audience: .user("bob"), acceptedAt: CodecTests.time,
      settledAt: CodecTests.time, devices: [device], times: StatusRecordTests.times)
    let record = Array(String(decoding: status.encoded(), as: UTF8.self).replacing(part, with: replacement).utf8)
    #expect(try checker.complaints(about: record, schema: "StatusEvent", .open).isEmpty == isSound)
    #expect(isRead { () throws(RecordError) in try StatusRecord.decode(record[...]) } == isSound)
  }

  @Test(arguments: [
    (#""part":0"#, #""part":0"#, true), (#""part":0"#, #""part":-1"#, false), (#""parts":1"#, #""parts":0"#, false),
    (#""parts":1"#, #""parts":10000001"#, false), (#""parts":1"#, #""parts":1,"attempt":"x""#, false),
    (#""deferrals":2"#, #""deferrals":1000000"#, true), (#""deferrals":2"#, #""deferrals":0"#, false),
    (#""deferrals":2"#, #""deferrals":1000001"#, false), (#""deferrals":2"#, #""later":2"#, false),
    (#""devices":["#, #""devices":[],"later":["#, false), (#""devices":["#, #""later":["#, false),
    (#""platform":"apns","notBefore":"#, #""platform":"apns","later":"#, false),
    (#""outcome":"rejected""#, #""later":0"#, false), (#""outcome":"rejected""#, #""outcome":"lost""#, false),
    (#""attempts":3"#, #""attempts":1000000"#, true), (#""attempts":3"#, #""attempts":1000001"#, false),
    (#""waits":2"#, #""waits":-1"#, false), (#""unanswered":true"#, #""unanswered":1"#, false),
    (#""send":{"#, #""send":7,"later":{"#, false),
    (#""type":"fanfare.retry.v1""#, #""type":"fanfare.retry.v2""#, false),
  ])
  func retriesAreReadAsDocumented(part: String, replacement: String, isSound: Bool) throws {
    let text = String(decoding: RetryRecordTests.record().encoded(at: CodecTests.time), as: UTF8.self)
    let record = Array(text.replacing(part, with: replacement, maxReplacements: 1).utf8)
    #expect(text.contains(part))
    #expect(try checker.complaints(about: record, schema: "RetryEvent", .open).isEmpty == isSound)
    #expect(
      isRead { () throws(RecordError) in try RetryRecord.decode(record[...], recordTime: CodecTests.time) } == isSound)
  }

  @Test(arguments: [
    (#""pages":7"#, #""pages":10000000"#, true), (#""pages":7"#, #""pages":10000001"#, false),
    (#""pages":7"#, #""later":7"#, false), (#""first":2"#, #""first":0"#, true), (#""first":2"#, #""first":-1"#, false),
    (#""count":3"#, #""count":5"#, true), (#""count":3"#, #""count":0"#, false),
    (#""send":{"#, #""send":7,"later":{"#, false),
    (#""type":"fanfare.segment.v1""#, #""type":"fanfare.segment.v2""#, false),
  ])
  func segmentsAreReadAsDocumented(part: String, replacement: String, isSound: Bool) throws {
    let segment = SegmentRecord(send: CodecTests.requests[0], pages: 7, range: 2..<5)
    let text = String(decoding: segment.encoded(at: CodecTests.time), as: UTF8.self)
    let record = Array(text.replacing(part, with: replacement, maxReplacements: 1).utf8)
    #expect(text.contains(part))
    #expect(try checker.complaints(about: record, schema: "SegmentEvent", .open).isEmpty == isSound)
    #expect(
      isRead { () throws(RecordError) in try SegmentRecord.decode(record[...], recordTime: CodecTests.time) } == isSound
    )
  }
}
