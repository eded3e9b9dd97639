import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// Templates, language, time zone and attributes of devices over HTTP.
@Suite(.timeLimit(.minutes(2))) struct DeviceProfileTests {
  private static let path = "/api/installations/phone-1"
  private static let profile = #""locale":"de-AT","timeZone":"Europe/Vienna","attributes":{"Team":"Rapid"}"#
  private func put(_ app: Harness, _ members: String = profile) async throws -> Reply {
    try await app.request(.put, Self.path, body: #"{"platform":"apns","handle":"aa","tags":["a"],\#(members)}"#)
  }

  private func tags(_ reply: Reply) throws -> [String] { try reply.json["tags"]?.elements.compactMap(\.text) ?? [] }

  @Test func deviceHasTheTagOfItsZone() async throws {
    try await Harness.run { app in
      #expect(
        try tags(try await put(app)) == ["a", "installation:phone-1", "timezone:Europe.Vienna", "username:alice"])
      // What was returned can be sent back, and in another zone the tag is another one.
      let moved = try await app.request(
        .put, Self.path,
        body: #"{"platform":"apns","handle":"aa","tags":["a","timezone:Europe.Vienna"],"timeZone":"Etc/GMT+5"}"#)
      #expect(try tags(moved) == ["a", "installation:phone-1", "timezone:Etc.GMT#5", "username:alice"])
    }
  }

  @Test func errorNamesTheMember() async throws {
    try await Harness.run { app in
      for (members, name) in [
        (#""locale":"x""#, "locale must be a language tag"), (#""timeZone":"Mars/Phobos""#, "timeZone must be"),
        (#""timeZone":"CET""#, "timeZone"), (#""timeZone":"Europe/../../etc/passwd""#, "timeZone"),
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
