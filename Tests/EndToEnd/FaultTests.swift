import Foundation
import Testing

@testable import fanfare_dev

/// The quick rows of the fault suite: no fault loses a send, and every send counts once.
///
/// Serialized: on an overloaded machine group members miss their deadlines, and then pushes are repeated.
@Suite(.serialized, .timeLimit(.minutes(15))) struct FaultTests {
  @Test func faultsLoseNoSendAndCountEachOnce() async throws {
    try await withDirectory("faults") { directory in
      let faults = try ChildProcess(
        ["faults", "--quick", "--json"], name: "faults", directory: directory, keepsOutput: true)
      defer { faults.destroy() }
      let status = try await faults.exitStatus(within: .seconds(840))
      let report = try JSONSerialization.jsonObject(with: Data(faults.output().utf8)) as? [String: [[String: Any]]]
      let rows = try #require(report?["rows"], "\(faults.lastWords)")
      #expect(rows.count == FaultScenario.all(devices: 1000, outage: .seconds(60)).count { $0.isQuick })
      for row in rows {
        #expect(row["accepted"] as? Int ?? 0 > 0, "\(row)")
        #expect(row["lost"] as? Int == 0, "\(row)")
        #expect(row["inFlight"] as? Int == 0, "\(row)")
        #expect(row["accountingErrors"] as? Int == 0, "\(row)")
      }
      // The status also covers the limits on repeated pushes.
      #expect(status == 0, "\(rows)\n\(faults.lastWords)")
    }
  }

  /// A lost terminal (SIGHUP) ends a run as well, unless it was started with nohup(1).
  @Test(arguments: [("default", SIGINT), ("default", SIGTERM), ("default", SIGHUP), ("ignore", SIGTERM)])
  func interruptedRunLeavesNothingBehind(hangup: String, signal: Int32) async throws {
    try await withDirectory("interrupted") { directory in
      // Sets the handling of SIGHUP explicitly: a child inherits that of the test process.
      let faults = try ChildProcess(
        ["--\(hangup)-signal=HUP", ChildProcess.workshop.path, "faults", "--row", "nothing", "--json"], name: "faults",
        environment: ["TMPDIR": directory.path], program: URL(fileURLWithPath: "/usr/bin/env"), directory: directory,
        keepsOutput: true)
      defer { faults.destroy() }
      @Sendable func deployments() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasPrefix("fanfare-faults-") }
      }
      try await eventually("the deployment's ledger") {
        try deployments().contains {
          FileManager.default.fileExists(atPath: directory.appending(path: "\($0)/ledger/ledger.sqlite").path)
        }
      }
      if hangup == "ignore" { faults.signal(SIGHUP) }
      faults.signal(signal)
      #expect(try await faults.exitStatus() == 128 + signal)
      #expect(try deployments().isEmpty)
      // No row has completed yet.
      #expect(try faults.output() == #"{"rows":[]}"# + "\n")
    }
  }
}
