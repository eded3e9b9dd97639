import FanfareCore
import HTTP2
import PushSimulator
import Testing

@Suite(.timeLimit(.minutes(2)))
struct FCMTests {
  static let device = "fcm-device-0123456789"

  static func accessToken(_ fixture: SimulatorFixture) async throws -> String {
    let answer = try await exchange(fixture, assertion: Signing.assertion(fixture.credentials.google))
    #expect(answer.status == 200)
    return "Bearer " + (try member("access_token", of: answer.body) ?? "")
  }

  static func exchange(_ fixture: SimulatorFixture, assertion: String, grantType: String? = nil) async throws
    -> SimulatorFixture.Answer
  {
    let grant = grantType ?? "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    return try await fixture.send(
      "POST", fixture.endpoints.googleTokenURL, headers: [("content-type", "application/x-www-form-urlencoded")],
      body: "grant_type=\(grant)&assertion=\(assertion)")
  }

  static func member(_ name: String, of json: String) throws -> String? {
    var value: String?
    var reader = try JSONReader(Array(json.utf8)[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if key.text == name, try reader.nextKind() == .string {
        value = try reader.readString()
      } else {
        try reader.skipValue()
      }
    }
    return value
  }

  static func send(
    _ fixture: SimulatorFixture, token: String?, body: String, path: String? = nil,
    contentType: String? = "application/json",
    authority: String? = "fcm.googleapis.com", timeout: Duration = .seconds(30)
  ) async throws -> HTTP2Response {
    try await fixture.send(
      fixture.fcm, authority: authority,
      path: path ?? "/v1/projects/\(fixture.credentials.google.projectID)/messages:send",
      // Without `:authority`, HTTP/2 itself asks for `host`.
      [
        ("authorization", token), ("content-type", contentType),
        ("host", authority == nil ? "fcm.googleapis.com" : nil),
      ],
      body: body, timeout: timeout)
  }

  static func message(_ rest: String, token: String = device) -> String {
    #"{"message":{"token":"\#(token)"\#(rest.isEmpty ? "" : "," + rest)}}"#
  }

  /// All fields of `AndroidNotification`.
  static let everything =
    ##"{"title":"t","body":"b","icon":"i","color":"#0a1B2c","sound":"s","tag":"t","click_action":"c","body_loc_key":"k","##
    + #""body_loc_args":["a"],"title_loc_key":"k","title_loc_args":[],"channelId":"c","ticker":"t","sticky":true,"#
    + #""event_time":"2026-11-21T08:00:00.5Z","local_only":false,"notification_priority":"PRIORITY_HIGH","default_sound":true,"#
    + #""default_vibrate_timings":true,"default_light_settings":null,"vibrate_timings":["3.5s","0s"],"visibility":"SECRET","#
    + #""notification_count":"3","light_settings":{"color":{"red":0.5,"green":1,"blue":0,"alpha":1},"light_on_duration":"1s","#
    + #""lightOffDuration":"1.5s"},"image":"i","bypass_proxy_notification":true,"proxy":"DENY"}"#

  static let bodies: [(String, Int, String)] = [
    (message(#""data":{"message":"hi"}"#), 200, ""),
    (
      message(
        #""notification":{"title":"t","body":"b"},"android":{"priority":"HIGH","ttl":"3.5s","notification":{"tag":"x"}}"#
      ),
      200, ""
    ),
    (#"{"validate_only":true,"message":{"topic":"news"}}"#, 200, "fake_message_id"),
    (#"{"message":{"fid":"abc"}}"#, 200, ""),
    (#"{"message":{"condition":"'a' in topics"}}"#, 200, ""),
    ("", 400, "INVALID_ARGUMENT"),
    ("hello", 400, "INVALID_ARGUMENT"),
    ("{}", 400, "INVALID_ARGUMENT"),
    (#"{"message":{}}"#, 400, "INVALID_ARGUMENT"),
    (#"{"message":{"data":{"a":"b"}}}"#, 400, "INVALID_ARGUMENT"),
    (message(#""topic":"news""#), 400, "INVALID_ARGUMENT"),
    (message("", token: ""), 400, "message.token"),
    (message("", token: "with space"), 400, "message.token"),
    (message(#""data":{"n":1}"#), 400, "message.data.n"),
    (message(#""data":{"from":"x"}"#), 400, "message.data.from"),
    (message(#""data":{"message_type":"x"}"#), 400, "message.data.message_type"),
    (message(#""data":{"google.x":"x"}"#), 400, "message.data.google.x"),
    (message(#""data":{"gcm.notification.x":"x"}"#), 400, "INVALID_ARGUMENT"),
    (message(#""android":{"priority":"URGENT"}"#), 400, "message.android.priority"),
    (message(#""android":{"ttl":"2419201s"}"#), 400, "message.android.ttl"),
    (message(#""android":{"ttl":"60"}"#), 400, "message.android.ttl"),
    (message(#""android":{"data":{"n":true}}"#), 400, "message.android.data.n"),
    (message(#""apns":{"headers":{"apns-priority":5}}"#), 400, "message.apns.headers.apns-priority"),
    (message(#""shiny":1"#), 400, "message.shiny"),
    (#"{"message":{"topic":"/topics/news"}}"#, 400, "message.topic"),
    (message(#""android":{"notification":\#(everything)}"#), 200, ""),
    // In proto3 JSON, null is no value.
    (#"{"validate_only":null,"message":{"token":"t","topic":null,"data":null}}"#, 200, ""),
    (message(#""notification":{"title":null,"body":null,"image":null}"#), 200, ""),
    (message(#""android":{"priority":null,"ttl":null,"collapse_key":null,"data":null,"notification":null}"#), 200, ""),
    (message(#""android_v2":{"background_sync":null,"remote_notification":null,"ttl":null}"#), 200, ""),
    (message(#""apns":{"headers":null,"payload":null,"fcm_options":null,"live_activity_token":null}"#), 200, ""),
    (message(#""webpush":{"headers":null,"data":null,"notification":null}"#), 200, ""),
    (message(#""data":{"k":null}"#), 400, "message.data.k"),
    (
      message(#""apns":{"headers":{"apns-priority":"10"},"payload":{"aps":{"alert":null,"content-available":1}}}"#),
      400, "INVALID_ARGUMENT"
    ),
    (message(#""apns":{"headers":{"apns-priority":"7"}}"#), 400, "message.apns.headers.apns-priority"),
    (message(#""apns":{"headers":{"apns-expiration":"soon"}}"#), 400, "message.apns.headers.apns-expiration"),
    (
      message(#""apns":{"headers":{"apns-collapse-id":"\#(String(repeating: "x", count: 65))"}}"#), 400,
      "message.apns.headers.apns-collapse-id"
    ),
    (message(#""webpush":{"headers":{"ttl":"1.5"}}"#), 400, "message.webpush.headers.ttl"),
    (
      message(#""android_v2":{"remote_notification":{"notification":{"id":7,"tag":"t"},"mutableContent":true}}"#), 200,
      ""
    ),
    (message(#""webpush":{"headers":{"TTL":"6"},"data":{"k":"v"},"notification":{"x":[1]}}"#), 200, ""),
    (message(#""webpush":{"fcmOptions":{"link":"https://x","analytics_label":"a"}}"#), 200, ""),
    (message(#""fcm_options":{"analytics_label":"a-b"},"android":{"fcm_options":{"analyticsLabel":"c%"}}"#), 200, ""),
    (message(#""android":{"notification":{"shiny":1}}"#), 400, "message.android.notification.shiny"),
    (message(#""android":{"notification":{"title":1}}"#), 400, "message.android.notification.title"),
    (message(#""android":{"notification":{"sticky":"true"}}"#), 400, "message.android.notification.sticky"),
    (message(#""android":{"notification":{"color":"red"}}"#), 400, "message.android.notification.color"),
    (message(#""android":{"notification":{"body_loc_args":"a"}}"#), 400, "message.android.notification.body_loc_args"),
    (message(#""android":{"notification":{"bodyLocArgs":["a",1]}}"#), 400, "message.android.notification.bodyLocArgs"),
    (message(#""android":{"notification":{"notification_count":2147483648}}"#), 400, "notification_count"),
    (message(#""android":{"notification":{"notification_priority":"HIGH"}}"#), 400, "notification_priority"),
    (message(#""android":{"notification":{"event_time":"today"}}"#), 400, "event_time"),
    (message(#""android":{"notification":{"vibrate_timings":["1"]}}"#), 400, "vibrate_timings"),
    (message(#""android":{"notification":{"light_settings":{"color":{"red":2}}}}"#), 400, "light_settings.color.red"),
    (message(#""android":{"fcm_options":{"analytics_label":""}}"#), 400, "message.android.fcm_options.analytics_label"),
    (message(#""android_v2":{"remote_notification":{"notification":{"id":"x"}}}"#), 400, "notification.id"),
    (message(#""android_v2":{"background_sync":true}"#), 400, "message.android_v2.background_sync"),
    (message(#""android_v2":{"background_sync":{}},"android":{}"#), 400, "message.android_v2"),
    (message(#""webpush":{"headers":{"TTL":60}}"#), 400, "message.webpush.headers.TTL"),
    (message(#""webpush":{"shiny":1}"#), 400, "message.webpush.shiny"),
    (message(#""webpush":{"fcm_options":{"link":"http://x"}}"#), 400, "message.webpush.fcm_options.link"),
    (message(#""fcm_options":{"shiny":1}"#), 400, "message.fcm_options.shiny"),
    (message(#""apns":{"fcm_options":{"analytics_label":"a b"}}"#), 400, "message.apns.fcm_options.analytics_label"),
    // Apple devices: data alone requires priority 5.
    (message(#""data":{"k":"v"},"apns":{"headers":{"apns-priority":"10"}}"#), 400, "INVALID_ARGUMENT"),
    (
      message(#""apns":{"headers":{"apns-priority":"10"},"payload":{"aps":{"content-available":1}}}"#), 400,
      "INVALID_ARGUMENT"
    ),
    (message(#""apns":{"headers":{"apns-priority":"5"},"payload":{"aps":{"content-available":1}}}"#), 200, ""),
    (message(#""apns":{"headers":{"apns-priority":"10"},"payload":{"aps":{"alert":"hi"}}}"#), 200, ""),
    (message(#""notification":{"body":"hi"},"apns":{"headers":{"apns-priority":"10"}}"#), 200, ""),
    (message(#""android":{"notification":{"body":"hi"}},"apns":{"headers":{"apns-priority":"10"}}"#), 200, ""),
    (message(#""android":null,"apns":null,"fcm_options":null,"data":{"k":"v"}"#), 200, ""),
    (message(#""apns":{"live_activity_token":"t","headers":{"apns-priority":"10"},"payload":{"aps":{}}}"#), 200, ""),
    (message(#""data":{"k":"\#(String(repeating: "x", count: 4095))"}"#), 200, ""),
    (message(#""data":{"k":"\#(String(repeating: "x", count: 4096))"}"#), 400, "too big"),
    (#"{"message":{"topic":"t","data":{"k":"\#(String(repeating: "x", count: 2048))"}}}"#, 400, "too big"),
  ]

  @Test func everyRuleGivesItsAnswer() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      for (body, status, text) in Self.bodies {
        let response = try await Self.send(fixture, token: token, body: body)
        #expect(response.status == status, "\(body.prefix(200))")
        let answer = String(decoding: response.body, as: UTF8.self)
        #expect(answer.contains(text), "\(body.prefix(200)) → \(answer)")
        if status == 200 {
          #expect(try Self.member("name", of: answer)?.hasPrefix("projects/fanfare-simulator/messages/") == true)
        }
      }
      #expect(fixture.simulator.store.counts()[.fcm].accepted == 22)
    }
  }

  @Test func callersAreChecked() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      let body = Self.message("")
      func status(_ response: HTTP2Response) -> String {
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(!text.contains("FcmError") || response.status == 400)
        return "\(response.status)"
      }
      #expect(status(try await Self.send(fixture, token: nil, body: body)) == "401")
      #expect(status(try await Self.send(fixture, token: "Bearer ya29.made-up", body: body)) == "401")
      #expect(
        status(try await Self.send(fixture, token: token, body: body, path: "/v1/projects/other/messages:send"))
          == "403")
      #expect(status(try await Self.send(fixture, token: token, body: body, path: "/v1/elsewhere")) == "404")
      #expect(status(try await Self.send(fixture, token: token, body: body, contentType: nil)) == "400")
      #expect(status(try await Self.send(fixture, token: token, body: body, authority: nil)) == "400")
      #expect(status(try await Self.send(fixture, token: token, body: body)) == "200")
      #expect(try await fixture.admin("POST", "/tokens/expire").status == 204)
      #expect(status(try await Self.send(fixture, token: token, body: body)) == "401")
    }
  }

  @Test func accessTokensExpire() async throws {
    let clock = StandingClock()
    var configuration = SimulatorConfiguration()
    configuration.clock = clock
    configuration.tokenLifetime = .seconds(60)
    try await SimulatorFixture.run(configuration) { fixture in
      let token = try await Self.accessToken(fixture)
      clock.advance(by: .seconds(59))
      #expect(try await Self.send(fixture, token: token, body: Self.message("")).status == 200)
      clock.advance(by: .seconds(1))
      #expect(try await Self.send(fixture, token: token, body: Self.message("")).status == 401)
    }
  }

  @Test func assertionsAreChecked() async throws {
    try await SimulatorFixture.run { fixture in
      let account = fixture.credentials.google
      let other = try SimulatorCredentials.generate().google.privateKeyPEM
      let spoiled: [(String, String)] = [
        (try await Signing.assertion(account) { $0.iss = "somebody@else" }, "invalid_grant"),
        (try await Signing.assertion(account) { $0.aud = "https://example.com/token" }, "invalid_grant"),
        (try await Signing.assertion(account) { $0.exp = $0.iat + 3601 }, "invalid_grant"),
        (
          try await Signing.assertion(account) {
            $0.iat -= 7200
            $0.exp -= 7200
          }, "invalid_grant"
        ),
        (try await Signing.assertion(account) { $0.scope = "https://example.com/scope" }, "invalid_scope"),
        (try await Signing.assertion(account) { $0.scope = nil }, "invalid_scope"),
        (try await Signing.assertion(account, keyID: "another"), "invalid_grant"),
        (try await Signing.assertion(account, key: other), "invalid_grant"),
        ("a.b.c", "invalid_grant"),
        ("", "invalid_request"),
      ]
      for (assertion, code) in spoiled {
        let answer = try await Self.exchange(fixture, assertion: assertion)
        #expect(answer.status == 400)
        #expect(try Self.member("error", of: answer.body) == code)
      }
      let grant = try await Self.exchange(fixture, assertion: Signing.assertion(account), grantType: "password")
      #expect(try Self.member("error", of: grant.body) == "unsupported_grant_type")
      let own = fixture.endpoints.googleTokenURL
      let good = try await Self.exchange(fixture, assertion: Signing.assertion(account) { $0.aud = own })
      #expect(good.status == 200)
      let assertion = try await Signing.assertion(account)
      let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
      let unlabelled = try await fixture.send("POST", own, headers: [("content-type", "text/plain")], body: form)
      #expect(unlabelled.status == 400)
      #expect(try Self.member("token_type", of: good.body) == "Bearer")
      #expect(good.body.contains(#""expires_in":3599"#))
    }
  }

  @Test(arguments: HandlePrefix.table.filter { $0.platform == .fcm })
  func handlesBringTheirFaults(_ entry: HandlePrefix) async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      let device = entry.prefix + "device"
      let body = Self.message("", token: device)
      switch entry.action {
      case .answer(let status, let reason, let retryAfter, _):
        let response = try await Self.send(fixture, token: token, body: body)
        #expect(response.status == status)
        #expect(response.headers["retry-after"] == retryAfter.map(String.init))
        let answer = String(decoding: response.body, as: UTF8.self)
        if let reason {
          #expect(
            answer.contains(#""@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(reason)""#))
          #expect(answer.contains(#""field":"message.token""#) == (status == 400))
        } else {
          #expect(answer.hasPrefix("<!DOCTYPE html>"))
        }
      case .silence:
        // The connection must be open, or the time is over before the message is sent.
        #expect(try await Self.send(fixture, token: token, body: Self.message("")).status == 200)
        await #expect(throws: HTTP2RequestError.self) {
          try await Self.send(fixture, token: token, body: body, timeout: .seconds(1))
        }
      default:
        let error = await #expect(throws: HTTP2RequestError.self) {
          try await Self.send(fixture, token: token, body: body)
        }
        #expect(error?.code == .connectionLost)
      }
      #expect(fixture.simulator.store.received(.fcm, device) == nil)
    }
  }

  @Test func duplicatesAreCountedByThePushIDInData() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      let body = Self.message(#""data":{"pushId":"one"}"#)
      for _ in 0..<2 { #expect(try await Self.send(fixture, token: token, body: body).status == 200) }
      #expect(try await Self.send(fixture, token: token, body: Self.message("")).status == 200)
      #expect(fixture.simulator.store.counts()[.fcm].duplicates == 1)
      #expect(fixture.simulator.store.notifications(.fcm, Self.device).map(\.text).first == body)
    }
  }
}
