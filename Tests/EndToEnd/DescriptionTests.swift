import FanfareCore
import Foundation
import FrontEnd
import Testing

@testable import fanfare_dev

/// Lets schemathesis, which knows only the OpenAPI description, call a running front end.
///
/// Skipped if schemathesis is not installed; `deploy/test` installs it.
@Suite struct DescriptionTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let program = root.appending(path: ".build/schemathesis/bin/schemathesis")
  private static let password = "correct-horse"
  /// `openssl passwd -6 -salt fanfare correct-horse`
  private static let hash =
    "$6$fanfare$kXAw2GPUG4zGTfRkpE66ycAHK3NgP/ebHpM9q31.9BSAaW6CM9Cmfv2e/CeE2y/9/R6jT6feH00QcUw4b2GDZ."

  /// No 5xx, no answer that the description does not know, no invalid request that is carried out.
  @Test(.timeLimit(.minutes(10)), .enabled(if: FileManager.default.isExecutableFile(atPath: program.path)))
  func everyAnswerIsAsDescribed() async throws {
    try await withUsers { api, users, directory in
      try await Self.call(api, as: "everything", phases: "examples,coverage,fuzzing", in: directory)
      for user in users.dropFirst() { try await Self.call(api, as: user, phases: "examples", in: directory) }
    }
  }

  /// Schemathesis speaks HTTP/1.1 alone; its hooks replace the transport.
  @Test(.timeLimit(.minutes(10)), .enabled(if: hasHTTP2))
  func everyAnswerIsAsDescribedOverHTTP2() async throws {
    try await withUsers { api, _, directory in
      try await Self.call(
        api, as: "everything", phases: "examples,coverage,fuzzing", in: directory, environment: ["FANFARE_HTTP2": "1"])
    }
  }

  /// Whether the environment of schemathesis has the package h2.
  private static var hasHTTP2: Bool {
    let process = Process()
    process.executableURL = root.appending(path: ".build/schemathesis/bin/python")
    process.arguments = ["-c", "import h2, schemathesis"]
    process.standardError = FileHandle.nullDevice
    // What cannot be run is not installed.
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  /// Runs a deployment whose front end has a user with every scope, and one for each scope beside `device`, which
  /// everyone has.
  private func withUsers(_ body: (Caller, [String], URL) async throws -> Void) async throws {
    try await withDirectory("description") { directory in
      let users =
        [("everything", Scope.allCases)]
        + Scope.allCases.map { ("only-\($0.rawValue.replacing(":", with: "-"))", [$0]) }
      let passwords = directory.appending(path: "htpasswd")
      try users.map { "\($0.0):\(Self.hash)\n" }.joined().write(to: passwords, atomically: true, encoding: .utf8)
      let grants = users.map { "user \($0.0): \($0.1.map(\.rawValue).joined(separator: " "))" }
      let settings = [
        // Wrong credentials are tried at every route.
        "FANFARE_AUTHENTICATION_FAILURES_PER_ADDRESS": "1000000",
        "FANFARE_AUTHENTICATION_FAILURES_PER_USER": "1000000",
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "htpasswd",
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_FILE": passwords.path,
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_EVERYONE": "device",
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_GRANTS": grants.joined(separator: ","),
      ]
      try await Deployment.with(settings) { deployment in
        let worker = try deployment.startWorker()
        let api = try await deployment.startFrontEnd()
        _ = try await deployment.ready(worker)
        try await body(api, users.map(\.0), directory)
      }
    }
  }

  /// Runs schemathesis; its cases are the same in every run. A send is in the history only a moment after it was
  /// accepted, so an object need not be found at once.
  private static func call(
    _ api: Caller, as user: String, phases: String, in directory: URL, environment: [String: String] = [:]
  ) async throws {
    let files = root.appending(path: "Tests/EndToEnd/Schemathesis")
    let process = try ChildProcess(
      [
        "--config-file", files.appending(path: "schemathesis.toml").path, "run",
        root.appending(path: "Sources/FrontEnd/Description/openapi.json").path, "--url", api.base,
        "--auth", "\(user):\(password)", "--phases", phases, "--max-examples", "5", "--max-time", "60",
        "--exclude-checks", "ensure_resource_availability", "--generation-deterministic", "--continue-on-failure",
        "--no-shrink",
        "--no-color",
      ],
      name: "schemathesis",
      environment: environment.merging(["SCHEMATHESIS_HOOKS": files.appending(path: "hooks.py").path]) { $1 },
      program: program, directory: directory, keepsOutput: true)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(180))
    let output = try process.output() + process.log
    #expect(status == 0, "as \(user): \(output)")
  }
}
