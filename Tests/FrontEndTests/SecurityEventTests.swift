import FanfareCore
import Operations
import Support
import Testing

@testable import FrontEnd

/// The events that requests leave in the security log.
@Suite(.timeLimit(.minutes(2))) struct SecurityEventTests {
  @Test func refusalsSteeringAndRemovalsAreRecorded() async throws {
    let log = LogRecorder()
    let security = SecurityLog(logger: log.logger)
    let send = SendID.random()
    let report = SendReport(
      id: send, hub: .default, state: .accepted, sender: "alice", audience: "news", isBroadcast: true,
      acceptedAt: UnixTime(milliseconds: 0), settledAt: nil, counts: [:], devices: nil)
    try await Harness.run({
      $0.security = security
      $0.history = ScriptedHistory(reports: [report])
      $0.hubs = [
        FrontEndHub(
          name: .default, authenticators: [Harness.authenticator], quotas: QuotaPolicy(everyone: .sends(1, burst: 1)))
      ]
    }) { app in
      let body = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      func expectEvent(_ event: SecurityLog.Event, of user: String?, count: Int = 1) {
        let lines = log.text.split(separator: "\n").filter { $0.contains("\(event.rawValue)") }
        #expect(lines.count == count, "\(event)")
        let isComplete = lines.allSatisfy { line in
          line.contains("127.0.0.1") && line.contains("request.id")
            && user.map { line.contains(security.hash(of: $0)) } ?? true
        }
        #expect(isComplete, "\(lines)")
      }
      try await app.request(.get, "/api/sends", as: nil).expectProblem(401, "unauthenticated")
      expectEvent(.unauthenticated, of: nil)
      try await app.request(.get, "/api/sends", as: nil, headers: [("Authorization", Harness.basic("alice", "x"))])
        .expectProblem(401, "unauthenticated")
      expectEvent(.loginFailed, of: "alice")
      try await app.request(.post, "/api/sends", as: "devon", body: body).expectProblem(403, "forbidden")
      expectEvent(.forbidden, of: "devon")
      let lines = try await app.request(
        .post, "/api/sends/batch", as: "alice",
        body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"# + "\n" + body + "\n" + body, type: "application/x-ndjson"
      )
      #expect(lines.status == 200)
      expectEvent(.overQuota, of: "alice")
      try await app.request(.post, "/api/sends", body: body).expectProblem(429, "overQuota")
      expectEvent(.overQuota, of: "alice", count: 2)
      #expect(try await app.request(.post, "/api/sends/\(send)/pause", as: "opal").status == 202)
      expectEvent(.sendSteered, of: "opal")
      for remover in ["alice", "opal"] {
        let id = try await app.issue(handle: "aa01")
        #expect(try await app.complete(id, handle: "aa01").status == 200)
        #expect(try await app.request(.delete, "/api/registrations/\(id)", as: remover).status == 204)
      }
      expectEvent(.othersDeviceRemoved, of: "opal")
      for mark in ["alice", "devon", "opal"] { #expect(!log.text.contains(mark)) }
    }
  }
}
