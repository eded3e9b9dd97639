import FanfareCore
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct RegisterByHandleTests {
  private let handle = "0A1B2C3D0A1B2C3D0A1B2C3D0A1B2C3D0A1B2C3D0A1B2C3D0A1B2C3D0A1B2C3D"

  @Test func appRegistersAndUnregisters() async throws {
    try await Harness.run { app in
      let issued = try await app.request(.post, "/api/register?handle=\(handle)")
      #expect(issued.status == 200)
      #expect(issued["Content-Type"] == "application/json")
      #expect(issued.text.utf8.count == 38 && issued.text.hasPrefix("\"") && issued.text.hasSuffix("\""))
      let id = try #require(RegistrationID(String(issued.text.dropFirst().dropLast())))
      #expect(try await app.reached(.user("alice")) == [], "issued but not completed")

      let completed = try await app.complete("\(id)", handle: handle, tags: ["news"])
      #expect(completed.status == 200 && completed.body.isEmpty)
      let stored = try #require(try await app.registry.registration(id, hub: .default))
      #expect(stored.tags == ["news", "username:alice"])
      #expect(stored.user == "alice" && stored.platform == .apns && stored.handle == handle.lowercased())

      #expect(try await app.issue(handle: handle) == "\(id)", "the registration is reused")
      #expect(try await app.issue(handle: handle.lowercased()) == "\(id)", "in any letter case")

      let removed = try await app.request(.delete, "/api/register/\(id)")
      #expect(removed.status == 200 && removed.body.isEmpty)
      try await app.request(.delete, "/api/register/\(id)").expectProblem(404, "notFound")
      try await app.complete("\(id)", handle: handle).expectProblem(410, "gone")
      #expect(try await app.issue(handle: handle) != "\(id)")
    }
  }

  @Test func completingCreatesOrReplacesARegistration() async throws {
    try await Harness.run { app in
      let id = try await app.issue(handle: nil)
      let path = "/api/register/\(id)"
      let registration = try #require(RegistrationID(id))
      // Names in any letter case, tags missing or null, unknown members ignored.
      for (body, tags) in [
        (#"{"Platform":"apns","Handle":"AB","Tags":["news","sport"]}"#, ["news", "sport", "username:alice"]),
        (#"{"platform":"APNS","handle":"ab","tags":["other"]}"#, ["other", "username:alice"]),
        (#"{"PLATFORM":"gcm","HANDLE":"fcm:T-o_k","TAGS":null}"#, ["username:alice"]),
        (#"{"tags":["username:alice","a"],"hAnDlE":"fcm:T-o_k","pLaTfOrM":"FCM"}"#, ["a", "username:alice"]),
        (
          #"{"Platform":"wns","Handle":"https://db3.notify.windows.com/?token=A%2bB%3d","ETag":[1,{"x":null}],"Expires":"2026"}"#,
          ["username:alice"]
        ),
      ] {
        #expect(try await app.request(.put, path, body: body).status == 200)
        #expect(try await app.registry.registration(registration, hub: .default)?.tags == tags, "\(body)")
      }
      let stored = try await app.registry.registration(registration, hub: .default)
      #expect(stored?.platform == .wns)
      #expect(stored?.handle == "https://db3.notify.windows.com/?token=A%2bB%3d")
    }
  }

  @Test func deadOrUnknownIDIsAnswered410() async throws {
    try await Harness.run { app in
      // Never issued, well-formed or not.
      for id in [RegistrationID.random().description, "nonsense", "1"] {
        try await app.complete(id, handle: "aa").expectProblem(410, "gone")
        try await app.request(.delete, "/api/register/\(id)").expectProblem(404, "notFound")
      }
      // Issued but not completed within an hour.
      let late = try await app.issue(handle: "aa01")
      app.clock.advance(by: .seconds(3601))
      try await app.complete(late, handle: "aa01").expectProblem(410, "gone")
      // Completed within the hour.
      let kept = try await app.issue(handle: "aa01")
      #expect(kept != late)
      app.clock.advance(by: .seconds(3599))
      #expect(try await app.complete(kept, handle: "aa01").status == 200)
      app.clock.advance(by: .seconds(1_000_000))
      #expect(try await app.complete(kept, handle: "aa01").status == 200)
      // Dropped because the push service reported the handle as gone.
      let registration = try #require(RegistrationID(kept))
      let verdict = DeadDevice(
        hub: .default, registration: registration, handle: "aa01", since: nil, reason: "Unregistered")
      #expect(try await app.registry.drop([verdict], at: app.clock.now()) == [registration])
      try await app.complete(kept, handle: "aa01").expectProblem(410, "gone")
      // Merged into another registration of the same handle.
      let first = try await app.issue(handle: "bb01")
      #expect(try await app.complete(first, handle: "bb01").status == 200)
      let second = try await app.issue(handle: nil)
      #expect(try await app.complete(second, handle: "BB01").status == 200)
      try await app.complete(first, handle: "bb01").expectProblem(410, "gone")
      #expect(try await app.issue(handle: "bb01") == second)
    }
  }

  @Test func deviceBelongsToItsLastUser() async throws {
    try await Harness.run { app in
      let id = try await app.issue(handle: "aa01")
      let registration = try #require(RegistrationID(id))
      #expect(try await app.complete(id, handle: "aa01", tags: ["news"]).status == 200)

      // To other users the id is gone, and nothing changes.
      try await app.complete(id, handle: "ff02", tags: ["x"], as: "bob").expectProblem(410, "gone")
      try await app.complete(id, handle: "aa01", platform: "gcm", as: "bob").expectProblem(410, "gone")
      try await app.request(.delete, "/api/register/\(id)", as: "bob").expectProblem(404, "notFound")
      #expect(try await app.reached(.user("alice")) == [registration])
      #expect(try await app.reached(.tag("news")) == [registration])

      // The owner's handle rotates.
      #expect(try await app.complete(id, handle: "cc03", tags: ["news"]).status == 200)
      try await app.complete(id, handle: "aa01", as: "bob").expectProblem(410, "gone")

      // The phone changes hands: the same handle in another letter case.
      #expect(try await app.complete(id, handle: "CC03", tags: ["sport"], as: "bob").status == 200)
      #expect(try await app.reached(.user("alice")) == [])
      #expect(try await app.reached(.tag("news")) == [])
      #expect(try await app.reached(.user("bob")) == [registration])
      try await app.complete(id, handle: "dd04").expectProblem(410, "gone")

      // A user who registers the handle under another id gets the device.
      let other = try await app.issue(handle: nil, as: "carol")
      #expect(try await app.complete(other, handle: "cc03", as: "carol").status == 200)
      #expect(try await app.reached(.user("bob")) == [])
      try await app.complete(id, handle: "cc03", as: "bob").expectProblem(410, "gone")
    }
  }

  @Test func tagsOfOtherUsersAreForbidden() async throws {
    try await Harness.run { app in
      let id = try await app.issue(handle: "aa01")
      for tag in ["username:bob", "username:", "username:Alice", "username:alice2"] {
        try await app.complete(id, handle: "aa01", tags: ["news", tag]).expectProblem(403, "forbidden", naming: "tags")
      }
      #expect(try await app.reached(.tag("news")) == [])
      #expect(try await app.complete(id, handle: "aa01", tags: ["username:alice", "news"]).status == 200)
    }
  }

  @Test func invalidBodyIsRefusedNamingTheMember() async throws {
    try await Harness.run { app in
      let id = try await app.issue(handle: nil)
      let many = (0...60).map { #""t\#($0)""# }.joined(separator: ",")
      for (body, field) in [
        (#"{"Handle":"aa01"}"#, "Platform"), (#"{"Platform":"apns","Handle":""}"#, "Handle"),
        (#"{"Platform":"apns","Handle":null}"#, "Handle"),
        (#"{"Platform":"apns","Handle":"aa","handle":"bb"}"#, "handle"),
        (#"{"Platform":"wns","Handle":"https://example.com/x"}"#, "Handle"),
        (#"{"Platform":"wns","Handle":"https://notify.windows.com@example.com/"}"#, "Handle"),
        (#"{"Platform":"apns","Handle":"aa","Tags":["ok",7]}"#, "Tags[1]"),
        (#"{"Platform":"apns","Handle":"aa","Tags":[""]}"#, "Tags[0]"),
        (#"{"Platform":"apns","Handle":"aa","Tags":[\#(many)]}"#, "Tags[60]"),
      ] {
        try await app.request(.put, "/api/register/\(id)", body: body).expectProblem(400, "invalidField", naming: field)
      }
      try await app.request(.post, "/api/register?handle=%0a").expectProblem(400, "invalidParameter", naming: "handle")
    }
  }

  @Test func requestWithoutBodyIssuesAnIDWhateverItsMediaType() async throws {
    try await Harness.run { app in
      for path in ["/api/register", "/api/register?handle=", "/api/register?handle=aa01"] {
        for headers in [
          [], [("Content-Type", "application/json")], [("Content-Type", "application/x-www-form-urlencoded")],
        ] {
          let reply = try await app.request(.post, path, headers: headers)
          #expect(reply.status == 200, "\(path) \(headers) \(reply.text)")
          #expect(RegistrationID(String(reply.text.dropFirst().dropLast())) != nil)
        }
      }
    }
  }
}
