import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOHTTP1
import Testing

@testable import PushSimulator

@Suite(.timeLimit(.minutes(2)))
struct WNSTests {
  static let toast =
    #"<toast><visual><binding template="ToastText01"><text id="1">hi &amp; bye</text></binding></visual></toast>"#

  static func liveForm(
    _ app: SimulatorCredentials.WindowsApp, scope: String = "notify.windows.com", secret: String? = nil
  )
    -> String
  {
    let id = app.packageSID.replacing(":", with: "%3a").replacing("/", with: "%2f")
    return "grant_type=client_credentials&client_id=\(id)&client_secret=\(secret ?? app.packageSecret)&scope=\(scope)"
  }

  static func entraForm(_ app: SimulatorCredentials.WindowsApp, secret: String? = nil) -> String {
    "grant_type=client_credentials&client_id=\(app.applicationID)&client_secret=\(secret ?? app.applicationSecret)"
      + "&scope=https%3A%2F%2Fwns.windows.com%2F.default"
  }

  static func token(_ fixture: SimulatorFixture, url: String, form: String) async throws -> SimulatorFixture.Answer {
    try await fixture.send("POST", url, headers: [("content-type", "application/x-www-form-urlencoded")], body: form)
  }

  static func accessToken(_ fixture: SimulatorFixture) async throws -> String {
    let answer = try await token(
      fixture, url: fixture.endpoints.liveTokenURL, form: liveForm(fixture.credentials.windows))
    return "Bearer " + (try FCMTests.member("access_token", of: answer.body) ?? "")
  }

  static func push(
    _ fixture: SimulatorFixture, token: String?, channel: String = "chan%2fnel%3d1", fields: [String: String?] = [:],
    body: String = toast,
    method: String = "POST", timeout: TimeAmount = .seconds(30)
  ) async throws -> SimulatorFixture.Answer {
    var headers: [String: String] = [
      "content-type": "text/xml", "x-wns-type": "wns/toast", "host": "cloud.notify.windows.com",
    ]
    if let token { headers["authorization"] = token }
    for (name, value) in fields { headers[name] = value }
    return try await fixture.send(
      method, fixture.endpoints.wnsURL + "/?token=" + channel, headers: headers.map { ($0.key, $0.value) },
      body: body,
      timeout: timeout)
  }

