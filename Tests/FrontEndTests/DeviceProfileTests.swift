import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// Templates, language, time zone and attributes of devices over HTTP.
@Suite(.timeLimit(.minutes(2))) struct DeviceProfileTests {
  private static let path = "/api/installations/phone-1"
  private static let profile = #""locale":"de-AT","timeZone":"Europe/Vienna","attributes":{"Team":"Rapid"}"#
  private static let templates = #"""
    "templates":{"goal":{"body":"{\"aps\":{\"alert\":\"$(score)\"}}","headers":{"apns-priority":"5"},"tags":["goals"]},
    "news":{"body":"{\"aps\":{\"alert\":\"$(title)\"}}"}}
    """#

  /// The store of the front end.
  enum Store: CaseIterable {
    case sqlite, postgreSQL

    /// PostgreSQL only if it is installed.
    static var allCases: [Self] { TestPostgreSQL.exists ? [.sqlite, .postgreSQL] : [.sqlite] }

    func run(_ body: (Harness) async throws -> Void) async throws {
      switch self {
      case .sqlite: try await Harness.run({ _ in }, body)
      case .postgreSQL: try await Harness.runOverPostgreSQL(body)
      }
    }
  }

  private func put(_ app: Harness, _ members: String = profile) async throws -> Reply {
    try await app.request(.put, Self.path, body: #"{"platform":"apns","handle":"aa","tags":["a"],\#(members)}"#)
  }

  private func patch(_ app: Harness, _ operations: String) async throws -> Reply {
    try await app.request(.patch, Self.path, body: "[\(operations)]", type: "application/json-patch+json")
  }

  private func tags(_ reply: Reply) throws -> [String] { try reply.json["tags"]?.elements.compactMap(\.text) ?? [] }

  @Test(arguments: Store.allCases) func profileIsStoredAndReturned(in store: Store) async throws {
    try await store.run { app in
      let zones = ["a", "installation:phone-1", "time-zone:Europe.Vienna", "username:alice"]
      for reply in [try await put(app), try await app.request(.get, Self.path)] {
        #expect(reply.status == 200)
        #expect(try tags(reply) == zones)
        #expect(try reply.json["locale"] == "de-AT" && reply.json["timeZone"] == "Europe/Vienna")
        #expect(try reply.json["attributes"] == ["team": "Rapid"])
      }
      // What was returned can be sent back, and in another zone the tag is another one.
      let moved = try await app.request(
        .put, Self.path,
        body: #"{"platform":"apns","handle":"aa","tags":["a","time-zone:Europe.Vienna"],"timeZone":"Etc/GMT+5"}"#)
      #expect(try tags(moved) == ["a", "installation:phone-1", "time-zone:Etc.GMT#5", "username:alice"])
      #expect(try moved.json["locale"] == nil)

      let id = try await app.issue(handle: "bb")
      let own = try await app.request(
        .put, "/api/registrations/\(id)",
        body: #"{"platform":"fcm","handle":"bb",\#(Self.profile),"template":{"body":"{\"data\":{\"a\":\"$(b)\"}}"}}"#)
      #expect(own.status == 200)
      let template: JSON = ["body": #"{"data":{"a":"$(b)"}}"#]
      #expect(try own.json["template"] == template)
      #expect(try await app.request(.get, "/api/registrations/\(id)").json["template"] == template)
      #expect(try tags(own) == ["time-zone:Europe.Vienna", "username:alice"])
    }
  }

  @Test func zoneDoesNotCountAgainstTheLimitOfTags() async throws {
    try await Harness.run { app in
      let given = (1...60).map { "\"tag-\($0)\"" }.joined(separator: ",")
      let body = #"{"platform":"apns","handle":"aa","tags":[\#(given)],"timeZone":"Europe/Vienna"}"#
      let stored = try await app.request(.put, Self.path, body: body)
      #expect(try tags(stored).count == 63)
      #expect(try await patch(app, #"{"op":"add","path":"/locale","value":"de"}"#).status == 200)
      let returned = try tags(stored).map { "\"\($0)\"" }.joined(separator: ",")
      #expect(try await tags(app.request(.put, Self.path, body: body.replacing(given, with: returned))) == tags(stored))
    }
  }

  /// The number of registrations with a template of the name.
  private func reached(_ app: Harness, _ name: String?, tag: String = "a") async throws -> Int {
    let query = AudienceQuery(hub: .default, audience: .tag(tag), platforms: .all, template: .devices(name: name))
    return try await app.registry.resolve([query])[0].count
  }

  @Test(arguments: Store.allCases)
  func templatesOfAnInstallationAreRegistrationsOfTheirOwn(in store: Store) async throws {
    try await store.run { app in
      let expected: JSON = [
        "goal": ["body": #"{"aps":{"alert":"$(score)"}}"#, "headers": ["apns-priority": "5"], "tags": ["goals"]],
        "news": ["body": #"{"aps":{"alert":"$(title)"}}"#],
      ]
      let stored = try await put(app, Self.templates)
      #expect(try stored.json["templates"] == expected)
      #expect(try await app.request(.get, Self.path).json["templates"] == expected)
      #expect(try await reached(app, nil) == 2)
      #expect(try await reached(app, "goal") == 1)
      #expect(try await reached(app, nil, tag: "goals") == 1)
      #expect(try await app.reached(.tag("a")).count == 1)
      #expect(try await put(app).json["templates"] == nil)
      #expect(try await reached(app, nil) == 0)
    }
  }

  @Test(arguments: Store.allCases) func patchChangesProfileAndTemplates(in store: Store) async throws {
    try await store.run { app in
      #expect(try await put(app, Self.profile + "," + Self.templates).status == 200)
      let changed = try await patch(
        app,
        #"""
        {"op":"test","path":"/locale","value":"de-AT"},{"op":"replace","path":"/locale","value":"en"},
        {"op":"replace","path":"/timeZone","value":"Asia/Tokyo"},{"op":"add","path":"/attributes/Club","value":"x"},
        {"op":"remove","path":"/attributes/team"},{"op":"remove","path":"/templates/news"},
        {"op":"add","path":"/templates/a~1b","value":{"body":"{\"aps\":{}}"}}
        """#)
      #expect(changed.status == 200, "\(changed.text)")
      for reply in [changed, try await app.request(.get, Self.path)] {
        #expect(try reply.json["locale"] == "en" && reply.json["timeZone"] == "Asia/Tokyo")
        #expect(try reply.json["attributes"] == ["club": "x"])
        #expect(try tags(reply) == ["a", "installation:phone-1", "time-zone:Asia.Tokyo", "username:alice"])
        #expect(try Set(reply.json["templates"]?.members.keys.map { $0 } ?? []) == ["a/b", "goal"])
        #expect(try reply.json["templates"]?["goal"]?["tags"] == ["goals"])
      }
      let bare = try await patch(
        app,
        #"""
        {"op":"remove","path":"/locale"},{"op":"remove","path":"/timeZone"},{"op":"remove","path":"/attributes"},
        {"op":"replace","path":"/templates","value":{}}
        """#)
      #expect(bare.status == 200)
      for member in ["locale", "timeZone", "attributes", "templates"] { #expect(try bare.json[member] == nil) }
      #expect(try tags(bare) == ["a", "installation:phone-1", "username:alice"])
      for path in ["/locale", "/timeZone", "/attributes/x", "/templates/x"] {
        try await patch(app, #"{"op":"remove","path":"\#(path)"}"#).expectProblem(409, "conflict", naming: "[0]")
      }
    }
  }

  @Test func patchErrorNamesTheOperation() async throws {
    try await Harness.run { app in
      #expect(try await put(app, Self.templates).status == 200)
      for (operation, name) in [
        (#"{"op":"add","path":"/timeZone","value":"Mars/Phobos"}"#, "/timeZone"),
        (#"{"op":"add","path":"/locale","value":"x"}"#, "/locale"),
        (#"{"op":"add","path":"/attributes","value":"x"}"#, "/attributes must have a value that is an object"),
        (#"{"op":"add","path":"/attributes/a b","value":"x"}"#, "path"),
        (#"{"op":"add","path":"/templates/n","value":{"body":"$("}}"#, "templates.n.body"),
        (#"{"op":"add","path":"/templates/n","value":{}}"#, "/templates/NAME"),
        (#"{"op":"test","path":"/templates","value":{}}"#, "/templates cannot be tested"),
        (#"{"op":"replace","path":"/platform","value":"fcm"}"#, "templates.goal.headers.apns-priority"),
      ] { try await patch(app, operation).expectProblem(400, "invalidField", naming: name) }
    }
  }

  @Test func errorNamesTheMember() async throws {
    try await Harness.run { app in
      for (members, name) in [
        (#""locale":"x""#, "locale must be a language tag"), (#""timeZone":"Mars/Phobos""#, "timeZone must be"),
        (#""timeZone":"Middle-earth""#, "timeZone"), (#""timeZone":"Europe/../../etc/passwd""#, "timeZone"),
        (#""locale":"de","locale":"de""#, "locale must be given once"),
        (#""attributes":{"a b":"c"}"#, "attributes.a b"), (#""attributes":{"a":1}"#, "attributes.a"),
        (#""template":{"body":"{}"}"#, "template is not a known member; templates is"),
        (
          #""templates":{"n":{"body":"{\"aps\":{\"alert\":\"$(a\"}}"}}"#,
          "templates.n.body: aps.alert, character 4 must"
        ),
        (#""templates":{"n":{"body":"text"}}"#, "templates.n.body must be a JSON object"),
        (#""templates":{"n":{"body":"{}","headers":{"x-wns-type":"wns/raw"}}}"#, "templates.n.headers.x-wns-type"),
        (#""templates":{"n":{"body":"{}","headers":{"x":"y"}}}"#, "templates.n.headers.x"),
        (#""templates":{"n":{}}"#, "templates.n must have a body"), (#""templates":{"":{"body":"{}"}}"#, "templates"),
        (#""attributes":{"a":"\#(String(repeating: "x", count: 20_480))"}"#, "attributes"),
      ] { try await put(app, members).expectProblem(400, "invalidField", naming: name) }
      let id = try await app.issue(handle: "bb")
      try await app.request(
        .put, "/api/registrations/\(id)", body: #"{"platform":"fcm","handle":"bb","templates":{}}"#
      ).expectProblem(400, "invalidField", naming: "templates is not a known member")
    }
  }
}
