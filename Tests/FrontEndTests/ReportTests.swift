import FanfareCore
import Testing

@Suite(.timeLimit(.minutes(2))) struct ReportTests {
  private let id = SendID.random()
  private let registration = RegistrationID.random()
  private let time = UnixTime(milliseconds: 1_795_248_000_123)

  private var failures: FailureCounts {
    var failures = FailureCounts()
    failures.add(1, to: .init(.apns, .deviceGone, reason: "Unregistered"))
    failures.add(3, to: .init(.wns, .failed, reason: "throttled"))
    return failures
  }

  private func report(hub: HubName = .default, sender: String? = "alice", state: SendReport.State = .settled)
    -> SendReport
  {
    SendReport(
      id: id, hub: hub, state: state, sender: sender, acceptedAt: time,
      settledAt: state == .accepted ? nil : time + .seconds(1),
      counts: [.apns: [.delivered: 2, .deviceGone: 1], .wns: [.failed: 1], .fcm: [:]], failures: failures,
      devices: [
        DeviceResult(
          registration: registration, platform: .apns, outcome: .deviceGone, reason: "Unregistered", status: 410,
          attempts: 1)
      ])
  }

  @Test func numberOfReasonsIsBounded() {
    var counts = FailureCounts()
    for number in 0..<100 { counts.add(1, to: .init(.fcm, .failed, reason: "r\(number)")) }
    #expect(counts.entries.count == FailureCounts.maximumKinds + 1)
    #expect(counts.entries.first?.kind.reason == FailureCounts.otherReason)
    #expect(counts.entries.reduce(0) { $0 + $1.count } == 100)
  }

  @Test func reportHasStateCountsAndDevices() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report()]) }) { app in
      let reply = try await app.request(.get, "/api/sends/\(id)")
      #expect(reply.status == 200)
      #expect(reply["Content-Type"] == "application/json" && reply["Cache-Control"] == "no-store")
      #expect(
        try reply.json == [
          "id": .string("\(id)"), "state": "settled", "acceptedAt": "2026-11-21T08:00:00.123Z",
          "settledAt": "2026-11-21T08:00:01.123Z",
          "counts": ["apns": ["delivered": 2, "deviceGone": 1], "wns": ["failed": 1]],
          "timeline": [
            ["event": "accepted", "at": "2026-11-21T08:00:00.123Z"],
            ["event": "settled", "at": "2026-11-21T08:00:01.123Z"],
          ],
          "failures": [
            ["platform": "wns", "outcome": "failed", "reason": "throttled", "devices": 3],
            ["platform": "apns", "outcome": "deviceGone", "reason": "Unregistered", "devices": 1],
          ],
          "devices": [
            [
              "registration": .string("\(registration)"), "platform": "apns", "outcome": "deviceGone",
              "reason": "Unregistered",
              "status": 410, "attempts": 1,
            ]
          ],
        ])
      let head = try await app.request(.head, "/api/sends/\(id)")
      #expect(head.status == 200 && head.body.isEmpty)
      #expect(head["Content-Length"] == "\(reply.body.count)")
    }
  }

  @Test(arguments: SendReport.State.allCases)
  func unknownValuesAreNull(state: SendReport.State) async throws {
    let bare = SendReport(
      id: id, hub: .default, state: state, sender: "alice", acceptedAt: nil, settledAt: nil, counts: [:], devices: nil)
    try await Harness.run({ $0.history = ScriptedHistory(reports: [bare]) }) { app in
      let reply = try await app.request(.get, "/api/sends/\(id)")
      #expect(
        try reply.json == [
          "id": .string("\(id)"), "state": .string(state.rawValue), "acceptedAt": nil, "settledAt": nil, "counts": [:],
          "timeline": [], "failures": [], "devices": nil,
        ])
    }
  }

  @Test func onlySenderAndOperatorsSeeAReport() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report()]) }) { app in
      for user in ["alice", "opal"] {
        #expect(try await app.request(.get, "/api/sends/\(id)", as: user).status == 200)
      }
      // To other users the send does not exist.
      let unknown = try await app.request(.get, "/api/sends/\(SendID.random())", as: "bob")
      unknown.expectProblem(404, "notFound")
      for user in ["bob", "devon", "sandy", "Alice"] {
        let reply = try await app.request(.get, "/api/sends/\(id)", as: user)
        reply.expectProblem(404, "notFound")
        #expect(reply.detail == unknown.detail)
      }
      for malformed in ["1", "\(id)x", "%20"] {
        try await app.request(.get, "/api/sends/\(malformed)").expectProblem(404, "notFound")
      }
    }
  }

  @Test func unicodeEquivalentNamesAreDifferentUsers() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report(sender: "ren\u{E9}")]) }) { app in
      #expect(try await app.request(.get, "/api/sends/\(id)", as: "ren\u{E9}").status == 200)
      try await app.request(.get, "/api/sends/\(id)", as: "rene\u{301}").expectProblem(404, "notFound")
    }
  }

  @Test func onlyOperatorsSeeASendWithoutSender() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(reports: [report(sender: nil)]) }) { app in
      try await app.request(.get, "/api/sends/\(id)").expectProblem(404, "notFound")
      #expect(try await app.request(.get, "/api/sends/\(id)", as: "opal").status == 200)
    }
  }

  @Test func unavailableHistoryIsAServerError() async throws {
    try await Harness.run({ $0.history = ScriptedHistory(isReadable: false) }) { app in
      try await app.request(.get, "/api/sends/\(id)").expectProblem(503, "historyUnavailable")
    }
  }
}