  @Test func tokensAreIssuedForTheRightSecret() async throws {
    try await SimulatorFixture.run { fixture in
      let app = fixture.credentials.windows
      let live = fixture.endpoints.liveTokenURL
      let entra = fixture.endpoints.entraTokenURL(tenant: app.tenantID)
      let first = try await Self.token(fixture, url: live, form: Self.liveForm(app))
      #expect(first.status == 200)
      #expect(first.body.contains(#""token_type":"bearer","expires_in":86400"#))
      let second = try await Self.token(fixture, url: entra, form: Self.entraForm(app))
      #expect(second.status == 200)
      #expect(second.body.contains(#""token_type":"Bearer","expires_in":"86399""#))
      let refused: [(String, String, Int, String)] = [
        (live, Self.liveForm(app, secret: "wrong"), 400, "invalid_client"),
        (live, Self.liveForm(app, scope: "elsewhere"), 400, "invalid_scope"),
        (live, "grant_type=password", 400, "unsupported_grant_type"),
        (live, Self.entraForm(app), 400, "invalid_client"),
        (entra, Self.entraForm(app, secret: "wrong"), 401, "invalid_client"),
        (fixture.endpoints.entraTokenURL(tenant: "other"), Self.entraForm(app), 400, "invalid_request"),
      ]
      for (url, form, status, code) in refused {
        let answer = try await Self.token(fixture, url: url, form: form)
        #expect(answer.status == status)
        #expect(try FCMTests.member("error", of: answer.body) == code)
      }
      for (url, form) in [(live, Self.liveForm(app)), (entra, Self.entraForm(app))] {
        #expect(
          try await fixture.send("POST", url, headers: [("content-type", "application/json")], body: form).status
            == 400)
      }
      #expect(fixture.simulator.store.counts()[.microsoftToken].accepted == 2)
    }
  }

  static let cases: [(fields: [String: String?], body: String, status: Int)] = [
    ([:], toast, 200),
    (["x-wns-type": nil], toast, 400),
    (["x-wns-type": "wns/loud"], toast, 400),
    (["x-wns-type": "wns/tile"], toast, 400),
    (["x-wns-type": "wns/badge"], #"<badge value="7"/>"#, 200),
    (["x-wns-type": "wns/raw"], "anything", 400),
    (["x-wns-type": "wns/raw", "content-type": "application/octet-stream"], "anything", 200),
    (["content-type": nil], toast, 400),
    (["content-type": "application/octet-stream"], toast, 400),
    (["content-type": "text/xml; charset=utf-8"], toast, 200),
    (["x-wns-ttl": "60", "x-wns-tag": "abc123", "x-wns-priority": "1", "x-wns-cache-policy": "cache"], toast, 200),
    (["x-wns-ttl": "soon"], toast, 400),
    (["x-wns-tag": "with-dash"], toast, 400),
    (["x-wns-tag": "12345678901234567"], toast, 400),
    (["x-wns-priority": "5"], toast, 400),
    (["x-wns-cache-policy": "maybe"], toast, 400),
    (["x-wns-requestforstatus": "yes"], toast, 400),
    ([:], "", 400),
    ([:], "<toast>", 400),
    ([:], "<toast>&</toast>", 400),
    ([:], "<toast>" + String(repeating: "x", count: 4985) + "</toast>", 200),
    ([:], "<toast>" + String(repeating: "x", count: 4986) + "</toast>", 413),
  ]

  @Test func everyRuleGivesItsAnswer() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      for one in Self.cases {
        let answer = try await Self.push(fixture, token: token, fields: one.fields, body: one.body)
        #expect(answer.status == one.status, "\(one.fields) \(one.body.prefix(40))")
        #expect(answer.headers["x-wns-status"] == (one.status == 200 ? "received" : nil))
        #expect((answer.headers["x-wns-error-description"] == nil) == (one.status == 200))
        #expect(answer.headers["x-wns-msg-id"]?.count == 16)
      }
      #expect(try await Self.push(fixture, token: nil).status == 401)
      #expect(try await Self.push(fixture, token: "Bearer made-up").status == 401)
      #expect(try await Self.push(fixture, token: token, method: "PUT").status == 405)
      let nowhere = try await fixture.send(
        "POST", fixture.endpoints.wnsURL + "/", headers: [("authorization", token)], body: Self.toast)
      #expect(nowhere.status == 404)
      let status = try await Self.push(
        fixture, token: token, fields: ["x-wns-requestforstatus": "true", "ms-cv": "abc.0"])
      #expect(status.headers["x-wns-deviceconnectionstatus"] == "connected")
      #expect(status.headers["ms-cv"] == "abc.0")
      let repeated = try await Self.push(fixture, token: token, fields: ["x-wns-ttl": "60", "X-WNS-TTL": "59"])
      #expect(repeated.status == 400)
      #expect(repeated.headers["x-wns-error-description"] == "The x-wns-ttl header occurs twice.")
      fixture.simulator.expireTokens()
      #expect(try await Self.push(fixture, token: token).status == 401)
    }
  }

  @Test func chunkedBodiesAreRefused() async throws {
    try await SimulatorFixture.run { fixture in
      var request = HTTPClientRequest(url: fixture.endpoints.wnsURL + "/?token=abc")
      request.method = .POST
      request.headers = [
        "authorization": try await Self.accessToken(fixture), "content-type": "text/xml", "x-wns-type": "wns/toast",
      ]
      let pieces = AsyncStream<ByteBuffer> { continuation in
        continuation.yield(ByteBuffer(string: Self.toast))
        continuation.finish()
      }
      request.body = .stream(pieces, length: .unknown)
      let response = try await fixture.http.execute(request, timeout: .seconds(30))
      #expect(response.status.code == 400)
      #expect(response.headers["x-wns-error-description"].first?.contains("Chunked") == true)
    }
  }

  @Test(arguments: HandlePrefix.table.filter { $0.platform == .wns })
  func handlesBringTheirFaults(_ entry: HandlePrefix) async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      let channel = entry.prefix + "-1"
      switch entry.action {
      case .answer(let status, let reason, let retryAfter, _):
        let answer = try await Self.push(fixture, token: token, channel: channel)
        #expect(answer.status == status)
        #expect(answer.headers["retry-after"] == retryAfter.map(String.init))
        #expect(answer.headers["x-wns-status"] == (status == 200 ? reason : nil))
      case .silence:
        await #expect(throws: HTTPClientError.deadlineExceeded) {
          try await Self.push(fixture, token: token, channel: channel, timeout: .seconds(1))
        }
      default:
        await #expect(throws: (any Error).self) { try await Self.push(fixture, token: token, channel: channel) }
      }
      #expect(fixture.simulator.store.received(.wns, channel) == nil)
    }
  }

  @Test func channelIsKnownByItsURI() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Self.accessToken(fixture)
      #expect(try await Self.push(fixture, token: token, fields: ["ms-cv": "one.0"]).status == 200)
      #expect(try await Self.push(fixture, token: token, fields: ["ms-cv": "one.1"]).status == 200)
      let uri = "https://cloud.notify.windows.com/?token=chan%2fnel%3d1"
      let store = fixture.simulator.store
      #expect(store.notifications(.wns, uri).map(\.text) == [Self.toast, Self.toast])
      #expect(store.received(.wns, "chan/nel=1") == 2)
      #expect(store.counts()[.wns].duplicates == 1)
      let answer = try await fixture.admin("GET", "/devices/wns/chan%2Fnel%3D1")
      #expect(answer.status == 200)
      #expect(answer.body.contains(#""payload":"<toast>"#))
      let byURI = try await fixture.admin(
        "GET", "/devices/wns/https%3A%2F%2Fcloud.notify.windows.com%2F%3Ftoken%3Dchan%252fnel%253d1")
      #expect(byURI.body == answer.body)
    }
  }
}

