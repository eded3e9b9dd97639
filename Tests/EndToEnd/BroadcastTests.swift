import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// A broadcast in a deployment: observed, paused, and completed although its worker is killed.
@Suite(.serialized) struct BroadcastTests {
  private static let devices = 3_000
  private static let settings = ["FANFARE_WORKER_PAGE_DEVICES": "100", "FANFARE_SIMULATOR_RECORDS_PUSHES": "true"]

  /// Posts a send to all registrations with the tag `news` and without `muted`.
  private func post(_ api: Caller, _ more: String = "") async throws -> String {
    let body = #"{"to":{"expression":"news && !muted"},"message":{"body":"Goal"}\#(more)}"#
    let answer = try await api.call("POST", "/api/sends", user: "alice", body: body)
    #expect(answer.status == 202)
    return try #require(try answer.json["id"] as? String)
  }

  private func broadcast(_ send: String, _ api: Caller) async throws -> [String: Any] {
    try await api.get("/api/sends/\(send)", user: "alice").json["broadcast"] as? [String: Any] ?? [:]
  }

  private func delivered(_ report: [String: Any]) -> Int {
    ((report["counts"] as? [String: Any])?["apns"] as? [String: Any])?["delivered"] as? Int ?? 0
  }

  @Test(.timeLimit(.minutes(5))) func pausedBroadcastIsCompleteAfterWorkerIsKilled() async throws {
    try await Deployment.with(Self.settings) { deployment in
      let registry = deployment.directory.appending(path: "registry.sqlite").path
      let muted = 200
      try await Population.iPhones(
        Self.devices + muted,
        tags: [("news", 0..<Self.devices + muted), ("muted", Self.devices..<Self.devices + muted)]
      ).register(in: registry)
      let first = try deployment.startWorker()
      let api = try await deployment.startFrontEnd()
      _ = try await deployment.ready(first)
      // Twenty seconds in which to pause it.
      let send = try await post(api, #","maxPerSecond":150"#)
      try await eventually("some pages to be finished") {
        (try await broadcast(send, api)["finishedPages"] as? Int ?? 0) >= 3
      }
      #expect(try await api.call("POST", "/api/sends/\(send)/pause", user: "mallory", body: "").status == 404)
      #expect(try await api.call("POST", "/api/sends/\(send)/pause", user: "alice", body: "").status == 200)
      first.destroy()
      let paused = try await broadcast(send, api)
      #expect(paused["course"] as? String == "paused")
      let second = try deployment.startWorker()
      _ = try await deployment.ready(second)
      let rate = try await api.call(
        "POST", "/api/sends/\(send)/rate", user: "alice", body: #"{"maxPerSecond":1000}"#)
      #expect(rate.status == 200, "\(rate.text)")
      #expect(try await api.call("POST", "/api/sends/\(send)/resume", user: "alice", body: "").status == 200)
      let report = try await deployment.settled(send, as: "alice", at: api)
      #expect(report["state"] as? String == "settled")
      #expect(delivered(report) == Self.devices)
      let counts = try await deployment.simulator.get("/counts").json
      let accepted = try #require(counts["accepted"] as? Int)
      // Only the page that was in progress when the worker was killed may be repeated.
      #expect(accepted >= Self.devices && accepted <= Self.devices + 200)
      let end = try await broadcast(send, api)
      #expect(end["pages"] as? Int == end["finishedPages"] as? Int)

      let cancelled = try await post(api, #","maxPerSecond":100"#)
      try await eventually("a page to be finished") {
        (try await broadcast(cancelled, api)["finishedPages"] as? Int ?? 0) >= 1
      }
      #expect(try await api.call("POST", "/api/sends/\(cancelled)/cancel", user: "alice", body: "").status == 200)
      let rest = try await deployment.settled(cancelled, as: "alice", at: api)
      #expect(rest["state"] as? String == "cancelled")
      let after = try #require(try await deployment.simulator.get("/counts").json["accepted"] as? Int)
      #expect(delivered(rest) == after - accepted && delivered(rest) < Self.devices)
      #expect(try await api.call("POST", "/api/sends/\(cancelled)/resume", user: "alice", body: "").status == 409)
      try await eventually("the account to be closed") {
        try await deployment.run(["audit"]).output.hasPrefix("accepted 2 = settled 2 + in flight 0\n")
      }
    }
  }
}
