import FanfareCore
import Operations
import Registry
import Support
import Testing

@testable import FrontEnd

/// Templates of hubs over HTTP, and sends that name them.
@Suite(.timeLimit(.minutes(2))) struct HubTemplateTests {
  private static let path = "/api/templates/goal"

  private static func body(_ german: String = "{$(team) + ' trifft'}") -> String {
    #"""
    {"defaultLocale":"en","variants":{"en":{"message":{"title":"$(team)"}},
    "DE_at":{"message":{"title":"$(team)","body":"\#(german)"},"native":{"wns":"<toast a=\"$(score)\"/>"}}}}
    """#
  }

  private func put(_ app: Harness, _ body: String = Self.body(), _ path: String = Self.path) async throws -> Reply {
    try await app.request(.put, path, as: "opal", body: body)
  }

  @Test func templateIsStoredReadListedAndRemoved() async throws {
    try await Harness.run { app in
      let start = app.clock.now()
      let head: [String: JSON] = [
        "name": "goal", "version": 1, "createdAt": .string("\(start)"), "defaultLocale": "en",
      ]
      let whole = JSON.object(
        head.merging([
          "variants": [
            "en": ["message": ["title": "$(team)"]],
            "de-at": [
              "message": ["title": "$(team)", "body": "{$(team) + ' trifft'}"],
              "native": ["wns": #"<toast a="$(score)"/>"#],
            ],
          ]
        ]) { $1 })
      // The same texts make no new version.
      for _ in 1...2 {
        let reply = try await put(app)
        #expect(reply.status == 200)
        #expect(try reply.json == whole)
      }
      let read = try await app.request(.get, Self.path, as: "opal")
      #expect(try read.json == whole)
      #expect(read["Cache-Control"] == "no-store")
      #expect(try await put(app, Self.body("Tor")).json["version"] == 2)
      #expect(try await app.request(.get, Self.path, as: "opal").json["version"] == 2)
      #expect(try await app.request(.get, Self.path + "?version=1", as: "opal").json == whole)
      try await app.request(.get, Self.path + "?version=3", as: "opal").expectProblem(404, "notFound")
      for version in ["0", "x", "-1"] {
        try await app.request(.get, Self.path + "?version=\(version)", as: "opal")
          .expectProblem(400, "invalidParameter", naming: "version")
      }
      for name in ["a", "z"] { #expect(try await put(app, Self.body(), "/api/templates/\(name)").status == 200) }
      var (names, cursor): ([String], String?) = ([], "")
      while let position = cursor {
        let page = try await app.request(
          .get, "/api/templates?limit=2" + (position.isEmpty ? "" : "&cursor=\(position)"), as: "opal")
        names += try page.json["templates"]?.elements.compactMap { $0["name"]?.text } ?? []
        cursor = try page.json["next"]?.text
      }
      #expect(names == ["a", "goal", "z"])
      let first = try await app.request(.get, "/api/templates?limit=1&cursor=a", as: "opal").json["templates"]
      #expect(
        first == [.object(head.merging(["version": 2, "locales": ["de-at", "en"]]) { $1 })])

      #expect(try await app.request(.delete, Self.path, as: "opal").status == 204)
      try await app.request(.delete, Self.path, as: "opal").expectProblem(404, "notFound")
      try await app.request(.get, Self.path, as: "opal").expectProblem(404, "notFound")
      #expect(try await app.request(.get, Self.path + "?version=2", as: "opal").status == 200)
    }
  }

  @Test func errorNamesTheMemberAndTheCharacter() async throws {
    try await Harness.run { app in
      for (variants, name) in [
        (#"{"en":{"message":{"title":"$(team"}}}"#, "variants.en.message.title, character 7 must"),
        (#"{"en":{"message":{"data":{"k":"{'x"}}}}"#, "variants.en.message.data.k, character"),
        (##"{"en":{"native":{"apns":{"aps":{"alert":"#(n, 3)"}}}}}"##, "variants.en.native.apns: aps.alert, character"),
        (#"{"en":{"native":{"wns":"<a"}}}"#, "variants.en.native.wns"),
        (#"{"en":{"message":{"title":"a","colour":"b"}}}"#, "variants.en.message.colour is not a known member"),
        (#"{"en":{"template":{}}}"#, "variants.en.template is not a known member"),
        (#"{"en":{}}"#, "variants.en must have a message"),
        (#"{"e":{"message":{"title":"a"}}}"#, "variants.e must be a language tag"),
        (#"{"en":{"message":{"title":"a"}},"EN":{"message":{"title":"a"}}}"#, "variants.EN must be given once"),
        (#"{"de":{"message":{"title":"a"}}}"#, "defaultLocale must be one of the variants"),
      ] {
        try await put(app, #"{"defaultLocale":"en","variants":\#(variants)}"#)
          .expectProblem(400, "invalidField", naming: name)
      }
      for (body, name) in [
        (#"{"variants":{"en":{"message":{"title":"a"}}}}"#, "defaultLocale is missing"),
        (#"{"defaultLocale":"en"}"#, "variants is missing"),
        (#"{"defaultLocale":"en","variants":{},"x":1}"#, "x is not a known member"),
      ] { try await put(app, body).expectProblem(400, "invalidField", naming: name) }
      let many = (0...100).map { #""x\#($0 / 10)\#($0 % 10)a":{"message":{"title":"a"}}"# }
      try await put(app, #"{"defaultLocale":"en","variants":{\#(many.joined(separator: ","))}}"#)
        .expectProblem(400, "invalidField")
      for name in ["a%20b", "%24", String(repeating: "x", count: 121)] {
        try await put(app, Self.body(), "/api/templates/\(name)").expectProblem(400, "invalidParameter")
      }
      #expect(try await app.request(.get, "/api/templates", as: "opal").json["templates"] == [])
    }
  }

  @Test func sendGetsTheNewestVersionOrTheOneThatItNames() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      func send(_ template: String) async throws -> Reply {
        try await app.request(
          .post, "/api/sends", body: #"{"to":{"tag":"news"},"template":\#(template)}"#)
      }
      func last() throws -> TemplateContent? { try sink.sends().last?.content.template }
      #expect(try await send(#"{"name":"goal","properties":{"Team":"Rapid"}}"#).status == 202)
      #expect(try last() == TemplateContent(name: "goal", properties: ["team": "Rapid"]))
      #expect(try await put(app).status == 200)
      // A change through this front end counts at once.
      #expect(try await send(#"{"name":"goal"}"#).status == 202)
      #expect(try last() == TemplateContent(name: "goal", version: 1))
      #expect(try await put(app, Self.body("Tor")).status == 200)
      #expect(try await send(#"{"name":"goal"}"#).status == 202)
      #expect(try last() == TemplateContent(name: "goal", version: 2))
      #expect(try await send(#"{"name":"goal","version":1}"#).status == 202)
      #expect(try last() == TemplateContent(name: "goal", version: 1))
      for template in [#"{"name":"goal","version":3}"#, #"{"name":"a b","version":1}"#] {
        try await send(template).expectProblem(422, "impossible", naming: "template.version")
      }
      try await send(#"{"version":1}"#).expectProblem(400, "invalidField", naming: "template.version")
      try await send(#"{"name":"goal","properties":{"a b":"c"}}"#).expectProblem(
        400, "invalidField", naming: "template.properties.a b")
      for member in ["message", "native"] {
        try await app.request(
          .post, "/api/sends",
          body: #"{"to":{"tag":"news"},"template":{},"\#(member)":{"wns":"x"}}"#
            .replacing(#""message":{"wns":"x"}"#, with: #""message":{"title":"x"}"#)
        ).expectProblem(400, "invalidField", naming: "\(member) must not be given with template")
      }
      #expect(try await send("{}").status == 202)
      #expect(try last() == TemplateContent())

      #expect(try await app.request(.delete, Self.path, as: "opal").status == 204)
      #expect(try await send(#"{"name":"goal"}"#).status == 202)
      #expect(try last() == TemplateContent(name: "goal"))
      // Its versions remain.
      #expect(try await send(#"{"name":"goal","version":2}"#).status == 202)
    }
  }

  @Test func linesOfABatchNameTemplates() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      #expect(try await put(app).status == 200)
      let lines = ["", #","version":1"#, #","version":9"#].map {
        #"{"to":{"user":"bob"},"template":{"name":"goal"\#($0)}}"#
      }
      let reply = try await app.request(
        .post, "/api/sends/batch", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      let answers = try reply.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0) }
      #expect(answers.map { $0["id"] != nil } == [true, true, false])
      #expect(answers[2]["error"]?["code"] == "impossible")
      #expect(try sink.sends().map(\.content.template) == [1, 1].map { TemplateContent(name: "goal", version: $0) })
    }
  }

  /// A change through another front end counts after a second; until then a direct request needs no look-up.
  @Test func newestVersionIsRememberedForASecond() async throws {
    let temporary = try TemporaryRegistry()
    let (registry, clock) = (temporary.registry, ManualClock())
    let templates = HubTemplates(store: registry, clock: clock)
    let content = TemplateContent(name: "goal", properties: ["a": "b"])
    func store(_ title: String) async throws {
      _ = try await registry.store(
        template: "goal", defaultLocale: "en", variants: ["en": Content(message: Message(title: title))], hub: .default,
        at: clock.now())
    }
    #expect(try templates.known(content, in: .default) == nil)
    #expect(try await templates.resolve(content, in: .default) == content)
    #expect(try templates.known(content, in: .default) == content)
    for version in 1...2 {
      try await store("\(version)")
      clock.advance(by: .milliseconds(999))
      #expect(try templates.known(content, in: .default)?.version == (version == 1 ? nil : 1))
      clock.advance(by: .milliseconds(1))
      #expect(try templates.known(content, in: .default) == nil)
      let resolved = try await templates.resolve(content, in: .default)
      #expect(resolved == TemplateContent(name: "goal", version: version, properties: ["a": "b"]))
    }
    // Names of devices' templates that no template of a hub can have.
    let other = TemplateContent(name: "a b")
    #expect(try templates.known(other, in: .default) == other)
    #expect(try templates.known(TemplateContent(), in: .default) == TemplateContent())
  }

  @Test func previewRendersForADeviceOrAPlatform() async throws {
    try await Harness.run { app in
      #expect(try await put(app).status == 200)
      func preview(_ body: String) async throws -> Reply {
        try await app.request(.post, Self.path + "/preview", as: "opal", body: body)
      }
      let german: JSON = ["message": ["title": "Rapid", "body": "Rapid trifft"]]
      let all = try await preview(#"{"locale":"de-AT-wien","properties":{"TEAM":"Rapid"}}"#)
      #expect(all.status == 200)
      let found = try all.json
      #expect(found["name"] == "goal" && found["version"] == 1)
      #expect(found["locale"] == "de-at" && found["missing"] == ["score"])
      for platform in Platform.allCases {
        let content: JSON = platform == .wns ? ["native": ["wns": #"<toast a=""/>"#]] : german
        #expect(found["content"]?[platform.name] == content, "\(platform)")
      }
      let one = try await preview(#"{"platform":"apns","locale":"fr","properties":{"team":"Rapid"}}"#)
      #expect(try one.json["locale"] == "en" && one.json["missing"] == [])
      #expect(try one.json["content"] == ["apns": ["message": ["title": "Rapid"]]])
      let long = String(repeating: "x", count: 4097)
      try await preview(#"{"platform":"apns","properties":{"team":"\#(long)"}}"#).expectProblem(
        422, "impossible", naming: "larger than apns allows")

      try await preview(#"{"registration":"\#(RegistrationID.random())"}"#).expectProblem(
        422, "impossible", naming: "registration")
      try await preview(#"{"registration":"\#(RegistrationID.random())","locale":"de"}"#).expectProblem(
        400, "invalidField", naming: "registration")
      try await preview(#"{"version":2}"#).expectProblem(404, "notFound")
      let native = #"{"defaultLocale":"en","variants":{"en":{"native":{"wns":"<toast/>"}}}}"#
      #expect(try await put(app, native).status == 200)
      try await preview(#"{"platform":"fcm"}"#).expectProblem(422, "impossible", naming: "platform")
    }
  }

  @Test func changesAreInTheSecurityLog() async throws {
    let log = LogRecorder()
    let security = SecurityLog(logger: log.logger)
    try await Harness.run({ $0.security = security }) { app in
      let stored = try await put(app)
      #expect(stored.status == 200)
      #expect(try await app.request(.delete, Self.path, as: "opal").status == 204)
      for event in ["template.stored", "template.removed"] { #expect(log.text.contains(event), "\(event)") }
      #expect(log.text.contains(security.hash(of: "opal")))
      #expect(!log.text.contains("goal") && !log.text.contains("trifft"))
    }
  }

  @Test func headerFieldsRequireTheScopeOfNativePayloads() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let user = ScopedDemo.user([.sendUser])
      let body = #"{"to":{"user":"bob"},"message":{"body":"b"},"native":{"headers":{"Apns-Priority":"5"}}}"#
      try await app.request(.post, "/api/sends", as: user, body: body).expectProblem(
        403, "forbidden", naming: "native")
      #expect(try await app.request(.post, "/api/sends", body: body).status == 202)
      #expect(try sink.sends().map(\.content.headers) == [["apns-priority": "5"]])
      try await app.request(.post, "/api/sends", body: body.replacing("Priority", with: "Topic")).expectProblem(
        400, "invalidField", naming: "native.headers")
    }
  }
}
