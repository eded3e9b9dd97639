import FanfareCore
import HTTPServer
import HTTPTypes
import Support
import Testing

@testable import FrontEnd

/// What each scope permits, on every route, for every audience, and in other hubs.
@Suite(.timeLimit(.minutes(2))) struct ScopeTests {
  private static let send = SendID.random()
  private static let installation = "phone-1"

  /// A complete request for each protected route.
  private static func request(_ route: Route) -> (path: String, body: String?, type: String) {
    let json = "application/json"
    let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
    let device = #"{"platform":"apns","handle":"aa"}"#
    return switch route.pattern {
    case "api/register": ("/api/register", nil, json)
    case "api/register/{id}":
      ("/api/register/\(RegistrationID.random())", route.method == .put ? device : nil, json)
    case "api/registrations": ("/api/registrations", nil, json)
    case "api/registrations/{id}":
      ("/api/registrations/\(RegistrationID.random())", route.method == .put ? device : nil, json)
    case "api/installations/{id}":
      (
        "/api/installations/\(installation)",
        route.method == .put ? device : route.method == .patch ? #"[{"op":"add","path":"/tags/-","value":"x"}]"# : nil,
        route.method == .patch ? "application/json-patch+json" : json
      )
    case "api/notifications": ("/api/notifications?pns=apns&to_tag=bob", #""x""#, json)
    case "api/notifications/secure": ("/api/notifications/secure?to_tag=bob", #""x""#, json)
    case "api/notifications/{id}": ("/api/notifications/\(SecurePayloadID.random())", nil, json)
    case "api/sends": ("/api/sends", route.method == .post ? send : nil, json)
    case "api/tags/{tag}": ("/api/tags/news", nil, json)
    case "api/tombstones": ("/api/tombstones?user=bob", nil, json)
    case "api/sends/batch": ("/api/sends/batch", send, "application/x-ndjson")
    default: ("/" + route.pattern.replacing("{id}", with: "\(Self.send)"), nil, json)
    }
  }

  @Test func everyRouteRequiresItsScopesInItsHubAndUnknownHubsLookLikeWrongCredentials() async throws {
    let beta = try #require(HubName("beta"))
    try await Harness.run({ setup in
      setup.hubs = [
        FrontEndHub(name: .default, authenticators: [Harness.authenticator]),
        // Nobody has scopes in this hub.
        FrontEndHub(
          name: beta, authenticators: [try DemoAuthenticator(boundTo: "127.0.0.1", policy: ScopePolicy(everyone: []))]),
      ]
    }) { app in
      for route in app.frontEnd.routes.ofHubs where route.needsCaller {
        let (path, body, type) = Self.request(route)
        let method = try #require(Harness.Method(rawValue: route.method.rawValue))
        for scopes in Scope.allCases.map({ [$0] }) + [[], Scope.allCases] {
          let user = ScopedDemo.user(scopes)
          let reply = try await app.request(method, path, as: user, body: body, type: type)
          let isAdmitted = route.scopes.isEmpty || !Set(route.scopes).isDisjoint(with: scopes)
          if isAdmitted {
            #expect(reply.status != 401, "\(method) \(path) as \(user)")
            // Routes for sends check the audience after the scopes of the route.
            let mayFail = route.pattern == "api/sends" && !scopes.contains(.sendUser)
            #expect(reply.status != 403 || mayFail, "\(method) \(path) as \(user)")
          } else {
            reply.expectProblem(403, "forbidden", naming: try #require(route.scopes.first).rawValue)
          }
          let other = try await app.request(method, "/hubs/beta\(path)", as: user, body: body, type: type)
          #expect((other.status == 403) == !route.scopes.isEmpty, "\(method) \(path) as \(user)")
        }
        let wrong = try await app.request(
          method, path, as: nil, body: body, type: type, headers: [("Authorization", Harness.basic("opal", "x"))])
        wrong.expectProblem(401, "unauthenticated")
        for hub in ["gamma", "Beta", "%2e%2e"] {
          let reply = try await app.request(method, "/hubs/\(hub)\(path)", as: "opal", body: body, type: type)
          reply.expectProblem(401, "unauthenticated")
          #expect(reply.detail == wrong.detail)
          #expect(reply["WWW-Authenticate"] == wrong["WWW-Authenticate"])
        }
      }
    }
  }

  @Test func onlyTheseRoutesNeedNoCredentials() async throws {
    try await Harness.run { app in
      let ofHubs = app.frontEnd.routes.ofHubs
      #expect(ofHubs.filter { !$0.needsCaller }.map(\.pattern) == ["api/session"])
      let names = ofHubs.flatMap { route in
        ["", "/hubs/{hub}"].map { "\(route.method.rawValue) \($0)/\(route.pattern)" }
      }
      #expect(
        app.frontEnd.routes.names
          == Set(names).union(["GET /openapi.json", "GET /docs", "GET /docs/page.css", "GET /docs/page.js"]))
    }
  }

  @Test func everyAudienceAndContentRequiresItsScope() async throws {
    let audiences: [(to: String, scope: Scope)] = [
      (#"{"user":"bob"}"#, .sendUser), (#"{"user":"a && b"}"#, .sendUser), (#"{"tag":"username:bob"}"#, .sendUser),
      (#"{"tag":"news"}"#, .sendTag), (#"{"tag":"installation:phone"}"#, .sendTag), (#"{"tags":["a","b"]}"#, .sendTag),
      (#"{"tags":["username:a","username:b"]}"#, .sendTag),
      (#"{"expression":"news && !muted"}"#, .sendBroadcast), (#"{"expression":"news"}"#, .sendBroadcast),
      (#"{"everyone":true}"#, .sendBroadcast), (#"{"registration":"\#(RegistrationID.random())"}"#, .sendDevice),
      (#"{"device":{"platform":"apns","handle":"aa"}}"#, .sendDevice),
    ]
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for (to, scope) in audiences {
        for isNative in [false, true] {
          let content = isNative ? #""native":{"apns":{"aps":{"alert":"x"}}}"# : #""message":{"body":"x"}"#
          let body = #"{"to":\#(to),\#(content)}"#
          for own in Scope.sending {
            for further in [[], [Scope.sendNative]] {
              let user = ScopedDemo.user([own] + further)
              let missing: Scope? = own != scope ? scope : isNative && further.isEmpty ? .sendNative : nil
              let reply = try await app.request(.post, "/api/sends", as: user, body: body)
              let batch = try await app.request(
                .post, "/api/sends/batch", as: user, body: body, type: "application/x-ndjson")
              #expect(batch.status == 200)
              if let missing {
                reply.expectProblem(403, "forbidden", naming: missing.rawValue)
                #expect(try batch.json["error"]?["code"] == "forbidden", "\(body) as \(user)")
              } else {
                #expect(reply.status == 202, "\(body) as \(user)")
                #expect(try batch.json["id"] != nil)
              }
            }
          }
        }
      }
      // Of each audience: a message with and without the scope for native payloads, and a native payload with it, each
      // posted alone and in a batch.
      #expect(sink.records.count == audiences.count * 6)
    }
  }

  @Test func readAllSeesAndOperateSteersAndRemovesWhatBelongsToOthers() async throws {
    let report = SendReport(
      id: Self.send, hub: .default, state: .accepted, sender: "alice", audience: "news", isBroadcast: true,
      acceptedAt: UnixTime(milliseconds: 0), settledAt: nil, counts: [:], devices: nil)
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report]) }) { app in
      func register(_ handle: String) async throws -> String {
        let id = try await app.issue(handle: handle)
        #expect(try await app.complete(id, handle: handle).status == 200)
        return id
      }
      let device = try await register("aa01")
      let (reader, operating) = (ScopedDemo.user([.readAll]), ScopedDemo.user([.operate]))
      for path in ["/api/sends/\(Self.send)", "/api/registrations/\(device)"] {
        #expect(try await app.request(.get, path, as: reader).status == 200)
      }
      try await app.request(.get, "/api/sends/\(Self.send)", as: operating).expectProblem(404, "notFound")
      try await app.request(.get, "/api/registrations/\(device)", as: operating).expectProblem(403, "forbidden")
      for list in ["/api/sends", "/api/registrations"] {
        try await app.request(.get, "\(list)?user=alice", as: "bob")
          .expectProblem(403, "forbidden", naming: Scope.readAll.rawValue)
        try await app.request(.get, "\(list)?user=nobody", as: "bob")
          .expectProblem(403, "forbidden", naming: Scope.readAll.rawValue)
        #expect(try await app.request(.get, "\(list)?user=bob", as: "bob").status == 200)
        #expect(try await app.request(.get, "\(list)?user=alice", as: reader).status == 200)
      }
      for verb in ["pause", "resume", "cancel"] {
        let path = "/api/sends/\(Self.send)/\(verb)"
        try await app.request(.post, path, as: "bob").expectProblem(404, "notFound")
        try await app.request(.post, path, as: reader).expectProblem(403, "forbidden", naming: "operate")
        #expect(try await app.request(.post, path, as: operating).status == 202)
      }
      for path in ["/api/registrations/\(device)"] {
        try await app.request(.delete, path, as: "bob").expectProblem(404, "notFound")
        try await app.request(.delete, path, as: ScopedDemo.user([.device, .readAll]))
          .expectProblem(403, "forbidden", naming: "operate")
        #expect(try await app.request(.delete, path, as: operating).status == 204)
      }
    }
  }

  @Test func standardScopesServeTheTutorialsApps() async throws {
    let demo = try DemoAuthenticator(boundTo: "127.0.0.1")
    try await Harness.run({ $0.hubs = [FrontEndHub(name: .default, authenticators: [demo])] }) { app in
      let id = try await app.issue(handle: "aa01")
      #expect(try await app.complete(id, handle: "aa01").status == 200)
      for path in ["/api/notifications?pns=apns&to_tag=bob", "/api/notifications/secure?to_tag=bob"] {
        #expect(try await app.request(.post, path, body: #""x""#).status == 200)
      }
      #expect(try await app.request(.delete, "/api/register/\(id)").status == 200)
      try await app.request(.post, "/api/sends", body: #"{"to":{"everyone":true},"message":{"body":"b"}}"#)
        .expectProblem(403, "forbidden", naming: "send:broadcast")
    }
  }
}

extension RouteTable<Route> {
  /// `GET /api/sends/{id}`.
  var names: Set<String> { Set(all.map { "\($0.method.rawValue) \($0.pattern)" }) }

  fileprivate var ofHubs: [Route] { all.filter { $0.pattern.hasPrefix("/hubs/") }.map(\.route) }
}

extension Route {
  fileprivate var needsCaller: Bool { if case .admitted = handler { true } else { false } }
}
