import Foundation
import Simulation
import Testing

@testable import fanfare_dev

/// The page that replays a simulation, in a real browser.
@Suite struct TracePageTests {
  @Test(.timeLimit(.minutes(5)), .enabled(if: BrowserScript.isPossible))
  func aBrokenPromiseIsShownWithItsHistory() async throws {
    try await withDirectory("trace") { directory in
      var profile = try #require(Profile.all.first { $0.name == "deaths" })
      (profile.duration, profile.meanTimeBetweenFaults) = (.seconds(30), .seconds(3))
      let page = directory.appending(path: "trace.html")
      let recording = Recording()
      var pushes = 0
      let simulation = Simulation(profile, seed: 7, trace: Trace(recording: recording)) { push, send, process in
        pushes += 1
        return pushes == 300 ? "\(push) of \(send) is pushed by \(process), which is forbidden here" : nil
      }
      let report = simulation.run()
      #expect(report.violations.contains { $0.text.contains("which is forbidden here") })
      try Data(TracePage.html(of: recording, report, profile, seed: 7)).write(to: page)
      #expect(try await BrowserScript.run("trace.py", page.absoluteString, in: directory).contains("events"))
    }
  }
}
