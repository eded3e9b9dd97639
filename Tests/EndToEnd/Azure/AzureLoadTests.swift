import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// Many registrations and sends through the Azure door end exact in ledger, audit and devices.
///
/// The size that the documentation names takes a minute in a debug build:
/// `FANFARE_TEST_AZURE=10000x1000 deploy/test --filter AzureLoadTests`
@Suite(.timeLimit(.minutes(30))) struct AzureLoadTests {
  private static let load: AzureLoad = {
    let words = ProcessInfo.processInfo.environment["FANFARE_TEST_AZURE"]?.split(separator: "x").compactMap { Int($0) }
    guard let words, words.count == 2 else { return AzureLoad(registrations: 600, sends: 150) }
    return AzureLoad(registrations: words[0], sends: words[1])
  }()

  @Test func registrationsAndSendsEndExact() async throws {
    try await AzureSettings.withDeployment { deployment, api in
      let load = Self.load
      let door = AzureClient(base: api.base, rule: AzureSettings.fullRule, key: AzureSettings.fullKey)
      try await load.register(through: door)
      let ids = try await load.send(through: door)
      #expect(Set(ids).count == load.sends)
      var total = 0
      for (number, id) in ids.enumerated() {
        let report = try await deployment.settled(id, as: "operator", at: api)
        let counts = (report["counts"] as? [String: [String: Int]] ?? [:]).mapValues { $0["delivered"] ?? 0 }
        let expected = load.pushes(ofSend: number)
        #expect(counts.values.reduce(0, +) == expected, "send \(number): \(report)")
        total += expected
      }
      #expect(total > load.sends)
      let arrived = try await deployment.simulator.get("/counts").json
      #expect(arrived["accepted"] as? Int == total && arrived["duplicates"] as? Int == 0, "\(arrived)")
      let (status, output, errors) = try await deployment.run(["audit", "--json"])
      let audit = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
      #expect(status == 0, "\(errors)")
      #expect(audit["accepted"] as? Int == load.sends && audit["settled"] as? Int == load.sends, "\(audit)")
      #expect(audit["lost"] as? Int == 0 && audit["inFlight"] as? Int == 0, "\(audit)")
      // The registry has exactly these devices.
      let (exported, lines, words) = try await deployment.run(["registrations", "export"])
      #expect(exported == 0, "\(words)")
      #expect(lines.split(separator: "\n").count == load.registrations)
    }
  }
}
