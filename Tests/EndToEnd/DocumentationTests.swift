import Foundation
import Testing

@testable import fanfare_dev

/// Runs the commands of the README and the articles as a reader would.
@Suite struct DocumentationTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The `curl` commands of a page, in order.
  private static func requests(in page: String) throws -> [String] {
    let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
    var (commands, isCode): ([String], Bool) = ([], false)
    var open: String?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") { isCode.toggle() }
      guard isCode, !line.hasPrefix("```") else { continue }
      let command = (open ?? "") + line.trimmingPrefix("$ ") + "\n"
      open = line.hasSuffix("\\") || line.hasSuffix("|") ? command : nil
      if open == nil, command.contains(/\bcurl -/) { commands.append(command) }
    }
    return commands
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")), .timeLimit(.minutes(3)))
  func everyDocumentedRequestSucceeds() async throws {
    try await withDirectory("documentation") { directory in
      let demo = try ChildProcess(["demo", "--sends", "1"], name: "demo", environment: [:], directory: directory)
      defer { demo.destroy() }
      // The addresses of the API and of the operations listener.
      var bases: [String] = []
      while bases.isEmpty {
        bases = try await demo.line().matches(of: /http:\/\/127\.0\.0\.1:\d+/).map { String($0.output) }
      }
      let (caller, operations) = (Caller(base: bases[0]), Caller(base: try #require(bases.last)))
      try await eventually("the demo to be ready") { try await operations.get("/readyz").status == 200 }
      #expect(try Self.requests(in: "README.md").count == 1)
      for page in ["README.md"] + ["HTTPAPI", "Broadcasts"].map({ "Sources/fanfare/Documentation.docc/\($0).md" }) {
        // `ID` is a placeholder for an id from an earlier response.
        for request in try Self.requests(in: page) where !request.contains("/ID") {
          let command = request.replacing("http://127.0.0.1:8080", with: caller.base)
            .replacing(/\bcurl -/, with: "curl -sS -o /dev/null -w '%{http_code}' -")
          let status = try await Self.run(command)
          #expect(status.hasPrefix("2"), "\(page): \(request)\(status)")
        }
      }
    }
  }

  private static func run(_ command: String) async throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", command]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    defer { process.waitUntilExit() }
    return String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
  }
}
