import FanfareCore
import Operations
import Support
import Testing

@testable import FrontEnd

/// Lists of sends, and reports and control of broadcasts.
@Suite(.timeLimit(.minutes(2))) struct TrackingTests {
  private let id = SendID.random()
  private let time = UnixTime(milliseconds: 1_795_248_000_000)

  private func report(
    _ id: SendID? = nil, state: SendReport.State = .accepted, sender: String? = "alice", isBroadcast: Bool = true,
    counts: [Platform: [DeviceResult.Outcome: Int]] = [:]
  ) -> SendReport {
    SendReport(
      id: id ?? self.id, hub: .default, state: state, sender: sender, audience: isBroadcast ? "news" : "username:bob",
      isBroadcast: isBroadcast, acceptedAt: time, settledAt: nil, counts: counts, devices: nil)
  }

  private func steer(_ app: Harness, _ verb: String, as user: String = "alice", id: SendID? = nil) async throws -> Reply
  {
    try await app.request(.post, "/api/sends/\(id ?? self.id)/\(verb)", as: user)
  }

  @Test func reportHasProgressOfARunningBroadcast() async throws {
    let history = ScriptedHistory(reports: [report(counts: [.fcm: [.delivered: 700]])])
    try await Harness.run({ $0.history = history }) { app in
      let broadcast = BroadcastID(hub: .default, send: id)
      #expect(try await app.request(.get, "/api/sends/\(id)").json["broadcast"] == nil)
      _ = try await app.registry.plan(broadcast, pages: 40, at: app.clock.now())
      app.clock.advance(by: .seconds(4))
      try await app.registry.finish(Array(0..<7), of: broadcast, at: app.clock.now())
      let reply = try await app.request(.get, "/api/sends/\(id)")
      #expect(
        try reply.json == [
          "id": .string("\(id)"), "state": "accepted", "acceptedAt": "2026-11-21T08:00:00.000Z", "settledAt": nil,
          "counts": ["fcm": ["delivered": 700]], "failures": [], "devices": nil,
          "timeline": [["event": "accepted", "at": "2026-11-21T08:00:00.000Z"]],
          "broadcast": [
            // Seven pages in four seconds: 33 more take 18.9.
            "pages": 40, "finishedPages": 7, "course": "running", "cause": "accepted", "remainingSeconds": 19,
          ],
        ])
      let paused = try await steer(app, "pause")
      #expect(paused.status == 200 && paused["Cache-Control"] == "no-store")
      #expect(
        try paused.json["broadcast"] == [
          "pages": 40, "finishedPages": 7, "course": "paused", "cause": "caller", "remainingSeconds": nil,
        ])
    }
  }

  @Test func broadcastIsPausedResumedAndCancelledForGood() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report()]) }) { app in
      let broadcast = BroadcastID(hub: .default, send: id)
      // Not divided into pages, or not begun.
      for (verb, course) in [("pause", BroadcastControl.State.paused), ("resume", .running)] {
        #expect(try await steer(app, verb).status == 202)
        #expect(try await app.registry.controls(of: [broadcast]) == [BroadcastControl(course, because: .caller)])
      }
      _ = try await app.registry.plan(broadcast, pages: 40, at: app.clock.now())
      for (verb, user, course) in [
        ("pause", "alice", BroadcastControl.State.paused), ("pause", "opal", .paused), ("resume", "opal", .running),
        ("resume", "alice", .running), ("cancel", "alice", .cancelled), ("cancel", "opal", .cancelled),
      ] {
        let reply = try await steer(app, verb, as: user)
        #expect(reply.status == 200)
        #expect(try reply.json["broadcast"]?["course"] == .string(course.rawValue))
        #expect(try await app.registry.controls(of: [broadcast]) == [BroadcastControl(course, because: .caller)])
      }
      try await app.registry.finish(Array(0..<40), of: broadcast, at: app.clock.now())
      for verb in ["pause", "resume"] { try await steer(app, verb).expectProblem(409, "alreadyEnded") }
      let again = try await steer(app, "cancel")
      #expect(again.status == 200, "the history lags behind")
      #expect(try again.json["broadcast"]?["course"] == "cancelled")
    }
  }

  @Test func steeringAnEndedOrSingleSendIsAConflict() async throws {
    let states = SendReport.State.allCases.filter { ![.accepted, .scheduled].contains($0) }
    let ended = states.map { report(.random(), state: $0) }
    let single = report(.random(), isBroadcast: false)
    let finished = report(.random())
    try await Harness.run({ $0.history = ScriptedHistory(reports: ended + [single, finished]) }) { app in
      // The history does not contain the end of the last page yet.
      let broadcast = BroadcastID(hub: .default, send: finished.id)
      _ = try await app.registry.plan(broadcast, pages: 1, at: app.clock.now())
      try await app.registry.finish([0], of: broadcast, at: app.clock.now())
      for verb in ["pause", "resume", "cancel"] {
        for send in ended + [finished] {
          let reply = try await steer(app, verb, id: send.id)
          guard verb == "cancel", send.state == .cancelled else {
            reply.expectProblem(409, "alreadyEnded")
            continue
          }
          #expect(reply.status == 200, "it is already cancelled")
          #expect(try reply.json["state"] == "cancelled")
        }
        try await steer(app, verb, id: single.id).expectProblem(409, "notSteerable")
        try await steer(app, verb, id: .random()).expectProblem(404, "notFound")
        for user in ["bob", "sandy"] {
          try await steer(app, verb, as: user, id: finished.id).expectProblem(404, "notFound")
        }
        try await app.request(.post, "/api/sends/1/\(verb)").expectProblem(404, "notFound")
      }
      #expect(
        try await app.registry.controls(of: ended.map { BroadcastID(hub: .default, send: $0.id) }).allSatisfy {
          $0 == .initial
        })
    }
    try await Harness.run({ $0.history = ScriptedHistory(isReadable: false) }) { app in
      try await steer(app, "pause").expectProblem(503, "historyUnavailable")
      try await app.request(.get, "/api/sends").expectProblem(503, "historyUnavailable")
    }
  }

  private func limit(
    _ app: Harness, _ body: String = #"{"maxPerSecond":500}"#, as user: String = "alice", id: SendID? = nil
  ) async throws -> Reply {
    try await app.request(.post, "/api/sends/\(id ?? self.id)/rate", as: user, body: body)
  }

  @Test func rateOfABroadcastIsChangedByItsSenderAndOperators() async throws {
    let log = LogRecorder()
    try await Harness.run({
      $0.history = ScriptedHistory(reports: [report()])
      $0.security = SecurityLog(logger: log.logger)
    }) { app in
      let broadcast = BroadcastID(hub: .default, send: id)
      #expect(try await limit(app).status == 202, "no worker has begun")
      let plan = BroadcastPlan(pages: 10, segments: 2, rate: .perSecond(9))
      _ = try await app.registry.plan(broadcast, plan, at: app.clock.now())
      try await app.registry.finish([0, 1, 7], of: broadcast, at: app.clock.now())
      _ = try await steer(app, "pause")
      for (body, user, rate) in [
        (#"{"maxPerSecond":7}"#, "alice", 7), (#"{"maxPerSecond":null}"#, "opal", nil),
        (#"{"maxPerSecond":10000000}"#, "opal", 10_000_000),
      ] as [(String, String, Int?)] {
        let reply = try await limit(app, body, as: user)
        #expect(reply.status == 200, "\(reply.text)")
        #expect(
          try reply.json["broadcast"] == [
            "pages": 10, "finishedPages": 3, "course": "paused", "cause": "caller", "remainingSeconds": nil,
            "maxPerSecond": rate.map { .number(Double($0)) } ?? .null,
            "segments": [
              ["firstPage": 0, "pages": 5, "finishedPages": 2], ["firstPage": 5, "pages": 5, "finishedPages": 1],
            ],
          ])
        #expect(try await app.registry.controls(of: [broadcast]).first?.rate == BroadcastRate(rate))
      }
      #expect(log.text.contains(#""maxPerSecond": 7"#) && log.text.contains(#""maxPerSecond": unlimited"#))
      for body in [
        "{}", #"{"maxPerSecond":0}"#, #"{"maxPerSecond":10000001}"#, #"{"maxPerSecond":"1"}"#,
        #"{"maxPerSecond":1,"maxPerSecond":2}"#,
      ] {
        try await limit(app, body).expectProblem(400, "invalidField", naming: "maxPerSecond")
      }
      try await limit(app, #"{"maxPerSecond":1,"rate":2}"#).expectProblem(400, "invalidField", naming: "rate")
      try await limit(app, as: "bob").expectProblem(404, "notFound")
      try await limit(app, as: ScopedDemo.user([.readAll])).expectProblem(403, "forbidden", naming: "operate")
      try await app.registry.finish(Array(0..<10), of: broadcast, at: app.clock.now())
      try await limit(app).expectProblem(409, "alreadyEnded")
    }
  }

  @Test func onlyAnAcceptedBroadcastHasARate() async throws {
    let reports =
      SendReport.State.allCases.map { report(.random(), state: $0) } + [report(.random(), isBroadcast: false)]
    try await Harness.run({ $0.history = ScriptedHistory(reports: reports) }) { app in
      for report in reports where report.state != .accepted || !report.isBroadcast {
        let isSingle = !report.isBroadcast || report.state == .scheduled
        try await limit(app, id: report.id).expectProblem(409, isSingle ? "notSteerable" : "alreadyEnded")
      }
      let cancelled = BroadcastID(hub: .default, send: reports[1].id)
      _ = try await app.registry.control(cancelled, BroadcastControl(.cancelled, because: .caller), at: app.clock.now())
      try await limit(app, id: reports[1].id).expectProblem(409, "alreadyEnded")
    }
  }

  @Test func operatorsListAllSendsAndUsersTheirOwn() async throws {
    let reports = [
      report(.random()), report(.random(), state: .settled, isBroadcast: false, counts: [.apns: [.delivered: 1]]),
      report(.random(), sender: "bob"), report(.random(), sender: nil),
    ]
    try await Harness.run({ $0.history = ScriptedHistory(reports: reports) }) { app in
      func list(_ query: String, as user: String) async throws -> (ids: [SendID], next: String?) {
        let reply = try await app.request(.get, "/api/sends\(query)", as: user)
        #expect(reply.status == 200 && reply["Cache-Control"] == "no-store")
        guard case .array(let sends) = try reply.json["sends"] else { throw UnexpectedReply(text: reply.text) }
        return (sends.compactMap { $0["id"]?.text.flatMap { SendID($0) } }, try reply.json["next"]?.text)
      }
      #expect(try await list("", as: "alice").ids == [reports[0].id, reports[1].id])
      #expect(try await list("?state=settled", as: "alice").ids == [reports[1].id])
      #expect(try await list("?kind=broadcast", as: "alice").ids == [reports[0].id])
      #expect(try await list("?kind=single&state=settled", as: "alice").ids == [reports[1].id])
      #expect(try await list("", as: "carol").ids == [])
      let first = try await list("?limit=3", as: "opal")
      #expect(first.ids == reports[..<3].map(\.id))
      let second = try await list("?limit=3&cursor=\(try #require(first.next))", as: "opal")
      #expect(second.ids == [reports[3].id] && second.next == nil)
      let whole = try await app.request(.get, "/api/sends?state=settled", as: "opal").json
      #expect(
        whole == [
          "sends": [
            [
              "id": .string("\(reports[1].id)"), "sender": "alice", "to": "username:bob", "state": "settled",
              "acceptedAt": "2026-11-21T08:00:00.000Z", "settledAt": nil, "counts": ["apns": ["delivered": 1]],
            ]
          ], "next": nil,
        ])
      for (query, name) in [
        ("state=done", "state"), ("kind=big", "kind"), ("user=a:b", "user"), ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("cursor=", "cursor"), ("cursor=\(String(repeating: "é", count: 24))", "cursor"), ("limit=1&limit=2", "limit"),
        ("from=yesterday", "from"), ("until=2026-11-21", "until"),
        ("from=2026-11-21T08:00:00Z&until=2026-11-21T08:00:00Z", "until"), ("stat=settled", "stat"),
        ("users=a", "users"),
      ] {
        try await app.request(.get, "/api/sends?\(query)").expectProblem(400, "invalidParameter", naming: name)
      }
    }
  }

  @Test func cursorRoundTrips() {
    for position in [
      SendQuery.Position(acceptedAt: time, send: id), .init(acceptedAt: UnixTime(milliseconds: -1), send: .random()),
    ] {
      #expect(SendQuery.Position(cursor: position.cursor) == position)
      #expect(SendQuery.Position(cursor: String(position.cursor.dropLast())) == nil)
    }
  }
}
