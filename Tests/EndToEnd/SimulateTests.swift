import Foundation
import Testing

@testable import fanfare_dev

/// A deployment in virtual time: the same seed has the same history, and every promise holds.
@Suite(.serialized) struct SimulateTests {
  @Test func sameSeedGivesSameHistory() async throws {
    var digests: [Substring] = []
    for _ in 0..<2 {
      let output = try await simulate("deaths", seed: 7)
      digests.append(try #require(output.firstMatch(of: /digest ([0-9a-f]+)/)).output.1)
    }
    #expect(digests[0] == digests[1])
  }

  @Test(arguments: ["calm", "deaths", "kafka", "services", "registry", "broadcasts", "everything"])
  func promisesHold(profile: String) async throws {
    #expect(try await simulate(profile, seed: 1).contains("seed 1:"))
  }

  /// The output of a short run of the profile; a failure shows the broken promises.
  private func simulate(_ profile: String, seed: Int) async throws -> String {
    try await withDirectory("simulate") { directory in
      let process = try ChildProcess(
        ["simulate", "--profile", profile, "--seed", "\(seed)", "--until", "20"], name: "simulate", environment: [:],
        program: ChildProcess.workshop, directory: directory)
      defer { process.destroy() }
      let status = try await process.exitStatus(within: .seconds(300))
      var lines: [String] = []
      while let line = try? await process.line() { lines.append(line) }
      let output = lines.joined(separator: "\n")
      #expect(status == 0, "\(output)\n\(process.log)")
      return output
    }
  }
}
