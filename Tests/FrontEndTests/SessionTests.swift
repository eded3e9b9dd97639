import FanfareCore
import HTTPServer
import Operations
import Support
import Testing

@testable import FrontEnd

/// Sessions of browsers: the cookie, the token of changes, their end, and what they may do.
@Suite(.timeLimit(.minutes(2))) struct SessionTests {
  /// A session as a browser keeps it.
  private struct Session {
    let cookie: String
    let token: String

    var headers: [(String, String)] { [("Cookie", "theme=dark; \(cookie)")] }
    var headersOfChange: [(String, String)] { headers + [("X-CSRF-Token", token)] }
  }

  private static func logIn(_ app: Harness, as user: String = "opal", root: String = "") async throws -> Session {
    let reply = try await app.request(
      .post, root + "/api/session", as: nil, body: #"{"user":"\#(user)","password":"\#(user)"}"#)
    #expect(reply.status == 201)
    let field = try #require(reply["Set-Cookie"])
    return Session(
      cookie: String(field.prefix { $0 != ";" }), token: try #require(try reply.json["csrfToken"]?.text))
  }

  @Test func theCookieIsOutOfReachOfScriptsAndOtherSites() async throws {
    try await Harness.run { app in
      let reply = try await app.request(.post, "/api/session", as: nil, body: #"{"user":"opal","password":"opal"}"#)
      let attributes = try #require(reply["Set-Cookie"]).split(separator: "; ").dropFirst()
      #expect(attributes == ["Path=/", "HttpOnly", "SameSite=Strict"])
      #expect(reply["Set-Cookie"]?.contains("opal") == false)
      #expect(reply["Cache-Control"] == "no-store")
    }
    try await Harness.run({ $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"])) }) { app in
      let reply = try await app.request(.post, "/api/session", as: nil, body: #"{"user":"opal","password":"opal"}"#)
      #expect(reply["Set-Cookie"]?.hasSuffix("; Secure") == true)
    }
  }

  @Test func aSessionIsOneMoreKindOfCredentials() async throws {
    try await Harness.run { app in
      let session = try await Self.logIn(app)
      let sends = try await app.request(.get, "/api/sends", as: nil, headers: session.headers)
      #expect(sends.status == 200)
      let posted = try await app.request(
        .post, "/api/sends", as: nil, body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#,
        headers: session.headersOfChange)
      #expect(posted.status == 202)
      let own = try await app.request(.get, "/api/session", as: nil, headers: session.headers)
      #expect(try own.json["csrfToken"]?.text == session.token && own.json["user"]?.text == "opal")
      let ended = try await app.request(.delete, "/api/session", as: nil, headers: session.headersOfChange)
      #expect(ended.status == 204 && ended["Set-Cookie"]?.contains("Max-Age=0") == true)
    }
  }

  @Test func linksOfOtherSitesAreFollowedButTheirFormsAreRefused() async throws {
    try await Harness.run { app in
      let session = try await Self.logIn(app)
      for site in ["same-site", "cross-site"] {
        let foreign = [("Sec-Fetch-Site", site)]
        let page = try await app.request(.get, "/api/sends", as: nil, headers: session.headers + foreign)
        #expect(page.status == 200)
        let form = try await app.request(
          .post, "/api/sends", as: nil, body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#,
          headers: session.headersOfChange + foreign)
        form.expectProblem(403, "forbidden")
      }
    }
  }

  @Test func anOpenPageDoesNotKeepItsSessionAlive() async throws {
    try await Harness.run { app in
      let session = try await Self.logIn(app)
      app.clock.advance(by: .seconds(120))
      let pulse = try await app.request(.get, "/api/pulse", as: nil, headers: session.headers)
      #expect(pulse["Set-Cookie"] == nil)
      #expect(try await app.request(.get, "/api/sends", as: nil, headers: session.headers)["Set-Cookie"] != nil)
    }
  }

  @Test func changesNeedTheTokenOfTheirSession() async throws {
    try await Harness.run { app in
      let (session, other) = (try await Self.logIn(app), try await Self.logIn(app))
      let body = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      for token in [nil, "", "-", other.token, String(session.token.dropLast())] {
        let headers = session.headers + (token.map { [("X-CSRF-Token", $0)] } ?? [])
        let reply = try await app.request(.post, "/api/sends", as: nil, body: body, headers: headers)
        reply.expectProblem(403, "forbidden", naming: "X-CSRF-Token")
      }
      // A page of another site: the browser would not even send the cookie.
      let foreign = try await app.request(
        .post, "/api/sends", as: nil, body: body,
        headers: session.headersOfChange + [("Origin", "https://evil.example")])
      foreign.expectProblem(403, "forbidden")
    }
  }

  @Test func aSessionEndsWithoutUseAndAfterTwelveHoursOfUse() async throws {
    try await Harness.run { app in
      var session = try await Self.logIn(app)
      app.clock.advance(by: .seconds(1801))
      let late = try await app.request(
        .get, "/api/session", as: nil, headers: session.headers + [("X-CSRF-Token", "-")])
      late.expectProblem(401, "unauthenticated")
      // No challenge for which a browser opens a dialogue.
      #expect(late["WWW-Authenticate"] == #"Session realm="fanfare""#)
      session = try await Self.logIn(app)
      var hours = 0.0
      while hours < 13 {
        let reply = try await app.request(.get, "/api/session", as: nil, headers: session.headers)
        guard reply.status == 200 else { break }
        if let field = reply["Set-Cookie"] {
          session = Session(cookie: String(field.prefix { $0 != ";" }), token: session.token)
        }
        app.clock.advance(by: .seconds(1500))
        hours += 1500 / 3600
      }
      #expect((11.9...12.5).contains(hours))
    }
  }

  @Test func onlyThoseWhoMaySeeOrOperateLogIn() async throws {
    try await Harness.run { app in
      for (scope, status) in [(Scope.readAll, 201), (.operate, 201), (.device, 403), (.sendUser, 403)] {
        let user = ScopedDemo.user([scope])
        let reply = try await app.request(
          .post, "/api/session", as: nil, body: #"{"user":"\#(user)","password":"\#(user)"}"#)
        #expect(reply.status == status, "\(scope)")
        if status == 403 { reply.expectProblem(403, "forbidden", naming: "operate, read:all") }
      }
      let seeing = try await Self.logIn(app, as: ScopedDemo.user([.readAll]))
      let steering = try await app.request(
        .delete, "/api/registrations/\(RegistrationID.random())", as: nil, headers: seeing.headersOfChange)
      steering.expectProblem(403, "forbidden")
      for body in [
        #"{"user":"opal"}"#, #"{"password":"x"}"#, #"{"user":"opal","password":"x","key":"y"}"#,
        #"{"key":"not a key"}"#, #"{"users":"opal"}"#, #"[]"#, "",
      ] {
        let reply = try await app.request(.post, "/api/session", as: nil, body: body)
        #expect(reply.status == 400, "\(body)")
      }
    }
  }

  @Test func logInsTakeFromTheBudgetOfFailures() async throws {
    try await Harness.run({
      $0.configuration.logins.perUser = 3
      $0.configuration.logins.perAddress = 3
    }) { app in
      var statuses: [Int] = []
      for _ in 0..<5 {
        statuses.append(
          try await app.request(.post, "/api/session", as: nil, body: #"{"user":"opal","password":"no"}"#).status)
      }
      #expect(statuses == [401, 401, 401, 429, 429])
    }
  }

  @Test func aSessionOfOneHubIsNoneInAnother() async throws {
    let beta = try #require(HubName("beta"))
    try await Harness.run({ setup in
      setup.hubs = [
        FrontEndHub(name: .default, authenticators: [Harness.authenticator]),
        FrontEndHub(name: beta, authenticators: [Harness.authenticator]),
      ]
    }) { app in
      let session = try await Self.logIn(app, root: "/hubs/beta")
      #expect(try await app.request(.get, "/hubs/beta/api/sends", as: nil, headers: session.headers).status == 200)
      try await app.request(.get, "/api/sends", as: nil, headers: session.headers).expectProblem(401, "unauthenticated")
    }
  }

  @Test func aCookieThatWasChangedOrSealedWithAnotherKeyIsNoSession() throws {
    let clock = ManualClock()
    let key = SessionKey(secret: Array(repeating: 7, count: 32))
    let credentials = Credentials.basic(try #require(BasicCredentials(user: "opal", password: "s3cret")))
    let session = key.open(credentials, hub: .default, at: clock.now())
    let text = try key.seal(session, at: clock.now())
    func opened(with secret: UInt8) -> Credentials? {
      SessionKey(secret: Array(repeating: secret, count: 32)).unseal(text, at: clock.now())?.credentials
    }
    #expect(opened(with: 7) == credentials)
    #expect(opened(with: 8) == nil)
    #expect(SessionKey().unseal(text, at: clock.now()) == nil)
    for index in stride(from: 0, to: text.count, by: 7) {
      var changed = Array(text)
      changed[index] = changed[index] == "A" ? "B" : "A"
      #expect(key.unseal(String(changed), at: clock.now()) == nil)
    }
    for text in ["", "=", "é", String(repeating: "A", count: 5000)] {
      #expect(key.unseal(text, at: clock.now()) == nil)
    }
    #expect(key.accepts(key.token(of: session), for: session))
  }
}
