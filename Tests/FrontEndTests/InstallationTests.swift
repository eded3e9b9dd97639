import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// The project's own routes for installations.
@Suite(.timeLimit(.minutes(2))) struct InstallationTests {
  private static let path = "/api/installations/5D1A-77"

  private static func body(_ handle: String = "aa01", platform: String = "apns", tags: String = #""news""#) -> String {
    #"{"platform":"\#(platform)","handle":"\#(handle)","tags":[\#(tags)]}"#
  }

  private func put(_ app: Harness, _ body: String = Self.body(), as user: String = "alice") async throws -> Reply {
    try await app.request(.put, Self.path, as: user, body: body)
  }

  private func patch(_ app: Harness, _ operations: String, as user: String = "alice") async throws -> Reply {
    try await app.request(.patch, Self.path, as: user, body: "[\(operations)]", type: "application/json-patch+json")
  }

  private func tags(_ reply: Reply) throws -> [String] {
    guard case .array(let tags)? = try reply.json["tags"] else { throw UnexpectedReply(text: reply.text) }
    return tags.compactMap(\.text)
  }

  @Test func installationIsCreatedReadReplacedAndRemoved() async throws {
    try await Harness.run { app in
      let start = app.clock.now()
      let reply = try await put(app)
      #expect(reply.status == 200 && reply["Content-Type"] == "application/json")
      let id = try #require(try reply.json["id"]?.text.flatMap { RegistrationID($0) })
      let expected: JSON = [
        "id": .string("\(id)"), "user": "alice", "platform": "apns", "handle": "aa01", "installation": "5D1A-77",
        "tags": ["installation:5D1A-77", "news", "username:alice"], "registeredAt": .string("\(start)"),
        "createdAt": .string("\(start)"), "lastSeen": .string("\(start)"),
      ]
      #expect(try reply.json == expected)
      for user in ["alice", "opal"] {
        let reply = try await app.request(.get, Self.path, as: user)
        #expect(try reply.json == expected)
        #expect(reply["Cache-Control"] == "no-store")
      }
      try await app.request(.get, Self.path, as: "bob").expectProblem(404, "notFound")
      #expect(try await app.request(.head, Self.path).status == 200)

      app.clock.advance(by: .seconds(60))
      for (platform, member, handle) in [
        ("ios", "deviceToken", "BB02"), ("android", "deviceToken", "fcm:Tok-en_1"), ("gcm", "handle", "t"),
        ("windows", "channelUri", "https://db3.notify.windows.com/?token=A%2bB"),
      ] {
        app.clock.advance(by: .milliseconds(1))
        let reply = try await put(app, #"{"platform":"\#(platform)","\#(member)":"\#(handle)"}"#)
        #expect(try reply.json["id"] == .string("\(id)"))
        #expect(try reply.json["handle"] == .string(platform == "ios" ? handle.lowercased() : handle))
        #expect(try reply.json["createdAt"] == .string("\(start)"))
        #expect(try reply.json["lastSeen"] == .string("\(app.clock.now())"))
      }
      #expect(try await app.reached(.tag("news")) == [])

      try await app.request(.delete, Self.path, as: "bob").expectProblem(404, "notFound")
      let removed = try await app.request(.delete, Self.path)
      #expect(removed.status == 204 && removed.body.isEmpty)
      try await app.request(.delete, Self.path).expectProblem(404, "notFound")
      try await app.request(.get, Self.path).expectProblem(404, "notFound")
      #expect(try await put(app).json["id"] != .string("\(id)"))
      #expect(try await app.request(.delete, Self.path, as: "opal").status == 204)
      #expect(try await app.reached(.user("alice")) == [])
    }
  }

  @Test func onlyTheSameHandleTransfersAnInstallationToAnotherUser() async throws {
    try await Harness.run { app in
      let id = try #require(try await put(app).json["id"]?.text.flatMap { RegistrationID($0) })
      try await put(app, Self.body("bb02"), as: "bob").expectProblem(410, "gone")
      try await put(app, Self.body("bb02"), as: "opal").expectProblem(410, "gone")
      try await put(app, Self.body(tags: #""username:bob""#)).expectProblem(403, "forbidden")
      try await put(app, Self.body(tags: #""installation:other""#)).expectProblem(403, "forbidden")
      try await patch(app, "", as: "bob").expectProblem(404, "notFound")
      try await patch(app, "", as: "opal").expectProblem(403, "forbidden")
      #expect(try await app.reached(.user("alice")) == [id])
      #expect(try await put(app, Self.body("AA01"), as: "bob").status == 200)
      #expect(try await app.reached(.user("alice")) == [])
      #expect(try await app.reached(.user("bob")) == [id])
      // An id that needs percent escapes.
      let odd = try await app.request(.put, "/api/installations/a%23b%40c", body: Self.body("cc03"))
      #expect(try odd.json["installation"] == "a#b@c")
      #expect(try await app.request(.get, "/api/installations/a%23b@c").status == 200)
      // Hubs are separate, and the app-compatible route finds the same device.
      try await app.request(.get, "/hubs/other\(Self.path)").expectProblem(401, "unauthenticated")
      let older = #"{"platform":"ios","instId":"5D1A-77","deviceToken":"aa01"}"#
      #expect(try await app.request(.post, "/api/register", as: "bob", body: older).json["id"] == .string("\(id)"))
    }
  }

  @Test func invalidBodyIsRefusedNamingTheMember() async throws {
    try await Harness.run { app in
      for (body, field) in [
        (#"{"handle":"aa"}"#, "platform"), (#"{"platform":"apns"}"#, "handle"),
        (#"{"platform":"pager","handle":"aa"}"#, "platform"),
        (#"{"platform":"apns","handle":"xyz"}"#, "handle"), (#"{"platform":"apns","channelUri":"aa"}"#, "channelUri"),
        (#"{"platform":"wns","deviceToken":"https://a.notify.windows.com/"}"#, "deviceToken"),
        (#"{"platform":"apns","handle":"aa","deviceToken":"bb"}"#, "deviceToken"),
        (#"{"platform":"apns","handle":7}"#, "handle"),
        (#"{"platform":"apns","handle":"aa","tags":["a b"]}"#, "tags[0]"),
        (#"{"platform":"apns","handle":"aa","tags":"a"}"#, "tags"),
        (#"{"platform":"apns","handle":"aa","Tags":[]}"#, "Tags"),
        (#"{"platform":"apns","platform":"fcm","handle":"aa"}"#, "platform"),
      ] {
        try await put(app, body).expectProblem(400, "invalidField", naming: field)
      }
      let many = (0..<61).map { #""t\#($0)""# }.joined(separator: ",")
      try await put(app, Self.body(tags: many)).expectProblem(400, "invalidField", naming: "tags[60]")
      try await put(app, "x").expectProblem(400, "malformedBody")
      try await app.request(.put, Self.path, body: Self.body(), type: "text/plain").expectProblem(
        415, "unsupportedMediaType")
      for path in [
        "/api/installations/a%20b", "/api/installations/" + String(repeating: "x", count: 108),
      ] {
        try await app.request(.put, path, body: Self.body()).expectProblem(400, "invalidParameter", naming: "id")
        try await app.request(.get, path).expectProblem(404, "notFound")
      }
      #expect(try await app.reached(.user("alice")) == [])
    }
  }

  @Test func patchChangesTagsHandleAndPlatform() async throws {
    try await Harness.run { app in
      let start = app.clock.now()
      _ = try await put(app, Self.body(tags: #""a","b""#))
      app.clock.advance(by: .seconds(60))
      for (operations, expected) in [
        ("", ["a", "b"]), (#"{"op":"add","path":"/tags/-","value":"c"}"#, ["a", "b", "c"]),
        (#"{"op":"remove","path":"/tags/a"}"#, ["b", "c"]),
        (#"{"op":"add","path":"/tags/0","value":"a"}"#, ["a", "b", "c"]),
        // In the form of GET: sorted, with the registry's own tags.
        (
          #"{"op":"test","path":"/tags/0","value":"a"},{"op":"replace","path":"/tags/0","value":"z"}"#, ["b", "c", "z"]
        ),
        (#"{"op":"remove","path":"/tags/0"}"#, ["c", "z"]),
        (#"{"op":"test","path":"/tags","value":["z","username:alice","installation:5D1A-77","c"]}"#, ["c", "z"]),
        (#"{"op":"replace","path":"/tags","value":["x","y","x"],"comment":[{}]}"#, ["x", "y"]),
        (#"{"path":"/tags","op":"remove"},{"value":"n","path":"/tags/-","op":"add"}"#, ["n"]),
      ] {
        let reply = try await patch(app, operations)
        #expect(reply.status == 200, "\(operations): \(reply.text)")
        #expect(try tags(reply) == (expected + ["installation:5D1A-77", "username:alice"]).sorted(), "\(operations)")
        #expect(try await app.request(.get, Self.path).json == reply.json)
      }
      app.clock.advance(by: .seconds(1))
      let unmoved = try await patch(app, "")
      #expect(
        try unmoved.json["registeredAt"] == .string("\(start)")
          && unmoved.json["lastSeen"] == .string("\(app.clock.now())"))
      #expect(try await app.reached(.tag("n")).count == 1)
      #expect(try await app.reached(.tag("a")) == [])

      for (operations, platform, handle) in [
        (#"{"op":"replace","path":"/deviceToken","value":"BB02"}"#, "apns", "bb02"),
        (
          #"{"op":"test","path":"/handle","value":"Bb02"},{"op":"add","path":"/handle","value":"cc03"}"#, "apns", "cc03"
        ),
        (
          #"{"op":"replace","path":"/handle","value":"DD04"},{"op":"test","path":"/handle","value":"DD04"}"#, "apns",
          "dd04"
        ),
        (
          #"{"op":"replace","path":"/platform","value":"android"},{"op":"replace","path":"/handle","value":"t:1"}"#,
          "fcm", "t:1"
        ),
        (
          #"{"op":"replace","path":"/channelUri","value":"https://a.notify.windows.com/"},{"op":"replace","path":"/platform","value":"wns"}"#,
          "wns", "https://a.notify.windows.com/"
        ),
      ] {
        let reply = try await patch(app, operations)
        #expect(
          try reply.json["platform"] == .string(platform) && reply.json["handle"] == .string(handle), "\(reply.text)")
        #expect(
          try reply.json["registeredAt"] == .string("\(app.clock.now())")
            && reply.json["createdAt"] == .string("\(start)"))
      }
    }
  }

  @Test func failingPatchNamesTheOperationAndChangesNothing() async throws {
    try await Harness.run { app in
      let before = try await put(app, Self.body(tags: #""a","b""#)).json
      let add = #"{"op":"add","path":"/tags/-","value":"c"}"#
      for (operations, detail) in [
        (#"{"op":"remove","path":"/tags/4"}"#, "[1] /tags/4"),
        (#"{"op":"replace","path":"/tags/9","value":"x"}"#, "[1] /tags/9"),
        (#"{"op":"add","path":"/tags/6","value":"x"}"#, "[1] /tags/6"),
        (#"{"op":"remove","path":"/tags/none"}"#, "[1] /tags/TAG"),
        (#"{"op":"test","path":"/tags/0","value":"b"}"#, "[1] /tags/0"),
        (#"{"op":"test","path":"/tags","value":["a"]}"#, "[1] /tags"),
        (#"{"op":"test","path":"/handle","value":"bb"}"#, "[1] /handle"),
        (#"{"op":"test","path":"/platform","value":"fcm"}"#, "[1] /platform"),
      ] {
        // The preceding operation changes the number of tags.
        let before = detail.hasSuffix("/tags/4") ? #"{"op":"remove","path":"/tags/a"}"# : add
        try await patch(app, "\(before),\(operations)").expectProblem(409, "conflict", naming: detail)
      }
      for (operations, detail) in [
        ("{}", "[0] must have an op"), (#"{"op":"add"}"#, "[0] must have a path"),
        (#"{"op":"move","from":"/a","path":"/tags"}"#, "[0].op"),
        (#"{"op":"add","path":"/tags/-"}"#, "[0] /tags/- must have a value"),
        (#"\#(add),{"op":"add","path":"/user","value":"bob"}"#, "[1] must have a path"),
        (#"{"op":"remove","path":"/handle"}"#, "[0] /handle cannot be removed"),
        (#"{"op":"remove","path":"/tags/-"}"#, "[0] /tags/-"),
        (#"{"op":"replace","path":"/tags/a","value":"b"}"#, "[0] /tags/TAG can only be removed"),
        (#"{"op":"replace","path":"/tags","value":"b"}"#, "[0] /tags must have a value"),
        (#"{"op":"add","path":"/tags/-","value":"b c"}"#, "[0] /tags/-"),
        (#"{"op":"replace","path":"/tags","value":["b","é"]}"#, "[0].value[1]"),
        (#"{"op":"replace","path":"/handle","value":7}"#, "[0] /handle"),
        (#"{"op":"replace","path":"/platform","value":"pager"}"#, "[0] /platform"),
        (#"{"op":"add","op":"add","path":"/tags"}"#, "[0].op"),
        (#"\#(add),{"op":"replace","path":"/handle","value":"xyz"}"#, "[1] /handle leaves a handle"),
        (#"{"op":"replace","path":"/platform","value":"wns"}"#, "[0] /platform leaves a handle"),
        (#"{"op":"replace","path":"/platform"}"#, "[0] /platform"),
        (#"{"op":"add","path":"tags","value":[]}"#, "[0] must have a path"),
        (#"{"op":"add","path":"/tags/01","value":"x"}"#, "[0] /tags/TAG"), ("7", "[0]"),
      ] {
        try await patch(app, operations).expectProblem(400, "invalidField", naming: detail)
      }
      let many = (0..<59).map { #"{"op":"add","path":"/tags/-","value":"t\#($0)"}"# }.joined(separator: ",")
      try await patch(app, many).expectProblem(400, "invalidField", naming: "/tags")
      let endless = Array(repeating: add, count: 101).joined(separator: ",")
      try await patch(app, endless).expectProblem(400, "invalidField", naming: "[100]")
      try await patch(app, #"{"op":"add","path":"/tags/-","value":"username:bob"}"#).expectProblem(403, "forbidden")
      try await app.request(.patch, Self.path, body: "{}", type: "application/json-patch+json").expectProblem(
        400, "malformedBody")
      try await app.request(.patch, Self.path, body: "[]", type: "application/merge-patch+json")
        .expectProblem(415, "unsupportedMediaType")
      try await app.request(.patch, "/api/installations/unknown", body: "[]").expectProblem(404, "notFound")
      #expect(try await app.request(.get, Self.path).json == before)
    }
  }

  @Test func answeredTagsCanBeSentBack() async throws {
    try await Harness.run { app in
      let most = (0..<60).map { #""t\#($0)""# }.joined(separator: ",")
      let stored = try tags(try await put(app, Self.body(tags: most)))
      #expect(stored.count == 62)
      let list = stored.map { #""\#($0)""# }.joined(separator: ",")
      #expect(try tags(try await put(app, Self.body(tags: list))) == stored)
      #expect(try tags(try await patch(app, #"{"op":"replace","path":"/tags","value":[\#(list)]}"#)) == stored)
      try await patch(app, #"{"op":"add","path":"/tags/-","value":"more"}"#).expectProblem(
        400, "invalidField", naming: "/tags")
    }
  }

  @Test func concurrentPatchesLoseNoChange() async throws {
    try await Harness.run { app in
      _ = try await put(app, Self.body(tags: ""))
      let statuses = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
        for number in 0..<8 {
          group.addTask {
            (number, try await patch(app, #"{"op":"add","path":"/tags/-","value":"t\#(number)"}"#).status)
          }
        }
        return try await group.reduce(into: [Int: Int]()) { $0[$1.0] = $1.1 }
      }
      let stored = try tags(try await app.request(.get, Self.path))
      for (number, status) in statuses {
        #expect(status == 200 || status == 409)
        #expect(stored.contains("t\(number)") == (status == 200))
      }
    }
  }
}
