import Foundation
import Testing

@testable import fanfare_dev

/// A caller repeats a request at another front end.
@Suite(.serialized) struct RepetitionTests {
  private static let phone = String(repeating: "7c", count: 32)

  @Test(.timeLimit(.minutes(3))) func repeatedRequestAtAnotherFrontEndIsPushedOnce() async throws {
    try await Deployment.with { deployment in
      let worker = try deployment.startWorker()
      let (one, other) = (try await deployment.startFrontEnd(), try await deployment.startFrontEnd())
      _ = try await deployment.ready(worker)
      let device = #"{"platform":"ios","instId":"i-1","deviceToken":"\#(Self.phone)"}"#
      #expect(try await one.call("POST", "/api/register", user: "bob", body: device).status == 200)

      func send(_ text: String, key: String, at caller: Caller) async throws -> Caller.Answer {
        try await caller.call(
          "POST", "/api/sends", user: "alice", body: #"{"to":{"user":"bob"},"message":{"body":"\#(text)"}}"#,
          headers: [("Idempotency-Key", key)])
      }
      // First one after the other, then both at once.
      let (first, second) = (try await send("a", key: "1", at: one), try await send("a", key: "1", at: other))
      async let third = send("b", key: "2", at: one)
      async let fourth = send("b", key: "2", at: other)
      let answers = [first, second, try await third, try await fourth]
      #expect(answers.map(\.status) == [202, 202, 202, 202])
      let ids = try answers.map { try #require(try $0.json["id"] as? String) }
      #expect(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2])
      #expect(try await send("c", key: "1", at: other).status == 409)

      // Sends of one user are pushed in order: when the last has arrived, all earlier ones have arrived.
      let last = try #require(try await send("last", key: "3", at: one).json["id"] as? String)
      for id in [ids[0], ids[2], last] {
        #expect(try await deployment.settled(id, as: "alice", at: other)["state"] as? String == "settled")
      }
      let arrived = try await deployment.arrivals("apns", Self.phone).compactMap { payload in
        (((payload as? [String: Any])?["aps"] as? [String: Any])?["alert"] as? [String: Any])?["body"] as? String
      }
      #expect(arrived == ["a", "b", "last"])
    }
  }
}
