import FanfareCore
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct RegisterByInstallationTests {
  private let token = String(repeating: "0aF9", count: 16)

  @Test func appRegistersItsInstallation() async throws {
    try await Harness.run { app in
      let body = #"{"platform":"ios","instId":"5D1A-77","deviceToken":"\#(token)"}"#
      let reply = try await app.request(.post, "/api/register", body: body)
      #expect(reply.status == 200)
      #expect(reply["Content-Type"] == "application/json")
      let id = try #require(try reply.json["id"]?.text.flatMap { RegistrationID($0) })
      #expect(
        try reply.json == [
          "id": .string("\(id)"), "user": "alice", "platform": "apns", "handle": .string(token.lowercased()),
          "installation": "5D1A-77", "tags": ["installation:5D1A-77", "username:alice"],
          "registeredAt": .string("\(app.clock.now())"), "createdAt": .string("\(app.clock.now())"),
          "lastSeen": .string("\(app.clock.now())"),
        ])
      #expect(try await app.reached(.tag("installation:5D1A-77")) == [id])

      // The installation keeps its registration and gets the new handle and platform.
      for (body, platform, handle) in [
        (#"{"Platform":"iOS","InstId":"5D1A-77","DeviceToken":"BB02"}"#, "apns", "bb02"),
        (#"{"platform":"ANDROID","instid":"5D1A-77","devicetoken":"fcm:Tok-en_1"}"#, "fcm", "fcm:Tok-en_1"),
        (
          #"{"platform":"windows","instId":"5D1A-77","channelUri":"https://db3.notify.windows.com/?token=A%2bB"}"#,
          "wns",
          "https://db3.notify.windows.com/?token=A%2bB"
        ),
      ] {
        let reply = try await app.request(.post, "/api/register", body: body)
        #expect(try reply.json["id"] == .string("\(id)"))
        #expect(try reply.json["platform"] == .string(platform))
        #expect(try reply.json["handle"] == .string(handle))
      }
      #expect(try await app.reached(.user("alice")) == [id])
    }
  }

  @Test func installationBelongsToItsLastUser() async throws {
    try await Harness.run { app in
      func install(_ handle: String, as user: String) async throws -> Reply {
        try await app.request(
          .post, "/api/register", as: user, body: #"{"platform":"ios","instId":"i-1","deviceToken":"\#(handle)"}"#)
      }
      let id = try #require(try await install("aa01", as: "alice").json["id"]?.text.flatMap { RegistrationID($0) })
      try await install("bb02", as: "bob").expectProblem(410, "gone")
      #expect(try await app.reached(.user("alice")) == [id], "nothing has changed")
      #expect(try await app.reached(.device(.apns, handle: "bb02")) == [])

      #expect(try await install("AA01", as: "bob").status == 200)
      #expect(try await app.reached(.user("alice")) == [])
      #expect(try await app.reached(.user("bob")) == [id])

      // A handle belongs to the last user who presents it, in either flow.
      let other = try await app.issue(handle: "aa01", as: "carol")
      #expect(try await app.complete(other, handle: "aa01", as: "carol").status == 200)
      #expect(try await app.reached(.user("bob")) == [])
      #expect(try await app.reached(.device(.apns, handle: "aa01")).map(\.description) == [other])
    }
  }

  @Test func invalidHandleInTheQueryIsRefusedAlsoBesideABody() async throws {
    try await Harness.run { app in
      let body = #"{"platform":"ios","instId":"i-1","deviceToken":"aa01"}"#
      try await app.request(.post, "/api/register?handle=%C2%84", body: body)
        .expectProblem(400, "invalidParameter", naming: "handle")
    }
  }

  @Test func invalidBodyIsRefusedNamingTheMember() async throws {
    try await Harness.run { app in
      for (body, field) in [
        (#"{"instId":"i","deviceToken":"aa"}"#, "platform"), (#"{"platform":"windows","instId":"i"}"#, "channelUri"),
        (#"{"platform":"apns","instId":"i","deviceToken":"aa"}"#, "platform"),
        (#"{"platform":"ios","instId":"","deviceToken":"aa"}"#, "instId"),
        (#"{"platform":"ios","instId":"no spaces","deviceToken":"aa"}"#, "instId"),
        (#"{"platform":"ios","instId":"i","deviceToken":"xyz"}"#, "deviceToken"),
        (#"{"platform":"ios","instId":"i","deviceToken":7}"#, "deviceToken"),
        (#"{"platform":"ios","instId":"i","deviceToken":"aa","tags":[]}"#, "tags"),
        (#"{"platform":"ios","instId":"i","deviceToken":"aa","DEVICETOKEN":"bb"}"#, "DEVICETOKEN"),
        (
          #"{"platform":"ios","instId":"i","deviceToken":"aa","channelUri":"https://x.notify.windows.com/"}"#,
          "channelUri"
        ),
        (#"{"platform":"windows","instId":"i","deviceToken":"aa"}"#, "deviceToken"),
        (#"{"platform":"windows","instId":"i","channelUri":"https://notify.windows.com.example.com/"}"#, "channelUri"),
      ] {
        try await app.request(.post, "/api/register", body: body).expectProblem(400, "invalidField", naming: field)
      }
      for body in ["x", " "] {
        try await app.request(.post, "/api/register", body: body).expectProblem(400, "malformedBody")
      }
      try await app.request(.post, "/api/register", body: "{}", type: "application/xml")
        .expectProblem(415, "unsupportedMediaType")
      #expect(try await app.reached(.user("alice")) == [])
    }
  }
}
