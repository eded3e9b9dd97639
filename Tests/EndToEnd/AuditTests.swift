import FanfareCore
import Foundation
import RDKafka
import Testing

@testable import fanfare_dev

/// `fanfare audit` on a running deployment.
@Suite(.serialized) struct AuditTests {
  private func audit(_ deployment: Deployment) async throws -> (status: Int32, report: [String: Any]) {
    let (status, output, errors) = try await deployment.run(["audit", "--json"])
    let report = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]
    return (status, try #require(report, "\(errors)"))
  }

  private func count(_ report: [String: Any], _ name: String) -> Int { report[name] as? Int ?? -1 }

  @Test(.timeLimit(.minutes(3))) func auditAgreesWithEveryKindOfSend() async throws {
    try await Deployment.with { deployment in
      let worker = try deployment.startWorker()
      let api = try await deployment.startFrontEnd()
      let body = #"{"platform":"android","instId":"i-1","deviceToken":"audited"}"#
      #expect(try await api.call("POST", "/api/register", user: "bob", body: body).status == 200)
      _ = try await deployment.ready(worker)
      for number in 0..<40 {
        let user = number % 4 == 3 ? "nobody" : "bob"
        let answer = try await api.call(
          "POST", "/api/notifications?pns=gcm&to_tag=\(user)", user: "alice", body: "\"\(number)\"")
        #expect(answer.status == 200)
        // While the worker dispatches: the audit counts each send exactly once.
        guard number % 20 == 10 else { continue }
        let (status, report) = try await audit(deployment)
        #expect(status == 0, "\(report)")
        #expect(count(report, "accepted") == number + 1)
        #expect(count(report, "accepted") == count(report, "settled") + count(report, "inFlight"))
      }
      // Records that no worker can read, and a send to an unknown hub.
      let topics = deployment.topics
      let stray = SendRequest(
        id: .timeOrdered(at: SystemWallClock().now()), hub: try #require(HubName("elsewhere")),
        acceptedAt: SystemWallClock().now(),
        audience: .user("bob"), content: Content(message: Message(body: "stray")))
      let strayKey = stray.audience.recordKey(of: stray.id, hub: stray.hub)
      try await deployment.produce(
        ["not json", "{}", ""].map { ProducerRecord(topic: topics.sends, key: nil, value: Array($0.utf8)) }
          + [ProducerRecord(topic: topics.sends, key: strayKey, value: stray.encoded())])
      try await eventually("everything to settle") {
        let (status, report) = try await audit(deployment)
        #expect(status == 0, "\(report)")
        return count(report, "settled") == 41 && count(report, "deadLettered") == 4
      }
      let (status, output, _) = try await deployment.run(["audit"])
      #expect(status == 0)
      #expect(output.hasPrefix("accepted 41 = settled 41 + in flight 0\n"))

      // A status record of a send that does not exist.
      let phantom = StatusRecord(
        send: .timeOrdered(at: SystemWallClock().now()), hub: .default, state: .noTarget, sender: nil,
        audience: .user("bob"),
        acceptedAt: SystemWallClock().now(), settledAt: SystemWallClock().now(), devices: [])
      try await deployment.produce([
        ProducerRecord(topic: topics.status, key: Array(phantom.send.description.utf8), value: phantom.encoded())
      ])
      let (failure, report) = try await audit(deployment)
      #expect(failure == 1)
      #expect(count(report, "unannounced") == 1)
      let problem = try #require((report["problems"] as? [[String: Any]])?.first)
      #expect(problem["id"] as? String == phantom.send.description)
      #expect(problem["kind"] as? String == "unannounced")
      #expect(problem["topic"] as? String == topics.status)

      // The note is kept in the ledger's file, which the ledger writes meanwhile.
      let place =
        "\(topics.status)/\(try #require(problem["partition"] as? Int))/\(try #require(problem["offset"] as? Int))"
      let noted = try await deployment.run(["audit", "--acknowledge", place, "--reason", "a trial\u{1B}[2J"])
      #expect(noted.status == 0 && noted.output == "\(place): acknowledged\n", "\(noted)")
      let (sound, later, _) = try await deployment.run(["audit"])
      #expect(sound == 0)
      #expect(later.contains("\(place) \(phantom.send) of hub default: a trial\\u{1b}[2J\n"), "\(later)")
      let (_, known) = try await audit(deployment)
      #expect(count(known, "unannounced") == 0)
      #expect((known["acknowledged"] as? [[String: Any]])?.first?["reason"] as? String == "a trial\u{1B}[2J")
    }
  }
}
