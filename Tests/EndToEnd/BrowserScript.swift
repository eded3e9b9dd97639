import Foundation
import Testing

@testable import fanfare_dev

/// A script in the folder `Console` that uses a page in Chromium.
enum BrowserScript {
  /// Whether Chromium is installed; `deploy/test` installs it.
  static let isPossible = ChildProcess.find("chromium") != nil

  /// Runs the script. Its pictures stay in `FANFARE_TEST_SCREENSHOTS`. Returns its output.
  static func run(_ name: String, _ address: String, in directory: URL) async throws -> String {
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Console/\(name)")
    let pictures = ProcessInfo.processInfo.environment["FANFARE_TEST_SCREENSHOTS"] ?? directory.path
    let browser = try ChildProcess(
      [script.path, try #require(ChildProcess.find("chromium")).path, address, pictures], name: name,
      program: try #require(ChildProcess.find("python3")), directory: directory, keepsOutput: true)
    defer { browser.destroy() }
    let status = try await browser.exitStatus(within: .seconds(180))
    let output = try browser.output()
    #expect(status == 0, "\(output) \(browser.log)")
    return output
  }
}
