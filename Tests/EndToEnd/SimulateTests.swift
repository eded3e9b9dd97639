import Foundation
import Testing

@testable import fanfare_dev

/// A deployment in virtual time: the same seed has the same history, and every promise holds.
@Suite(.serialized) struct SimulateTests {
  @Test func sameSeedGivesSameHistory() async throws {
    let outputs = [
      try await simulate("--profile", "deaths", "--seed", "7", "--until", "20"),
      try await simulate("--profile", "deaths", "--seed", "7", "--until", "20", "--page", "/dev/null"),
    ]
    let digests = try outputs.map { try #require($0.firstMatch(of: /digest ([0-9a-f]+)/)).output.1 }
    #expect(digests[0] == digests[1])
  }

  @Test func promisesHoldInEachProfile() async throws {
    let output = try await simulate("--seed", "1", "--until", "20")
    #expect(output.contains(/runs +[0-9]+  all passed/) && output.contains(/broken promises +none/))
  }

  /// Another seed at each time. The output of the test names it.
  @Test func promisesHoldInOneMoreRun() async throws {
    let seed = UInt64.random(in: 0..<1 << 32)
    print("simulate: seed \(seed)")
    _ = try await simulate("--seed", "\(seed)", "--until", "5")
  }

  /// Seeds that once broke a promise or a check. A change of the code gives them another history.
  @Test(arguments: [("everything", 106), ("elections", 21), ("static-members", 21), ("stalls", 12)])
  func runsThatFailedOnceHoldNow(profile: String, seed: Int) async throws {
    _ = try await simulate("--profile", profile, "--seed", "\(seed)")
  }

  /// The output of a run; a failure shows the broken promises.
  private func simulate(_ arguments: String...) async throws -> String {
    try await withDirectory("simulate") { directory in
      let process = try ChildProcess(
        ["simulate"] + arguments, name: "simulate", environment: [:], program: ChildProcess.workshop,
        directory: directory)
      defer { process.destroy() }
      let status = try await process.exitStatus(within: .seconds(300))
      var lines: [String] = []
      // The output ends with the process: read until its end.
      while let line = try? await process.line() { lines.append(line) }
      let output = lines.joined(separator: "\n")
      #expect(status == 0, "\(output)\n\(process.log)")
      return output
    }
  }
}
