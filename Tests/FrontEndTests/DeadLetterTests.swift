import FanfareCore
import Operations
import Support
import Testing

@testable import FrontEnd

/// The routes of dead letters.
@Suite(.timeLimit(.minutes(1))) struct DeadLetterTests {
  private let send = SendID.random()
  private let time = UnixTime(milliseconds: 1_795_248_000_000)

  private func letter(
    _ reason: DeadLetter.Reason, hub: String? = "default", offset: Int64 = 7, valueSize: Int? = nil
  ) throws -> DeadLetter {
    var value = Array("not a record".utf8)
    if let hub {
      value =
        SendRequest(
          id: send, hub: try #require(HubName(hub)), sender: "alice", acceptedAt: time,
          audience: .device(.apns, handle: "5ec3e7"), platforms: PlatformSet(.apns),
          content: Content(message: Message(body: "hush"))
        ).encoded()
    }
    return DeadLetter(
      reason: reason, detail: "data.hub is unknown",
      origin: DeadLetter.Origin(topic: "fanfare.sends", partition: 2, offset: offset), at: time,
      key: Array("5ec3e7".utf8), value: value, valueSize: valueSize)
  }

  /// Two hubs; letters of both, of an unknown hub, of no hub, and one that came in through another hub's topic.
  private func store() throws -> ScriptedDeadLetters {
    ScriptedDeadLetters([
      LogPlace(partition: 0, offset: 1): try letter(.tooLarge),
      LogPlace(partition: 0, offset: 2): try letter(.tooLarge, hub: "beta"),
      LogPlace(partition: 0, offset: 3): try letter(.unknownHub, hub: "gone"),
      LogPlace(partition: 0, offset: 4): try letter(.undecodable, hub: nil),
      LogPlace(partition: 0, offset: 5): try letter(.foreignHub, hub: "beta"),
    ])
  }

  private func run(
    _ store: ScriptedDeadLetters, security: SecurityLog = SecurityLog(logger: TestKafka.quietLogger),
    _ body: (Harness) async throws -> Void
  ) async throws {
    let beta = try #require(HubName("beta"))
    try await Harness.run(
      {
        $0.deadLetters = store
        $0.security = security
        $0.hubs = [.default, beta].map { FrontEndHub(name: $0, authenticators: [Harness.authenticator]) }
      }, body)
  }

  @Test func letterIsVisibleInItsHubAndWithoutOneInTheDefaultHub() async throws {
    try await run(try store()) { app in
      func ids(_ path: String) async throws -> [String] {
        let reply = try await app.request(.get, path, as: "opal")
        #expect(reply.status == 200 && reply["Cache-Control"] == "no-store", "\(reply.text)")
        return try reply.json["letters"]?.elements.compactMap { $0["id"]?.text } ?? []
      }
      #expect(try await ids("/api/dead-letters") == ["0-5", "0-4", "0-3", "0-1"])
      #expect(try await ids("/hubs/beta/api/dead-letters") == ["0-2"])
      for (path, isFound) in [("/api/dead-letters/0-2", false), ("/hubs/beta/api/dead-letters/0-2", true)] {
        let reply = try await app.request(.get, path, as: "opal")
        if isFound { #expect(reply.status == 200) } else { reply.expectProblem(404, "notFound") }
      }
      for id in ["0-9", "1", "x-1", "0/1", "-1-2"] {
        try await app.request(.get, "/api/dead-letters/\(id)", as: "opal").expectProblem(404, "notFound")
      }
    }
  }

  @Test func pagesFollowOneAnotherAndTheFirstCountsByReason() async throws {
    try await run(try store()) { app in
      let first = try await app.request(.get, "/api/dead-letters?limit=3", as: "opal").json
      #expect(
        first["counts"] == ["undecodable": 1, "unknownType": 0, "unknownHub": 1, "tooLarge": 1, "foreignHub": 1])
      #expect(first["countsAll"] == true)
      let cursor = try #require(first["next"]?.text)
      let last = try await app.request(.get, "/api/dead-letters?limit=3&cursor=\(cursor)", as: "opal").json
      #expect(last["letters"]?.elements.compactMap { $0["id"]?.text } == ["0-1"])
      #expect(last["next"] == .null && last["counts"] == nil)
      let filtered = try await app.request(.get, "/api/dead-letters?reason=unknownHub", as: "opal").json
      #expect(filtered["letters"]?.elements.compactMap { $0["id"]?.text } == ["0-3"])
      for query in ["reason=x", "limit=0", "limit=201", "cursor=0", "from=1"] {
        try await app.request(.get, "/api/dead-letters?\(query)", as: "opal")
          .expectProblem(400, "invalidParameter", naming: query.split(separator: "=").first.map(String.init))
      }
    }
  }

  @Test func letterShowsItsSendButNoContentAndNoHandle() async throws {
    try await run(try store()) { app in
      let reply = try await app.request(.get, "/api/dead-letters/0-3", as: "opal")
      #expect(
        try reply.json == [
          "id": "0-3", "at": "2026-11-21T08:00:00.000Z", "reason": "unknownHub", "detail": "data.hub is unknown",
          "origin": ["topic": "fanfare.sends", "partition": 2, "offset": 7],
          "valueSize": .number(Double(try letter(.unknownHub, hub: "gone").valueSize)), "isWhole": true,
          "send": .string("\(send)"),
          "record": [
            "hub": "gone", "sender": "alice", "to": "device/apns", "platforms": ["apns"],
            "acceptedAt": "2026-11-21T08:00:00.000Z", "replay": nil,
          ],
        ])
      let unreadable = try await app.request(.get, "/api/dead-letters/0-4", as: "opal").json
      #expect(unreadable["record"] == .null && unreadable["send"] == .null)
      let texts = [
        reply.text, try await app.request(.get, "/api/dead-letters", as: "opal").text,
        try await app.request(.get, "/api/dead-letters/0-4", as: "opal").text,
      ]
      for text in texts { for secret in ["5ec3e7", "hush", "not a record"] { #expect(!text.contains(secret)) } }
    }
  }

  @Test func redriveReachesOnlyTheHubsLettersAndIsRecorded() async throws {
    let log = LogRecorder()
    let store = try store()
    try await run(store, security: SecurityLog(logger: log.logger)) { app in
      let path = "/api/dead-letters/redrive"
      let dry = try await app.request(
        .post, path, as: "opal", body: #"{"ids":["0-1","0-2","0-8"],"dryRun":true}"#)
      #expect(
        try dry.json == [
          "dryRun": true, "redriven": 1, "redrivenBefore": 0, "cut": [], "foreign": [], "missing": ["0-2", "0-8"],
          "isComplete": true, "next": nil,
        ])
      #expect(!log.text.contains("deadLetters.redriven"))
      let real = try await app.request(
        .post, "/hubs/beta" + path, as: "opal", body: #"{"reason":"tooLarge","again":true,"cursor":"0-1_3-4"}"#)
      #expect(try real.json["redriven"] == 1 && real.json["missing"] == nil)
      #expect(log.text.contains("deadLetters.redriven") && log.text.contains("beta"))
      #expect(store.orders.map(\.after) == [nil, DeadLetterPosition([0: 1, 3: 4])])
      #expect(store.orders.map(\.isDryRun) == [true, false] && store.orders.map(\.isRepeated) == [false, true])
      for (body, field) in [
        ("{}", "ids"), (#"{"ids":["0-1"],"reason":"tooLarge"}"#, "ids"), (#"{"ids":[]}"#, "ids"),
        (#"{"ids":["0/1"]}"#, "ids"), (#"{"reason":"x"}"#, "reason"), (#"{"reason":"tooLarge","x":1}"#, "x"),
        (#"{"reason":"tooLarge","dryRun":1}"#, "dryRun"), (#"{"reason":"tooLarge","cursor":"1"}"#, "cursor"),
        (#"{"ids":[\#((0...500).map { #""0-\#($0)""# }.joined(separator: ","))]}"#, "ids"),
      ] {
        try await app.request(.post, path, as: "opal", body: body).expectProblem(400, "invalidField", naming: field)
      }
      #expect(store.orders.count == 2)
    }
  }

  @Test func failuresSayWhatHappened() async throws {
    for (failure, status, code) in [
      (.unavailable, 503, "kafkaUnavailable"), (.busy, 503, "overloaded"), (.tooMuch, 422, "impossible"),
      (.interrupted(redriven: 3, next: DeadLetterPosition([0: 2, 1: 7])), 503, "outcomeUnknown"),
    ] as [(DeadLetterError, Int, String)] {
      let log = LogRecorder()
      try await run(ScriptedDeadLetters(failure: failure), security: SecurityLog(logger: log.logger)) { app in
        let hasNext = code == "outcomeUnknown"
        try await app.request(.get, "/api/dead-letters", as: "opal").expectProblem(status, code, hasNext: hasNext)
        let reply = try await app.request(
          .post, "/api/dead-letters/redrive", as: "opal", body: #"{"reason":"tooLarge"}"#)
        reply.expectProblem(status, code, hasNext: hasNext)
        #expect(try reply.json["next"] == (hasNext ? "0-2_1-7" : nil))
      }
      #expect(log.text.contains("deadLetters.redriven") == (code == "outcomeUnknown"))
    }
  }
}
