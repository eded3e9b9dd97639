import FanfareCore
import RDKafka
import Support
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct SecurePushTests {
  @Test func onlyTheRecipientReadsASecurePayload() async throws {
    try await Harness.runWithKafka { app, kafka, topics in
      let payload = "top \"secret\" <&> 👾\n\u{0}end"
      let reply = try await app.request(.post, "/api/notifications/secure?to_tag=bob", body: try JSON.encoded(payload))
      #expect(reply.status == 200)
      let send = try reply.sendID()
      #expect(reply["Location"] == "/api/sends/\(send)")
      #expect(try reply.json == ["id": .string("\(send)")])

      let stored = try await kafka.sends(in: topics, count: 1)[0]
      #expect(stored.send.id == send && stored.key == "username:bob")
      #expect(stored.send.audience == .user("bob") && stored.send.platforms == .all)
      #expect(stored.send.timeToLive == 24 * 3600, "the announcement expires with the payload")
      let apns = try JSON(stored.send.content.apns ?? [])
      let id = try #require(apns["secureId"]?.text)
      #expect(apns == ["aps": ["content-available": 1], "secureId": .string(id)])
      #expect(try JSON(stored.send.content.fcm ?? []) == ["data": ["secureId": .string(id)]])
      #expect(stored.send.content.wns == id)
      #expect(SecurePayloadID(id) != nil && id != "\(send)")

      for user in ["alice", "carol", "opal", "Bob"] {
        try await app.request(.get, "/api/notifications/\(id)", as: user).expectProblem(404, "notFound")
      }
      for unknown in ["\(SecurePayloadID.random())", "1", "\(send)"] {
        try await app.request(.get, "/api/notifications/\(unknown)", as: "bob").expectProblem(404, "notFound")
      }
      // HEAD does not count as reading.
      let head = try await app.request(.head, "/api/notifications/\(id)", as: "bob")
      let first = try await app.request(.get, "/api/notifications/\(id)", as: "bob")
      #expect(head.status == 200 && head.body.isEmpty && head["Content-Length"] == "\(first.body.count)")
      #expect(try await app.request(.head, "/api/notifications/\(SecurePayloadID.random())", as: "bob").status == 404)
      #expect(first.status == 200 && first["Cache-Control"] == "no-store")
      #expect(try first.json == ["Id": .string(id), "Payload": .string(payload), "Read": false])
      let second = try await app.request(.get, "/api/notifications/\(id.uppercased())", as: "bob")
      #expect(try second.json == ["Id": .string(id), "Payload": .string(payload), "Read": true])

      app.clock.advance(by: .seconds(24 * 3600 - 1))
      #expect(try await app.request(.get, "/api/notifications/\(id)", as: "bob").status == 200)
      app.clock.advance(by: .seconds(1))
      try await app.request(.get, "/api/notifications/\(id)", as: "bob").expectProblem(404, "notFound")
    }
  }

  @Test func unannouncedPayloadIsDiscardedUnlessKafkaMayHaveTheSend() async throws {
    let store = CountingStore()
    let sink = RecordingSink { _ in .init(code: .notPersisted, message: "no broker") }
    try await Harness.run({
      $0.sink = sink
      $0.secureStore = store
    }) { app in
      try await app.request(.post, "/api/notifications/secure?to_tag=bob", body: #""x""#)
        .expectProblem(503, "kafkaUnavailable")
      #expect(store.kept == 0 && store.stored == 1)
    }
    // Kafka may have the announcement: the payload stays.
    let unsure = RecordingSink { _ in .init(code: .possiblyPersisted, message: "no answer") }
    try await Harness.run({
      $0.sink = unsure
      $0.secureStore = store
    }) { app in
      try await app.request(.post, "/api/notifications/secure?to_tag=bob", body: #""x""#)
        .expectProblem(503, "outcomeUnknown")
      #expect(store.kept == 1)
    }
    try await Harness.run({
      $0.hasRoom = { false }
      $0.secureStore = store
    }) { app in
      try await app.request(.post, "/api/notifications/secure?to_tag=bob", body: #""x""#).expectProblem(
        503, "overloaded")
      #expect(store.stored == 2, "nothing is stored if nothing can be announced")
    }
  }

  @Test func invalidRequestIsRefusedNamingTheParameter() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      try await app.request(.post, "/api/notifications/secure", body: #""x""#)
        .expectProblem(400, "invalidParameter", naming: "to_tag")
      try await app.request(.post, "/api/notifications/secure?to_tag=bob", body: "{}").expectProblem(
        400, "malformedBody")
      try await app.request(.post, "/api/notifications/secure?to_tag=bob", as: "devon", body: #""x""#)
        .expectProblem(403, "forbidden")
      try await app.request(.get, "/api/notifications/secure", as: "bob").expectProblem(405, "methodNotAllowed")
      #expect(sink.isEmpty)
    }
  }
}
