import FanfareCore
import HTTP2
import JWTKit
import PushSimulator
import Testing

@Suite(.timeLimit(.minutes(2)))
struct APNsTests {
  static let device = String(repeating: "ab", count: 32)
  static let payload = #"{"aps":{"alert":"hello"}}"#
  static let topic = "com.example.fanfare"

  /// One invalid variant of a push, and its answer.
  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var status: Int
    var reason: String
    var method = "POST"
    var path = "/3/device/" + device
    var fields: [(String, String?)] = []
    var body = payload

    init(_ name: String, _ status: Int, _ reason: String) {
      testDescription = name
      (self.status, self.reason) = (status, reason)
    }

    static func field(_ name: String, _ value: String?, _ status: Int, _ reason: String) -> Case {
      var spoiled = Case("\(name) \(value ?? "missing")", status, reason)
      spoiled.fields = [(name, value)]
      return spoiled
    }

    static func background(_ body: String, _ status: Int, _ reason: String) -> Case {
      var spoiled = Case.fields(
        "background \(body)", [("apns-push-type", "background"), ("apns-priority", "5")], status, reason)
      spoiled.body = body
      return spoiled
    }

    static func path(_ path: String, _ status: Int, _ reason: String) -> Case {
      var spoiled = Case(path, status, reason)
      spoiled.path = path
      return spoiled
    }

    static func body(_ name: String, _ body: String, _ status: Int, _ reason: String) -> Case {
      var spoiled = Case(name, status, reason)
      spoiled.body = body
      return spoiled
    }

