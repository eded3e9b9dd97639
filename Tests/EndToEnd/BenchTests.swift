import Foundation
import Testing

@testable import fanfare_dev

/// The benchmark measures what it says: with small numbers, every push and every record is counted at both ends.
@Suite(.timeLimit(.minutes(15)))
struct BenchTests {
  @Test func everyScenarioCountsWhatItSends() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-bench-test-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    // What is left behind is in the system's temporary directory.
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
    for row in rows {
      let rate = row["perSecond"] as? Double ?? 0
      let times = row["latencies"] as? [[String: Any]] ?? []
      #expect(rate > 0 || !times.isEmpty, "\(row)")
    }
  }

  /// What a program reads is whole, whatever went wrong.
  @Test func failedScenarioKeepsOtherRows() async throws {
    try await withDirectory("bench") { directory in
      let bench = try ChildProcess(
        ["bench", "--quick", "--json", "--scenario", "ledger", "--postgres", "host=/nonexistent"], name: "bench",
        directory: directory, keepsOutput: true)
      defer { bench.destroy() }
      #expect(try await bench.exitStatus() == 1)
      // There are none yet.
      #expect(try bench.output() == #"{"scenarios":[]}"# + "\n")
    }
  }
}
