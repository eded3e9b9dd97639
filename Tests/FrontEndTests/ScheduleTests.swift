import FanfareCore
import RDKafka
import Support
import Testing

@testable import FrontEnd

/// Scheduled sends over HTTP.
@Suite(.timeLimit(.minutes(2))) struct ScheduleTests {
  private static let time = "2026-12-01T08:00:00.000Z"

  private func body(_ sendAt: String = time, to: String = #"{"user":"bob"}"#) -> String {
    #"{"to":\#(to),"message":{"body":"b"},"ttl":60,"sendAt":"\#(sendAt)"}"#
  }

  private func schedule(_ app: Harness, _ sendAt: String = time, to: String = #"{"user":"bob"}"#) async throws -> SendID
  {
    let reply = try await app.request(.post, "/api/sends", body: body(sendAt, to: to))
    #expect(reply.status == 202)
    let id = try reply.sendID()
    #expect(try reply.json == ["id": .string("\(id)"), "state": "scheduled"])
    #expect(reply["Location"] == "/api/sends/\(id)")
    return id
  }

  @Test func scheduledSendIsProducedWhenItIsDue() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let id = try await schedule(app, "2026-12-01T10:00:00+02:00")
      #expect(sink.isEmpty)
      let held = try #require(try await app.registry.scheduled(id, hub: .default))
      #expect(held.due == UnixTime(Self.time) && held.scheduledAt == app.clock.now() && held.send.timeToLive == 60)
      #expect(held.send.sender == "alice" && held.send.audience == .user("bob"))
      let expected: JSON = [
        "id": .string("\(id)"), "state": "scheduled", "acceptedAt": "2026-11-21T08:00:00.000Z",
        "sendAt": .string(Self.time),
        "course": "running", "settledAt": nil, "counts": [:], "failures": [], "devices": nil,
        "timeline": [["event": "accepted", "at": "2026-11-21T08:00:00.000Z"]],
      ]
      for user in ["alice", "opal"] {
        #expect(try await app.request(.get, "/api/sends/\(id)", as: user).json == expected)
      }
      try await app.request(.get, "/api/sends/\(id)", as: "bob").expectProblem(404, "notFound")
      let scheduler = Scheduler(
        store: app.registry, sink: sink, topics: Topics(), clock: app.clock, logger: TestKafka.quietLogger)
      app.clock.advance(by: held.due - app.clock.now())
      _ = await scheduler.fireDue()
      #expect(try sink.sends() == [held.send])
      // Until the ledger contains it.
      #expect(try await app.request(.get, "/api/sends/\(id)").json["state"] == "accepted")
      try await app.request(.post, "/api/sends/\(id)/cancel").expectProblem(409, "notSteerable")
    }
  }

  @Test func pastTimeIsSentAtOnceAndFarFutureIsRefused() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for sendAt in ["2026-11-21T08:00:00Z", "2020-01-01T00:00:00Z"] {
        let reply = try await app.request(.post, "/api/sends", body: body(sendAt))
        #expect(reply.status == 202)
        #expect(try reply.json["state"] == "accepted")
      }
      #expect(try sink.sends().map(\.acceptedAt) == [app.clock.now(), app.clock.now()])
      _ = try await schedule(app, "2027-11-21T08:00:00Z")
      for sendAt in ["2027-11-22T08:00:00.001Z", "tomorrow", "2026-12-01", ""] {
        try await app.request(.post, "/api/sends", body: body(sendAt)).expectProblem(
          400, "invalidField", naming: "sendAt")
      }
      try await app.request(
        .post, "/api/sends", body: #"{"to":{"user":"bob"},"message":{"body":"b"},"sendAt":1795248000}"#
      )
      .expectProblem(400, "invalidField", naming: "sendAt")
      #expect(sink.records.count == 2)
    }
  }

  @Test func scheduledSendIsPausedResumedAndCancelled() async throws {
    // Also while the history is unavailable.
    for history in [ScriptedHistory(), ScriptedHistory(isReadable: false)] {
      try await Harness.run({ $0.history = history }) { app in
        let id = try await schedule(app)
        for (verb, user, course) in [
          ("pause", "alice", "paused"), ("pause", "opal", "paused"), ("resume", "alice", "running"),
        ] {
          let reply = try await app.request(.post, "/api/sends/\(id)/\(verb)", as: user)
          #expect(reply.status == 200)
          #expect(try reply.json["course"] == .string(course) && reply.json["state"] == "scheduled")
        }
        try await app.request(.post, "/api/sends/\(id)/cancel", as: "bob")
          .expectProblem(404, "notFound")
        let reply = try await app.request(.post, "/api/sends/\(id)/cancel")
        #expect(reply.status == 200)
        #expect(try reply.json["state"] == "cancelled" && reply.json["course"] == nil)
        #expect(try await app.registry.nextDue() == nil)
        if history.isReadable {
          #expect(try await app.request(.get, "/api/sends/\(id)").json["state"] == "cancelled")
          for verb in ["pause", "resume"] {
            try await app.request(.post, "/api/sends/\(id)/\(verb)").expectProblem(409, "alreadyEnded")
          }
          let again = try await app.request(.post, "/api/sends/\(id)/cancel")
          #expect(again.status == 200)
          #expect(try again.json == reply.json)
        }
      }
    }
  }

  @Test func sendTakenByTheSchedulerCannotBeCancelled() async throws {
    try await Harness.run { app in
      let (id, broadcast) = (try await schedule(app), try await schedule(app, to: #"{"tag":"news"}"#))
      let due = try #require(UnixTime(Self.time))
      _ = try await app.registry.takeDue(9, for: .random(), until: due + .seconds(30), at: due)
      try await app.request(.post, "/api/sends/\(id)/cancel").expectProblem(409, "notSteerable")
      // A broadcast can still be cancelled.
      _ = try await app.registry.plan(BroadcastID(hub: .default, send: broadcast), pages: 40, at: due)
      let reply = try await app.request(.post, "/api/sends/\(broadcast)/cancel")
      #expect(reply.status == 200)
      #expect(try reply.json["broadcast"]?["course"] == "cancelled")
    }
  }

  @Test func scheduledSendsAreListed() async throws {
    try await Harness.run { app in
      var ids: [SendID] = []
      for _ in 0..<3 {
        ids.insert(try await schedule(app), at: 0)
        app.clock.advance(by: .seconds(1))
      }
      func list(_ query: String, as user: String) async throws -> (ids: [SendID], next: String?) {
        let json = try await app.request(.get, "/api/sends?state=scheduled\(query)", as: user).json
        guard case .array(let sends) = json["sends"] else { throw UnexpectedReply(text: "\(json)") }
        #expect(sends.allSatisfy { $0["sendAt"] == .string(Self.time) && $0["to"] == "username:bob" })
        return (sends.compactMap { $0["id"]?.text.flatMap { SendID($0) } }, json["next"]?.text)
      }
      let first = try await list("&limit=2", as: "alice")
      #expect(first.ids == Array(ids[..<2]))
      let second = try await list("&limit=2&cursor=\(try #require(first.next))", as: "opal")
      #expect(second.ids == [ids[2]] && second.next == nil)
      #expect(try await list("", as: "bob").ids == [])
      #expect(try await list("&kind=single", as: "alice").ids == ids)
      #expect(try await list("&kind=broadcast", as: "alice").ids == [])
      #expect(try await list("&user=bob", as: "opal").ids == ids)
    }
  }

  @Test func repeatedRequestIsScheduledOnce() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      func post() async throws -> Reply {
        try await app.request(.post, "/api/sends", body: body(), headers: [("Idempotency-Key", "k")])
      }
      let first = try await post()
      #expect(first.status == 202)
      let id = try first.sendID()
      for _ in 0..<2 { #expect(try await post().body == first.body) }
      #expect(try await app.registry.waiting(SendQuery(hub: .default)).map(\.send.id) == [id])

      // The repetition comes after the scheduled time: the send still goes through the schedule.
      let soon = "2026-11-21T08:00:10.000Z"
      func repeated() async throws -> Reply {
        try await app.request(.post, "/api/sends", body: body(soon), headers: [("Idempotency-Key", "soon")])
      }
      let early = try await repeated()
      app.clock.advance(by: .seconds(20))
      #expect(try await repeated().body == early.body)
      #expect(sink.isEmpty)
      let scheduler = Scheduler(
        store: app.registry, sink: sink, topics: Topics(), clock: app.clock, logger: TestKafka.quietLogger)
      while await scheduler.fireDue() == .zero {}
      #expect(try sink.sends().map(\.id) == [try early.sendID()])
      #expect(try await repeated().body == early.body)
      #expect(await scheduler.fireDue() != .zero)
    }
  }

  @Test func linesOfABatchAreScheduledOneByOne() async throws {
    let sink = RecordingSink { record in
      String(decoding: record.key ?? [], as: UTF8.self) == "username:carol"
        ? .init(code: .queueFull, message: "full") : nil
    }
    try await Harness.run({ $0.sink = sink }) { app in
      let now = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      let lines = [body(), now, now.replacing("bob", with: "carol"), body("never"), body("2026-11-22T08:00:00Z")]
      let reply = try await app.request(
        .post, "/api/sends/batch", body: lines.joined(separator: "\n"), type: "application/x-ndjson",
        headers: [("Idempotency-Key", "k")])
      let answers = try reply.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0) }
      #expect(answers.map { $0["error"]?["code"]?.text } == [nil, nil, "overloaded", "invalidField", nil])
      let waiting = try await app.registry.waiting(SendQuery(hub: .default)).map(\.send.id)
      #expect(Set(waiting.map { JSON.string("\($0)") }) == Set([answers[0], answers[4]].compactMap { $0["id"] }))
      #expect(try sink.sends().map { JSON.string("\($0.id)") } == [answers[1]["id"]])
    }
  }
}
