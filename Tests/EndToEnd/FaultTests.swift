import Foundation
import Testing

@testable import fanfare

/// Whatever happens to a deployment, nothing is lost and everything counts once: the rows of the fault suite that are quick.
@Suite(.timeLimit(.minutes(15))) struct FaultTests {
  @Test func nothingIsLostAndEverythingCountsOnce() async throws {
    try await withDirectory("faults") { directory in
      let faults = try ChildProcess(["faults", "--quick", "--json"], name: "faults", directory: directory, keepsOutput: true)
      defer { faults.destroy() }
      let status = try await faults.exitStatus(within: .seconds(840))
      let report = try JSONSerialization.jsonObject(with: Data(faults.output().utf8)) as? [String: [[String: Any]]]
      let rows = try #require(report?["rows"], "\(faults.lastWords)")
      #expect(rows.count == FaultScenario.all(devices: 1000, outage: .seconds(60)).count { $0.isQuick })
      for row in rows {
        #expect(row["accepted"] as? Int ?? 0 > 0, "\(row)")
        #expect(row["lost"] as? Int == 0, "\(row)")
        #expect(row["accountingErrors"] as? Int == 0, "\(row)")
      }
      #expect(status == 0)
    }
  }
}
