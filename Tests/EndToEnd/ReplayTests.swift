import FanfareCore
import Foundation
import RDKafka
import Testing

@testable import fanfare_dev

/// `fanfare replay` on a deployment that has dispatched sends.
@Suite(.serialized) struct ReplayTests {
  @Test(.timeLimit(.minutes(3))) func replayedSendIsDeliveredAgainAndCountedOnce() async throws {
    try await Deployment.with { deployment in
      let worker = try deployment.startWorker()
      let api = try await deployment.startFrontEnd()
      for user in ["bob", "carol"] {
        let body = #"{"platform":"android","instId":"\#(user)","deviceToken":"of-\#(user)"}"#
        #expect(try await api.call("POST", "/api/register", user: user, body: body).status == 200)
      }
      _ = try await deployment.ready(worker)
      var sends: [String] = []
      for user in ["bob", "carol"] {
        let answer = try await api.call(
          "POST", "/api/notifications?pns=gcm&to_tag=\(user)", user: "alice", body: #""hello""#)
        let send = try #require(try answer.json["id"] as? String)
        _ = try await deployment.settled(send, as: "alice", at: api)
        sends.append(send)
      }
      // Wait for the commit: a send above the committed offset still waits and is not replayed.
      let time = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z", "--user", "bob"]
      try await eventually("the positions to be committed") {
        try await deployment.run(["replay", "--dry-run"] + time).output == "1 sends would be dispatched again\n"
      }
      #expect(try await deployment.run(["replay", "--failed-only"] + time).output == "0 sends are dispatched again\n")
      #expect(
        try await deployment.run(["replay", "--platform", "apns"] + time).output == "0 sends are dispatched again\n")
      let (status, output, errors) = try await deployment.run(["replay"] + time)
      #expect(status == 0, "\(errors)")
      #expect(output == "1 sends are dispatched again\n")

      try await deployment.arrived(3)
      #expect(try await deployment.arrivals("fcm", "of-bob").count == 2)
      #expect(try await deployment.arrivals("fcm", "of-carol").count == 1)
      try await eventually("the repeated status") {
        let (status, output, _) = try await deployment.run(["audit"])
        #expect(status == 0)
        return output.hasPrefix("accepted 2 = settled 2 + in flight 0\n") && output.contains("repeated statuses 1\n")
      }

      // A send that waits as a segment of a broadcast is not replayed either.
      try await eventually("the positions to be committed") {
        try await deployment.run(["replay", "--dry-run"] + time).output == "1 sends would be dispatched again\n"
      }
      _ = try await worker.terminate()
      let now = SystemWallClock().now()
      let send = SendRequest(
        id: try #require(SendID(sends[0])), acceptedAt: now, audience: .user("bob"),
        content: Content(message: Message(body: "b"))
      )
      try await deployment.produce([
        ProducerRecord(
          topic: deployment.topics.segments, key: nil,
          value: SegmentRecord(send: send, pages: 2, range: 0..<1).encoded(at: now))
      ])
      #expect(try await deployment.run(["replay", "--dry-run"] + time).output == "0 sends would be dispatched again\n")
    }
  }
}
