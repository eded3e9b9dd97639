import Foundation
import Testing

@testable import fanfare_dev

/// Small runs of the benchmark; each scenario compares its counts of pushes and records at both ends.
@Suite(.timeLimit(.minutes(15)))
struct BenchTests {
  @Test func everyScenarioCountsWhatItSends() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-bench-test-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    // A failure to remove it leaves only a temporary directory.
    defer { try? FileManager.default.removeItem(at: directory) }
    let bench = try ChildProcess(["bench", "--quick", "--json"], name: "bench", directory: directory)
    defer { bench.destroy() }
    let line = try await bench.line(within: .seconds(600))
    #expect(try await bench.exitStatus() == 0)
    let report = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: [[String: Any]]])
    let rows = try #require(report["scenarios"])
    let names = Set(rows.compactMap { ($0["scenario"] as? String)?.split(separator: ",").first })
    #expect(
      names == [
        "engine", "single", "tag", "mixed", "latency", "accept", "far away", "backlog", "broadcast", "lanes", "workers",
        "look-up", "ledger", "import",
      ])
    // It needs nothing that may be missing.
    #expect(rows.contains { $0["scenario"] as? String == "broadcast, template" })
    for row in rows {
      let rate = row["perSecond"] as? Double ?? 0
      let times = row["latencies"] as? [[String: Any]] ?? []
      #expect(rate > 0 || !times.isEmpty, "\(row)")
    }
  }

  /// The JSON document on standard output is complete even after a failure.
  @Test func failedScenarioKeepsOtherRows() async throws {
    try await withDirectory("bench") { directory in
      let bench = try ChildProcess(
        ["bench", "--quick", "--json", "--scenario", "ledger", "--postgres", "host=/nonexistent"], name: "bench",
        directory: directory, keepsOutput: true)
      defer { bench.destroy() }
      #expect(try await bench.exitStatus() == 1)
      // This run has no other rows.
      #expect(try bench.output() == #"{"scenarios":[]}"# + "\n")
    }
  }
}
