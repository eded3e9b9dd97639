import Foundation
import Testing

@testable import fanfare_dev

/// A push that the service asks to repeat later goes through a retry topic; it arrives and counts once.
@Suite(.timeLimit(.minutes(3))) struct RetryTests {
  @Test func deferredPushArrivesOnceThroughRetryTopic() async throws {
    // The service's Retry-After, 2 s, is longer than the longest rest of 1 s.
    let settings = ["FANFARE_KAFKA_RETRY_DELAYS": "1,5", "FANFARE_WORKER_LONGEST_REST": "1"]
    try await Deployment.with(settings) { deployment in
      let worker = try deployment.startWorker()
      let api = try await deployment.startFrontEnd()
      let token = String(repeating: "a1", count: 32)
      let devices = [
        #"{"platform":"ios","instId":"phone","deviceToken":"\#(token)"}"#,
        #"{"platform":"android","instId":"tablet","deviceToken":"tablet-1"}"#,
      ]
      for body in devices {
        #expect(try await api.call("POST", "/api/register", user: "bob", body: body).status == 200)
      }
      let operations = try await deployment.ready(worker)
      let fault =
        #"{"service":"apns","action":"answer","status":429,"reason":"TooManyRequests","retryAfter":2,"count":1}"#
      #expect(try await deployment.simulator.call("POST", "/faults", user: "tester", body: fault).status == 201)

      let answer = try await api.call(
        "POST", "/api/sends", user: "sender", body: #"{"to":{"user":"bob"},"message":{"body":"later"}}"#)
      let id = try #require(try answer.json["id"] as? String)
      let report = try await deployment.settled(id, as: "sender", at: api)
      let counts = report["counts"] as? [String: [String: Int]]
      #expect(counts == ["apns": ["delivered": 1], "fcm": ["delivered": 1]])
      let attempts = (report["devices"] as? [[String: Any]] ?? []).compactMap { $0["attempts"] as? Int }
      #expect(attempts.sorted() == [1, 2])
      #expect(try await deployment.arrivals("apns", token).count == 1)
      #expect(try await deployment.arrivals("fcm", "tablet-1").count == 1)
      let metrics = try await operations.get("/metrics").text
      #expect(metrics.contains(#"fanfare_pushes_deferred_total{hub="default",platform="apns"} 1"#))
      let released = metrics.split(separator: "\n").filter {
        $0.hasPrefix("fanfare_retries_released_total{delay_seconds=")
      }
      #expect(released.count { $0.hasSuffix(" 1") } == 1)
    }
  }
}
