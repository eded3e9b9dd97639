import FanfareCore
import Foundation
import RDKafka
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct ProblemTests {
  private static let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  /// Every route that needs credentials, with a body.
  private static let routes: [(method: Harness.Method, path: String, body: String?)] = [
    (.post, "/api/register?handle=aa", nil), (.post, "/api/register", "{}"), (.put, "/api/register/1", "{}"),
    (.delete, "/api/register/1", nil), (.post, "/api/notifications?pns=apns&to_tag=bob", #""x""#),
    (.post, "/api/notifications/secure?to_tag=bob", #""x""#), (.get, "/api/notifications/1", nil),
    (.post, "/api/sends", send), (.post, "/api/sends/batch", send), (.get, "/api/sends/\(SendID.random())", nil),
    (.get, "/api/sends", nil), (.post, "/api/sends/\(SendID.random())/cancel", nil),
    (.put, "/api/installations/i", "{}"), (.patch, "/api/installations/i", "[]"), (.get, "/api/installations/i", nil),
    (.delete, "/api/installations/i", nil), (.get, "/api/registrations", nil), (.get, "/api/registrations/1", nil),
    (.put, "/api/registrations/1", "{}"), (.delete, "/api/registrations/1", nil),
  ]

  @Test func missingOrWrongCredentialsAreAnswered401() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for route in Self.routes {
        let anonymous = try await app.request(route.method, route.path, as: nil, body: route.body)
        anonymous.expectProblem(401, "unauthenticated")
        #expect(anonymous["WWW-Authenticate"] == #"Basic realm="fanfare", charset="UTF-8""#)
        try await app.request(
          route.method, route.path, body: route.body, headers: [("Authorization", Harness.basic("alice", "wrong"))]
        ).expectProblem(401, "unauthenticated")
      }
      let encoded = Data("alice:alice".utf8).base64EncodedString()
      for field in [
        "", "Basic", "Basic ", "Basic !!!", "Bearer \(encoded)", encoded,
        "Basic \(Data("alice".utf8).base64EncodedString())",
        "Basic \(Data("a\0:a\0".utf8).base64EncodedString())",
        "Basic \(Data([0xFF, 0x3A, 0xFF]).base64EncodedString())",
        "Basic \(Data(":".utf8).base64EncodedString())", "Basic \(encoded), Basic \(encoded)",
      ] {
        try await app.request(.post, "/api/sends", as: nil, body: Self.send, headers: [("Authorization", field)])
          .expectProblem(401, "unauthenticated")
      }
      for field in ["basic \(encoded)", "BASIC   \(encoded)"] {
        let reply = try await app.request(
          .post, "/api/sends", as: nil, body: Self.send, headers: [("Authorization", field)])
        #expect(reply.status == 202)
      }
      #expect(sink.records.count == 2)
    }
  }

  @Test func unknownPathIs404AndUnknownMethodIs405() async throws {
    try await Harness.run { app in
      for path in [
        "/", "/api", "/api/nothing", "/api/sends/a/b", "/api/register/1/2", "/metrics", "/hubs/other/nothing",
        "/%00%ff",
      ] {
        try await app.request(.get, path, as: nil).expectProblem(404, "notFound")
      }
      for (method, path, allowed) in [
        (.get, "/api/register", "POST"), (.patch, "/api/register/1", "DELETE, PUT"),
        (.put, "/api/notifications", "POST"),
        (.delete, "/api/sends", "GET, HEAD, POST"), (.put, "/api/sends/1", "GET, HEAD"),
        (.options, "/api/sends", "GET, HEAD, POST"),
        (.post, "/api/installations/i", "DELETE, GET, HEAD, PATCH, PUT"), (.post, "/api/registrations", "GET, HEAD"),
        (.post, "/api/notifications/1", "GET, HEAD"), (.put, "/hubs/default/api/sends", "GET, HEAD, POST"),
        (.get, "/api/sends/1/pause", "POST"),
      ] as [(Harness.Method, String, String)] {
        let reply = try await app.request(method, path, as: nil)
        reply.expectProblem(405, "methodNotAllowed", naming: method.rawValue)
        #expect(reply["Allow"] == allowed)
      }
    }
  }

  @Test func validRequestIDIsEchoedAndOthersAreReplaced() async throws {
    try await Harness.run { app in
      for given in ["abc-123_x.y:z/1+2=@", String(repeating: "x", count: 128)] {
        let refused = try await app.request(.get, "/nothing", headers: [("X-Request-Id", given)])
        refused.expectProblem(404, "notFound")
        #expect(refused["X-Request-Id"] == given)
        let accepted = try await app.request(.post, "/api/sends", body: Self.send, headers: [("X-Request-Id", given)])
        #expect(accepted.status == 202 && accepted["X-Request-Id"] == given)
      }
      var made: Set<String> = []
      for given in [nil, "", "two words", "quote\"", "<script>", "é", String(repeating: "x", count: 129)] {
        let reply = try await app.request(
          .post, "/api/sends", body: Self.send, headers: given.map { [("X-Request-Id", $0)] } ?? [])
        let id = try #require(reply["X-Request-Id"])
        #expect(id != given && UUID(uuidString: id) != nil)
        made.insert(id)
      }
      #expect(made.count == 7)
    }
  }

  @Test func wellFormedTraceparentIsPassedOn() async throws {
    let sink = RecordingSink()
    let sound = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    let values: [(String, Bool)] = [
      (sound, true), ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", true),
      ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false), ("ff\(sound.dropFirst(2))", false),
      ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false),
      ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false), ("\(sound)-more", false), ("nonsense", false),
      (String(sound.dropLast()), false),
    ]
    try await Harness.run({ $0.sink = sink }) { app in
      for (value, _) in values {
        let reply = try await app.request(
          .post, "/api/notifications?pns=apns&to_tag=bob", body: #""x""#, headers: [("traceparent", value)])
        #expect(reply.status == 200)
      }
      #expect(try sink.sends().map(\.traceparent) == values.map { $0.1 ? $0.0 : nil })
    }
  }

  /// Every error of Kafka with the problem that the caller gets.
  @Test(arguments: [
    (RDKafkaError.Code.queueFull, 503, "overloaded"), (.messageTooLarge, 413, "tooLarge"),
    (.notPersisted, 503, "kafkaUnavailable"),
    (.possiblyPersisted, 503, "outcomeUnknown"), (.timedOut, 503, "outcomeUnknown"),
    (.unreachable, 503, "kafkaUnavailable"),
    (.unknownTopic, 503, "kafkaUnavailable"), (.unauthorized, 503, "kafkaUnavailable"),
    (.closed, 503, "kafkaUnavailable"),
    (.fatal, 503, "kafkaUnavailable"), (.broker, 503, "kafkaUnavailable"),
  ])
  func everyKafkaErrorHasItsProblem(code: RDKafkaError.Code, status: Int, problem: String) async throws {
    let sink = RecordingSink { _ in RDKafkaError(code: code, message: "marked words") }
    try await Harness.run({ $0.sink = sink }) { app in
      for (path, body) in [("/api/sends", Self.send), ("/api/notifications?pns=apns&to_tag=bob", #""x""#)] {
        let reply = try await app.request(.post, path, body: body)
        reply.expectProblem(status, problem)
        #expect(!reply.text.contains("marked"))
        #expect(reply["Location"] == nil)
      }
    }
  }

  @Test func fullKafkaIsAnsweredOverloadedWithRetryAfter() async throws {
    let sink = RecordingSink()
    try await Harness.run({
      $0.sink = sink
      $0.hasRoom = { false }
    }) { app in
      try await app.request(.post, "/api/sends", body: Self.send).expectProblem(503, "overloaded")
      try await app.request(.post, "/api/notifications?pns=apns&to_tag=bob", body: #""x""#).expectProblem(
        503, "overloaded")
      try await app.request(.post, "/api/sends/batch", body: Self.send, type: "application/x-ndjson").expectProblem(
        503, "overloaded")
      #expect(sink.isEmpty)
      // Requests that need no room succeed.
      #expect(try await app.request(.post, "/api/register").status == 200)
    }
  }

  @Test func registryFailureIsAServerError() async throws {
    struct Marked: Error, CustomStringConvertible { let description = "marked words" }
    for (error, status, code) in [
      (RegistryError(.unavailable, "marked words"), 503, "registryUnavailable"), (Marked(), 500, "internalError"),
      (RegistryError(.unavailable, "marked words", isOutcomeUnknown: true), 503, "outcomeUnknown"),
    ] as [(any Error, Int, String)] {
      try await Harness.run({ $0.registry = BrokenRegistry(error: error) }) { app in
        for reply in [
          try await app.request(.post, "/api/register"),
          try await app.request(.post, "/api/register", body: #"{"platform":"ios","instId":"i","deviceToken":"aa"}"#),
          try await app.complete("\(RegistrationID.random())", handle: "aa"),
          try await app.request(.delete, "/api/register/\(RegistrationID.random())"),
        ] {
          reply.expectProblem(status, code)
          #expect(!reply.text.contains("marked"))
        }
      }
    }
  }
}