@Suite struct XMLTextTests {
  @Test(arguments: [
    "<toast/>", "<toast></toast>", "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<toast>x</toast>\n",
    "<!-- a --><toast a='1' b=\"&lt;&#10;&#x1F3BA;\"><b/>text<![CDATA[<&]]><!-- c --></toast>",
    "\u{FEFF}<toast >ü🎺</toast >",
  ])
  func wellFormedXMLIsAccepted(_ text: String) {
    #expect(XMLText.rootElement(of: Array(text.utf8)) == "toast")
  }

  @Test(arguments: [
    "", "toast", "<toast>", "<toast></tile>", "<toast/><toast/>", "<toast>&</toast>", "<toast>&nbsp;</toast>",
    "<toast a=1/>",
    "<toast a='1' a='2'/>", "<toast a='<'/>", "<toast>a]]>b</toast>", "<toast a='1'b='2'/>", "<toast>\u{1}</toast>",
    "<!DOCTYPE toast><toast/>", "<toast><!-- </toast>", "<toast>&#0;</toast>", "<toast>&#xFFFF;</toast>", "x<toast/>",
    "<toast/>x",
    "< toast/>", "<1/>",
  ])
  func malformedXMLIsRefused(_ text: String) {
    #expect(XMLText.rootElement(of: Array(text.utf8)) == nil)
  }

  @Test func textThatIsNotUTF8IsRefused() {
    #expect(XMLText.rootElement(of: Array("<toast>".utf8) + [0xFF] + Array("</toast>".utf8)) == nil)
  }
}
