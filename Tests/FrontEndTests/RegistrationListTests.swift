import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// The project's own routes for registrations.
@Suite(.timeLimit(.minutes(2))) struct RegistrationListTests {
  private func ids(_ reply: Reply) throws -> [String] {
    guard case .array(let list)? = try reply.json["registrations"] else { throw UnexpectedReply(text: reply.text) }
    return list.compactMap { $0["id"]?.text }
  }

  private func register(
    _ app: Harness, _ handle: String, tags: [String] = [], as user: String, root: String = ""
  ) async throws -> String {
    let id = try await app.issue(handle: nil, as: user, root: root)
    let reply = try await app.complete(id, handle: handle, tags: tags, as: user, root: root)
    guard reply.status == 200 else { throw UnexpectedReply(text: reply.text) }
    return id
  }

  @Test func userReadsReplacesAndRemovesItsRegistration() async throws {
    try await Harness.run { app in
      let id = try await register(app, "AA01", tags: ["news"], as: "alice")
      let path = "/api/registrations/\(id)"
      let reply = try await app.request(.get, path)
      #expect(reply.status == 200 && reply["Cache-Control"] == "no-store")
      let start = JSON.string("\(app.clock.now())")
      #expect(
        try reply.json == [
          "id": .string(id), "user": "alice", "platform": "apns", "handle": "aa01", "tags": ["news", "username:alice"],
          "registeredAt": start, "createdAt": start, "lastSeen": start,
        ])
      #expect(try await app.request(.get, path, as: "opal").json == reply.json)
      try await app.request(.get, path, as: "bob").expectProblem(404, "notFound")
      for unknown in ["1", "\(RegistrationID.random())"] {
        for method in [.get, .delete] as [Harness.Method] {
          try await app.request(method, "/api/registrations/\(unknown)").expectProblem(404, "notFound")
        }
        try await app.request(.put, "/api/registrations/\(unknown)", body: #"{"platform":"apns","handle":"aa"}"#)
          .expectProblem(410, "gone")
      }
      let replaced = try await app.request(.put, path, body: #"{"platform":"fcm","handle":"t","tags":["sport"]}"#)
      #expect(try replaced.json["handle"] == "t" && replaced.json["tags"] == ["sport", "username:alice"])
      try await app.request(.put, path, as: "bob", body: #"{"platform":"fcm","handle":"u"}"#).expectProblem(410, "gone")
      try await app.request(.put, path, body: #"{"Platform":"fcm","handle":"u"}"#)
        .expectProblem(400, "invalidField", naming: "Platform")
      #expect(try await app.request(.put, path, as: "bob", body: #"{"platform":"fcm","handle":"t"}"#).status == 200)
      try await app.request(.delete, path).expectProblem(404, "notFound")
      #expect(try await app.request(.delete, path, as: "bob").status == 204)
      try await app.request(.get, path, as: "bob").expectProblem(404, "notFound")
      let other = try await register(app, "bb02", as: "alice")
      #expect(try await app.request(.delete, "/api/registrations/\(other)", as: "opal").status == 204)
    }
  }

  @Test func operatorsListAllRegistrationsAndUsersTheirOwn() async throws {
    try await Harness.run { app in
      let one = try await register(app, "aa01", tags: ["news", "beta"], as: "alice")
      let two = try await register(app, "aa02", tags: ["news"], as: "alice")
      let three = try await register(app, "bb01", tags: ["news"], as: "bob")
      _ = try await app.issue(handle: "cc01", as: "carol")
      for (query, user, expected) in [
        ("", "opal", [one, two, three]), ("?user=alice", "opal", [one, two]), ("?tag=news", "opal", [one, two, three]),
        ("?tag=beta", "opal", [one]), ("?user=alice&tag=beta", "opal", [one]), ("?user=bob&tag=beta", "opal", []),
        ("?handle=BB01", "opal", [three]), ("?handle=bb01&user=alice", "opal", []), ("?handle=zz", "opal", []),
        ("?tag=username:bob", "opal", [three]), ("?user=nobody", "opal", []), ("?handle=cc01", "opal", []),
        ("", "alice", [one, two]), ("?user=alice", "alice", [one, two]), ("?tag=news", "alice", [one, two]),
        ("?tag=beta", "alice", [one]), ("?tag=username:bob", "alice", []), ("?handle=aa02", "alice", [two]),
        ("?handle=bb01", "alice", []), ("", "carol", []), ("", "devon", []),
      ] {
        let reply = try await app.request(.get, "/api/registrations\(query)", as: user)
        #expect(reply.status == 200 && reply["Cache-Control"] == "no-store")
        #expect(try ids(reply) == expected.sorted(), "\(query) as \(user)")
        #expect(try reply.json["next"] == .null)
      }
      try await app.request(.get, "/api/registrations?user=bob").expectProblem(403, "forbidden", naming: "user")
      for (query, parameter) in [
        ("user=a:b", "user"), ("user=", "user"), ("tag=a%20b", "tag"), ("handle=", "handle"),
        ("handle=a%20b", "handle"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"), ("limit=x", "limit"), ("cursor=x", "cursor"), ("cursor=", "cursor"),
        ("users=a", "users"),
        ("tag=a&tag=b", "tag"),
      ] {
        try await app.request(.get, "/api/registrations?\(query)", as: "opal")
          .expectProblem(400, "invalidParameter", naming: parameter)
      }
    }
  }

  @Test func registrationsAreListedInPages() async throws {
    try await Harness.run { app in
      var all: [String] = []
      for number in 0..<7 {
        all.append(try await register(app, "aa0\(number)", tags: number < 5 ? ["some"] : [], as: "alice"))
      }
      for (query, user, expected) in [
        ("", "opal", all), ("", "alice", all), ("tag=some&", "opal", Array(all.prefix(5))),
        ("user=alice&", "opal", all),
        ("tag=some&", "alice", Array(all.prefix(5))),
      ] {
        for limit in [1, 3, 7, 8] {
          var (found, cursor, pages): ([String], String?, Int) = ([], "", 0)
          while let next = cursor, pages < 10 {
            let path = "/api/registrations?\(query)limit=\(limit)" + (next.isEmpty ? "" : "&cursor=\(next)")
            let reply = try await app.request(.get, path, as: user)
            #expect(try ids(reply).count <= limit)
            found += try ids(reply)
            cursor = try reply.json["next"]?.text
            pages += 1
          }
          #expect(found == expected.sorted(), "\(query) by \(limit) as \(user)")
        }
      }
    }
  }
}
