import FanfareCore
import Registry
import Support
import Testing

@testable import FrontEnd

/// Operators' questions about devices.
@Suite(.timeLimit(.minutes(1))) struct InquiryTests {
  @Test func tagIsCountedInItsHub() async throws {
    try await Harness.run { app in
      for handle in ["aa01", "aa02"] {
        let id = try await app.issue(handle: handle)
        #expect(try await app.complete(id, handle: handle, tags: ["news#1"]).status == 200)
      }
      for (path, tag, count) in [
        ("news%231", "news#1", 2), ("username:alice", "username:alice", 2), ("other", "other", 0),
      ] {
        let reply = try await app.request(.get, "/api/tags/\(path)", as: "opal")
        #expect(
          try reply.json
            == ["tag": .string(tag), "registrations": .number(Double(count)), "isLowerBound": false])
      }
      for path in ["a%20b", String(repeating: "x", count: 121)] {
        try await app.request(.get, "/api/tags/\(path)", as: "opal").expectProblem(
          400, "invalidParameter", naming: "tag")
      }
    }
  }

  @Test func lostDevicesAreListedWithoutTheirHandles() async throws {
    try await Harness.run({ $0.limits.quarantine = .seconds(3600) }) { app in
      let handles = (1...3).map { String(repeating: "ab", count: 31) + "f\($0)" }
      var ids: [String] = []
      for handle in handles {
        ids.append(try await app.issue(handle: handle))
        #expect(try await app.complete(ids[ids.count - 1], handle: handle).status == 200)
      }
      app.clock.advance(by: .seconds(1))
      #expect(try await app.request(.delete, "/api/register/\(ids[0])").status == 200)
      app.clock.advance(by: .seconds(1))
      let dead = try #require(RegistrationID(ids[1]))
      _ = try await app.registry.drop(
        [DeadDevice(hub: .default, registration: dead, handle: handles[1], since: nil, reason: "Unregistered")],
        at: app.clock.now())
      let path = "/api/tombstones?user=alice"
      let reply = try await app.request(.get, path, as: "opal")
      let found = try reply.json["tombstones"]?.elements ?? []
      #expect(found.map { $0["registration"] } == [.string(ids[1]), .string(ids[0])])
      #expect(found.map { $0["cause"] } == ["dead", "removed"])
      #expect(found.map { $0["handle"] } == ["…abf2", .null] && found.map { $0["platform"] } == ["apns", .null])
      #expect(found[0]["restorableUntil"]?.text != nil && found[1]["restorableUntil"] == .null)
      #expect(!reply.text.contains(handles[1]) && reply["Cache-Control"] == "no-store")
      let first = try await app.request(.get, path + "&limit=1", as: "opal").json
      let cursor = try #require(first["next"]?.text)
      let second = try await app.request(.get, path + "&limit=1&cursor=\(cursor)", as: "opal").json
      #expect((first["tombstones"]?.elements ?? []) + (second["tombstones"]?.elements ?? []) == found)
      #expect(second["next"] == .null)
      for (query, name) in [
        ("", "user"), ("?user=bob&limit=0", "limit"), ("?user=bob&cursor=1", "cursor"), ("?user=b&x=1", "x"),
      ] {
        try await app.request(.get, "/api/tombstones\(query)", as: "opal")
          .expectProblem(400, "invalidParameter", naming: name)
      }
    }
  }
}
