import Foundation
import Testing

@testable import fanfare_dev

/// The operations page in a real browser, against a demo with a broadcast.
///
/// Skipped if Chromium is not installed; `deploy/test` installs it. With `FANFARE_TEST_SCREENSHOTS` the pictures stay
/// in that folder.
@Suite struct ConsolePageTests {
  @Test(.timeLimit(.minutes(5)), .enabled(if: BrowserScript.isPossible))
  func anOperatorSeesAndSteersEverythingAndAStrangerIsRefused() async throws {
    try await withDirectory("console") { directory in
      let demo = try ChildProcess(
        ["demo", "--broadcast", "20000"], name: "demo", environment: ["FANFARE_LOG_LEVEL": "notice"],
        directory: directory)
      defer { demo.destroy() }
      var address: String?
      while address == nil {
        let line = try await demo.line()
        address = line.firstMatch(of: /The operations page: (http:\S+)\/console/).map { String($0.output.1) }
      }
      // The broadcast is under way.
      while try await !demo.line().contains("kill -9") {}
      let output = try await BrowserScript.run("page.py", try #require(address), in: directory)
      #expect(output.contains("resumed"))
      for act in [
        ["session.opened"], ["send.steered", "state=paused"], ["send.steered", "state=running"],
        ["send.steered", "maxPerSecond=250"], ["send.steered", "state=cancelled"], ["deadLetters.redriven", "count=1"],
        ["device.removedOfOther"],
      ] {
        let isLogged = demo.log.split(separator: "\n").contains { line in act.allSatisfy { line.contains($0) } }
        #expect(isLogged, "\(act) is not in the security log: \(demo.log)")
      }
    }
  }
}