    static func fields(_ name: String, _ fields: [(String, String?)], _ status: Int, _ reason: String) -> Case {
      var spoiled = Case(name, status, reason)
      spoiled.fields = fields
      return spoiled
    }
  }

  static let cases: [Case] = [
    Case("nothing wrong", 200, ""),
    .path("/3/device/" + device.uppercased(), 200, ""),
    .path("/3/device/", 400, "MissingDeviceToken"),
    .path("/3/device", 400, "MissingDeviceToken"),
    .path("/3/devices/abcd", 404, "BadPath"),
    .path("/3/device/abc", 400, "BadDeviceToken"),
    .path("/3/device/xyz0", 400, "BadDeviceToken"),
    .path("/3/device/" + String(repeating: "a", count: 402), 400, "BadDeviceToken"),
    .field("authorization", nil, 403, "MissingProviderToken"),
    .field("authorization", "bearer", 403, "MissingProviderToken"),
    .field("authorization", "bearer a.b.c", 403, "InvalidProviderToken"),
    .field("apns-id", "not-a-uuid", 400, "BadMessageId"),
    .field("apns-id", "0C0FFEE0-0000-4000-8000-000000000000", 400, "BadMessageId"),
    .field("apns-topic", nil, 400, "MissingTopic"),
    .field("apns-topic", "com.example.other", 400, "TopicDisallowed"),
    .field("apns-topic", "com.example.fanfare.voip", 400, "BadTopic"),
    .field("apns-push-type", nil, 200, ""),
    .field("apns-push-type", "loud", 400, "InvalidPushType"),
    .field("apns-push-type", "voip", 400, "BadTopic"),
    .fields("voip topic", [("apns-push-type", "voip"), ("apns-topic", topic + ".voip")], 200, ""),
    .fields("topic without type", [("apns-push-type", nil), ("apns-topic", topic + ".voip")], 200, ""),
    .field("apns-push-type", "background", 400, "BadPriority"),
    .fields("background 10", [("apns-push-type", "background"), ("apns-priority", "10")], 400, "BadPriority"),
    .background(#"{"aps":{"content-available":1},"k":"v"}"#, 200, ""),
    .background(payload, 400, "InvalidPushType"),
    .background(#"{"k":"v"}"#, 400, "InvalidPushType"),
    .background(#"{"aps":{"content-available":0}}"#, 400, "InvalidPushType"),
    .background(#"{"aps":{"content-available":true}}"#, 200, ""),
    .background(#"{"aps":{"content-available":"1","alert":null,"sound":null}}"#, 200, ""),
    .background(#"{"aps":{"content-available":1,"alert":{"title":"t"}}}"#, 400, "InvalidPushType"),
    .background(#"{"aps":{"content-available":1,"badge":0}}"#, 400, "InvalidPushType"),
    .background(#"{"aps":{"content-available":1,"sound":"s"}}"#, 400, "InvalidPushType"),
    .field("apns-priority", "1", 200, ""),
    .field("apns-priority", "7", 400, "BadPriority"),
    .field("apns-expiration", "0", 200, ""),
    .field("apns-expiration", "-1", 400, "BadExpirationDate"),
    .field("apns-expiration", "tomorrow", 400, "BadExpirationDate"),
    .field("apns-collapse-id", String(repeating: "é", count: 32), 200, ""),
    .field("apns-collapse-id", String(repeating: "é", count: 32) + "x", 400, "BadCollapseId"),
    .body("empty", "", 400, "PayloadEmpty"),
    .body("no JSON", "hello", 400, "PayloadEmpty"),
    .body("no dictionary", "[1]", 400, "PayloadEmpty"),
    .body("open JSON", #"{"aps":{}"#, 400, "PayloadEmpty"),
    .body("4096 bytes", filled(4096), 200, ""),
    .body("4097 bytes", filled(4097), 413, "PayloadTooLarge"),
  ]

  static func filled(_ count: Int) -> String {
    #"{"aps":{"alert":""# + String(repeating: "x", count: count - 20) + #""}}"#
  }

  static func push(
    _ fixture: SimulatorFixture, _ device: String = device, token: String, id: String? = nil, body: String = payload,
    extra: [(String, String?)] = [], timeout: Duration = .seconds(30)
  ) async throws -> HTTP2Response {
    var fields: [(String, String?)] = [
      ("authorization", token), ("apns-topic", topic), ("apns-push-type", "alert"), ("apns-id", id),
    ]
    fields += extra
    return try await fixture.send(fixture.apns, path: "/3/device/" + device, fields, body: body, timeout: timeout)
  }

  @Test func everyRuleGivesItsAnswer() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      for one in Self.cases {
        var fields: [(String, String?)] = [
          ("authorization", token), ("apns-topic", Self.topic), ("apns-push-type", "alert"),
        ]
        for (name, value) in one.fields {
          fields.removeAll { $0.0 == name }
          fields.append((name, value))
        }
        let response = try await fixture.send(
          fixture.apns, method: one.method, path: one.path, fields, body: one.body)
        #expect(response.status == one.status, "\(one.testDescription)")
        let expected = one.reason.isEmpty ? "" : #"{"reason":"\#(one.reason)"}"#
        #expect(String(decoding: response.body, as: UTF8.self) == expected, "\(one.testDescription)")
        #expect(
          response.headers["apns-id"]?.utf8.count == (one.fields.first { $0.0 == "apns-id" }?.1?.utf8.count ?? 36))
      }
      let get = try await fixture.send(
        fixture.apns, method: "GET", path: "/3/device/" + Self.device, [("authorization", token)], body: "")
      #expect(get.status == 405)
      let twice = try await Self.push(
        fixture, token: token, extra: [("apns-priority", "5"), ("apns-priority", "5")])
      #expect(twice.status == 400)
      #expect(twice.body == Array(#"{"reason":"DuplicateHeaders"}"#.utf8))
    }
  }

  @Test func providerTokensAreChecked() async throws {
    try await SimulatorFixture.run { fixture in
      let app = fixture.credentials.apns
      let tokens: [(String, String)] = [
        (try await Signing.providerToken(app, age: -600), "InvalidProviderToken"),
        (try await Signing.providerToken(app, keyID: "ABCDEFGHIJ"), "InvalidProviderToken"),
        (try await Signing.providerToken(app, teamID: "ABCDEFGHIJ"), "InvalidProviderToken"),
        (try await Signing.providerToken(app, key: ES256PrivateKey()), "InvalidProviderToken"),
        ("B" + (try await Signing.providerToken(app)).dropFirst(), "MissingProviderToken"),
        (try await Signing.providerToken(app, age: 3601), "ExpiredProviderToken"),
      ]
      for (token, reason) in tokens {
        let response = try await Self.push(fixture, token: token)
        #expect(response.status == 403)
        #expect(String(decoding: response.body, as: UTF8.self) == #"{"reason":"\#(reason)"}"#)
      }
      #expect(fixture.apns.statistics.streamLimit == 1)
      // After an expired token, a valid one works on another connection only.
      let old = try await Signing.providerToken(app, age: 3500)
      let refused = try await Self.push(fixture, token: old)
      #expect(refused.body == Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))
      fixture.apns.renewConnections()
      #expect(try await Self.push(fixture, token: old).status == 200)
    }
  }

  @Test func tokenMayChangeOncePerTwentyMinutes() async throws {
    let clock = StandingClock()
    var configuration = SimulatorConfiguration()
    configuration.clock = clock
    try await SimulatorFixture.run(configuration) { fixture in
      let app = fixture.credentials.apns
      #expect(try await Self.push(fixture, token: Signing.providerToken(app, age: 1)).status == 200)
      let second = try await Signing.providerToken(app, age: 2)
      #expect(try await Self.push(fixture, token: second).status == 200)
      let third = try await Signing.providerToken(app, age: 3)
      let refused = try await Self.push(fixture, token: third)
      #expect(refused.status == 429)
      #expect(refused.body == Array(#"{"reason":"TooManyProviderTokenUpdates"}"#.utf8))
      #expect(try await Self.push(fixture, token: second).status == 200)
      clock.advance(by: .seconds(1200))
      #expect(try await Self.push(fixture, token: third).status == 200)
    }
  }

  @Test func usedTokensCanBeExpired() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await Self.push(fixture, token: token).status == 200)
      #expect(try await fixture.admin("POST", "/tokens/expire?service=apns").status == 204)
      let refused = try await Self.push(fixture, token: token)
      #expect(refused.body == Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))
      fixture.apns.renewConnections()
      let next = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await Self.push(fixture, token: next).status == 200)
      // Expiring again changes nothing.
      #expect(try await fixture.admin("POST", "/tokens/expire?service=apns").status == 204)
      for old in [token, next] {
        fixture.apns.renewConnections()
        let refused = try await Self.push(fixture, token: old)
        #expect(refused.body == Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))
      }
    }
  }

  @Test func streamsAreLimitedUntilAPushHasSucceeded() async throws {
    try await SimulatorFixture.run { fixture in
      let opened = try await fixture.apnsEvents.first { event -> Int? in
        if case .opened(_, let limit) = event { limit } else { nil }
      }
      #expect(opened == 1)
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await Self.push(fixture, token: "bearer a.b.c").status == 403)
      #expect(fixture.apns.statistics.streamLimit == 1)
      #expect(try await Self.push(fixture, token: token).status == 200)
      let raised = try await fixture.apnsEvents.first { event -> Int? in
        if case .streamLimitChanged(_, let limit) = event { limit } else { nil }
      }
      #expect(raised == 1000)
    }
  }

  @Test(arguments: HandlePrefix.table.filter { $0.platform == .apns })
  func handlesBringTheirFaults(_ entry: HandlePrefix) async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      let device = entry.prefix + String(repeating: "1", count: 64 - entry.prefix.count)
      switch entry.action {
      case .answer(let status, let reason, let retryAfter, let timestamp):
        let before = SystemWallClock().now().milliseconds
        let response = try await Self.push(fixture, device, token: token)
        #expect(response.status == status)
        #expect(response.headers["retry-after"] == retryAfter.map(String.init))
        var reader = try JSONReader(response.body[...])
        var answer: (reason: String?, timestamp: Int64?) = (nil, nil)
        try reader.readObject { (key, reader) throws(JSONError) in
          if case "reason" = key {
            answer.reason = try reader.readString()
          } else {
            answer.timestamp = try reader.readInteger()
          }
        }
        #expect(answer.reason == reason)
        #expect((answer.timestamp != nil) == (status == 410))
        if status == 410 {
          if let timestamp {
            #expect(answer.timestamp == timestamp.milliseconds)
          } else {
            #expect(answer.timestamp ?? 0 >= before)
          }
        }
      case .silence:
        // The connection must be open, or the time is over before the push is sent.
        #expect(try await Self.push(fixture, token: token).status == 200)
        await #expect(throws: HTTP2RequestError.self) {
          try await Self.push(fixture, device, token: token, timeout: .seconds(1))
        }
      default:
        let error = await #expect(throws: HTTP2RequestError.self) {
          try await Self.push(fixture, device, token: token)
        }
        #expect(error?.code == .connectionLost)
      }
      #expect(fixture.simulator.store.received(.apns, device) == nil)
      #expect(fixture.simulator.store.counts()[.apns].answers.filter { $0.key != "200" }.values.reduce(0, +) == 1)
    }
  }

  @Test func everythingReceivedCanBeRead() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      let id = "0c0ffee0-0000-4000-8000-000000000001"
      let body = #"{"aps":{"alert":"Grüße \"quoted\" <&> 🎺\n"},"n":1}"#
      #expect(
        try await Self.push(fixture, token: token, id: id, body: body, extra: [("apns-collapse-id", "c")]).status
          == 200)
      #expect(try await Self.push(fixture, token: token, id: id).status == 200)
      #expect(try await Self.push(fixture, token: token).status == 200)
      let received = fixture.simulator.store.notifications(.apns, Self.device.uppercased())
      #expect(received.map(\.pushID) == [id, id, nil])
      #expect(received.first?.text == body)
      #expect(received.first?.header("apns-collapse-id") == "c")
      #expect(received.first?.headers.contains { $0.name == "authorization" } == false)
      let counts = fixture.simulator.store.counts()
      #expect(counts.accepted == 3)
      #expect(counts.duplicates == 1)
      let answer = try await fixture.admin("GET", "/devices/apns/" + Self.device)
      #expect(answer.body.contains(#""payload":\#(body)}"#))
      #expect(answer.body.contains(#""pushId":"\#(id)""#))
    }
  }

  @Test func recordingCanBeSwitchedOff() async throws {
    var configuration = SimulatorConfiguration()
    configuration.recordsPushes = false
    try await SimulatorFixture.run(configuration) { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await Self.push(fixture, token: token).status == 200)
      #expect(try await Self.push(fixture, token: token, body: "nonsense").status == 400)
      #expect(try await Self.push(fixture, token: "bearer a.b.c").status == 403)
      #expect(fixture.simulator.store.counts().accepted == 1)
      #expect(fixture.simulator.store.counts().devices == 0)
    }
  }
}
