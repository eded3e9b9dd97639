import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@testable import fanfare_dev

/// `fanfare dead-letters` on a deployment with dead letters.
@Suite(.serialized) struct DeadLetterTests {
  private func list(_ deployment: Deployment, _ filter: [String] = []) async throws -> [[String: Any]] {
    let (status, output, errors) = try await deployment.run(["dead-letters", "list", "--json"] + filter)
    #expect(status == 0, "\(errors)")
    return try output.split(separator: "\n").compactMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
  }

  @Test(.timeLimit(.minutes(3))) func deadLettersAreListedShownAndRedriven() async throws {
    try await Deployment.with { deployment in
      _ = try await deployment.ready(try deployment.startWorker())
      let topics = deployment.topics
      let stray = SendRequest(
        id: .timeOrdered(at: SystemWallClock().now()), hub: try #require(HubName("elsewhere")),
        acceptedAt: SystemWallClock().now(), audience: .user("bob"),
        content: Content.of(apns: Array(#"{"aps":{"alert":"stray"}}"#.utf8)))
      let strayKey = stray.audience.recordKey(of: stray.id, hub: stray.hub)
      try await deployment.produce([
        ProducerRecord(topic: topics.sends, key: Array("a key".utf8), value: Array("not json, and secret".utf8)),
        ProducerRecord(topic: topics.sends, key: strayKey, value: stray.encoded()),
      ])
      try await eventually("two dead letters") { try await list(deployment).count == 2 }

      let letters = try await list(deployment)
      #expect(Set(letters.compactMap { $0["reason"] as? String }) == ["undecodable", "unknownHub"])
      #expect(letters.allSatisfy { ($0["origin"] as? String)?.hasPrefix("\(topics.sends)/") == true })
      #expect(try await list(deployment, ["--limit", "1"]).count == 1)
      #expect(try await list(deployment, ["--to", "2020-01-01T00:00:00Z"]).isEmpty)
      #expect(try await list(deployment, ["--from", "2020-01-01T00:00:00Z"]).count == 2)
      #expect(try await list(deployment, ["--platform", "apns"]).map { $0["reason"] as? String } == ["unknownHub"])
      #expect(try await list(deployment, ["--platform", "gcm"]).isEmpty)
      let unreadable = try await list(deployment, ["--reason", "undecodable"])
      #expect(unreadable.count == 1)
      let place = try #require(unreadable.first?["letter"] as? String)
      let (_, lines, _) = try await deployment.run(["dead-letters", "list"])
      #expect(lines.contains("\(place)  "))
      #expect(!lines.contains("secret"))

      let (shown, text, _) = try await deployment.run(["dead-letters", "show", place])
      #expect(shown == 0)
      #expect(text.hasPrefix("\(place)  "))
      #expect(text.hasSuffix("\nkey a key\n\nnot json, and secret\n"))
      let (_, record, _) = try await deployment.run(["dead-letters", "show", place, "--json"])
      let kept = try DeadLetter.decode(Array(record.utf8.dropLast())[...])
      #expect(kept.value == Array("not json, and secret".utf8))
      #expect(try await deployment.run(["dead-letters", "show", "31/4000000"]).status == 64)

      // The cause is not removed: a redriven record is dead-lettered again, with the same bytes.
      let (dry, would, _) = try await deployment.run(["dead-letters", "redrive", "--dry-run"])
      #expect(dry == 0)
      #expect(would == "2 records would be redriven\n")
      #expect(try await list(deployment).count == 2)
      let (back, done, _) = try await deployment.run(["dead-letters", "redrive", "--letter", place, "--json"])
      #expect(back == 0)
      #expect(done == #"{"cut":[],"foreign":[],"redriven":1,"redrivenBefore":0,"unreadable":0}"# + "\n")
      try await eventually("the letter to come again") {
        try await list(deployment, ["--reason", "undecodable"]).count == 2
      }
      let again = try #require(try await list(deployment, ["--reason", "undecodable"]).last?["letter"] as? String)
      let (_, second, _) = try await deployment.run(["dead-letters", "show", again, "--json"])
      let copy = try DeadLetter.decode(Array(second.utf8.dropLast())[...])
      #expect((copy.key, copy.value, copy.origin != kept.origin) == (kept.key, kept.value, true))

      // A letter is redriven only once, even if its record was dead-lettered again as a new letter.
      let (twice, none, _) = try await deployment.run(["dead-letters", "redrive", "--letter", place])
      #expect(twice == 0)
      #expect(none == "0 records redriven\n1 were redriven before, see --again\n")
      let dryAgain = ["dead-letters", "redrive", "--letter", place, "--again", "--dry-run"]
      #expect(try await deployment.run(dryAgain).output == "1 records would be redriven\n")
      let rest = try await deployment.run(["dead-letters", "redrive"])
      #expect(rest.output == "2 records redriven\n1 were redriven before, see --again\n")
      try await eventually("the letters to come again") { try await list(deployment).count == 5 }
      #expect(
        try await deployment.run(["dead-letters", "redrive", "--dry-run"]).output
          == "2 records would be redriven\n3 were redriven before, see --again\n")

      // A letter whose value was cut cannot be redriven.
      let large = DeadLetter(
        reason: .tooLarge, detail: "too large", origin: DeadLetter.Origin(topic: topics.sends, partition: 0, offset: 0),
        at: SystemWallClock().now(), key: nil, value: [], valueSize: 900_000)
      try await deployment.produce([ProducerRecord(topic: topics.deadLetter, key: nil, value: large.encoded())])
      let (refused, why, _) = try await deployment.run(["dead-letters", "redrive", "--reason", "tooLarge"])
      #expect(refused == 1)
      #expect(why.hasPrefix("0 records redriven\nrefused "))
      #expect(try await deployment.run(["audit"]).status == 0)

      // A record that is not a dead letter cannot be redriven. Both commands report it.
      try await deployment.produce([ProducerRecord(topic: topics.deadLetter, key: nil, value: Array("no letter".utf8))])
      for command in [["redrive", "--dry-run"], ["list"]] {
        let (_, _, errors) = try await deployment.run(["dead-letters"] + command)
        #expect(errors.contains("fanfare dead-letters: 1 records on the topic are not dead letters"), "\(errors)")
      }
    }
  }
}
