import FanfareCore
import Foundation
import RDKafka
import Synchronization
import Testing

@testable import fanfare_dev

/// An upgrade of a running deployment, in the order that Operations.md gives, loses nothing.
///
/// The databases and the first records are those that the last release wrote: the golden files of the stored formats.
@Suite(.timeLimit(.minutes(4))) struct UpgradeTests {
  /// The front end that a load balancer would choose, and the sends that callers have posted.
  private final class Traffic: Sendable {
    private let state: Mutex<(frontEnd: Caller, ids: [String], isOver: Bool)>

    init(to frontEnd: Caller) { state = Mutex((frontEnd, [], false)) }

    var frontEnd: Caller { state.withLock { $0.frontEnd } }
    var ids: [String] { state.withLock { $0.ids } }
    var isOver: Bool { state.withLock { $0.isOver } }

    func turn(to frontEnd: Caller) { state.withLock { $0.frontEnd = frontEnd } }
    func add(_ ids: [String]) { state.withLock { $0.ids += ids } }
    func end() { state.withLock { $0.isOver = true } }
  }

  private static func golden(_ path: String) -> URL {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(path: path)
  }

  @Test func rolesAreReplacedUnderLoadAndNothingIsLost() async throws {
    let files = [
      "registry.sqlite": Self.golden("RegistryTests/Golden/registry.db"),
      "ledger.sqlite": Self.golden("LedgerTests/Golden/ledger.db"),
    ]
    // The golden sends are older than any other retention.
    try await Deployment.with(["FANFARE_LEDGER_RETENTION_DAYS": "3650"], files: files) { deployment in
      let old = try String(contentsOf: Self.golden("FanfareCoreTests/Golden/sends.jsonl"), encoding: .utf8)
        .split(separator: "\n")
      try await deployment.produce(
        old.map { ProducerRecord(topic: deployment.topics.sends, key: nil, value: Array($0.utf8)) })
      var workers = [try deployment.startWorker(), try deployment.startWorker()]
      let frontEnd = try deployment.startFrontEndProcess()
      let traffic = Traffic(to: try await Self.caller(of: frontEnd))
      for worker in workers { _ = try await deployment.ready(worker) }

      async let load: Void = Self.post(traffic)
      async let more: Void = Self.post(traffic)
      // The ledger first, and the front end, which writes what all others read, last.
      #expect(try await deployment.ledgerProcess.terminate() == 0)
      _ = try await deployment.ready(try deployment.startLedger())
      for number in workers.indices {
        #expect(try await workers[number].terminate() == 0)
        workers[number] = try deployment.startWorker()
        _ = try await deployment.ready(workers[number])
      }
      let newFrontEnd = try deployment.startFrontEndProcess()
      let new = try await Self.caller(of: newFrontEnd)
      traffic.turn(to: new)
      let before = traffic.ids.count
      try await eventually("sends at the new front end") { traffic.ids.count > before + 50 }
      #expect(try await frontEnd.terminate() == 0)
      traffic.end()
      _ = try await (load, more)

      let ids = traffic.ids
      #expect(before > 0 && Set(ids).count == ids.count)
      try await eventually("the audit to find everything settled") {
        let (status, output, errors) = try await deployment.run(["audit", "--json"])
        let report = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
        try #require(status == 0, "\(output) \(errors)")
        return report["inFlight"] as? Int == 0 && report["accepted"] as? Int == report["settled"] as? Int
          && report["settled"] as? Int ?? 0 >= ids.count + old.count
      }
      // The user has two devices. What the last release left to send has expired.
      let counts = try await deployment.simulator.get("/counts").json
      #expect(counts["accepted"] as? Int == 2 * ids.count && counts["duplicates"] as? Int == 0, "\(counts)")
      // A send that settled under the last release.
      let settled = try await new.get("/api/sends/019f0000-0000-7000-8000-000000000001", user: "operator")
      let state = try settled.json["state"] as? String
      #expect(settled.status == 200 && state == "settled", "\(settled.text)")
    }
  }

  /// Suspends until the front end is ready.
  private static func caller(of frontEnd: ChildProcess) async throws -> Caller {
    let addresses = try await frontEnd.addresses(of: "api", "operations").map { Caller(base: "http://" + $0) }
    try await eventually("the front end to be ready") { try await addresses[1].get("/readyz").status == 200 }
    return addresses[0]
  }

  /// Posts five sends at a time to a user of the golden registry, and waits for them, until the traffic is over.
  private static func post(_ traffic: Traffic) async throws {
    let lines = Array(repeating: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#, count: 5)
    while !traffic.isOver {
      let answer = try await traffic.frontEnd.call(
        "POST", "/api/sends/batch", user: "sender", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      let ids = try answer.text.split(separator: "\n").compactMap {
        try (JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])?["id"] as? String
      }
      try #require(answer.status == 200 && ids.count == lines.count, "\(answer.text)")
      traffic.add(ids)
      // A bounded number of sends waits: the embedded cluster's partitions are small.
      let deadline = ContinuousClock.now + .seconds(60)
      while true {
        try #require(ContinuousClock.now < deadline, "\(ids[0]) does not settle")
        // The front end may just have ended; the next one answers.
        let report = try? await traffic.frontEnd.get("/api/sends/\(ids[4])", user: "sender")
        if let state = try report?.json["state"] as? String, state != "accepted" { break }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }
}
