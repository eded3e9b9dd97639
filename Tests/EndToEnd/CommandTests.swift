import Foundation
import Testing

/// The program as somebody meets it on the command line.
@Suite(.serialized) struct CommandTests {
  private func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> (
    status: Int32, lines: [String], errors: String
  ) {
    let process = try RoleProcess(
      arguments, name: arguments.first ?? "fanfare", environment: environment, directory: FileManager.default.temporaryDirectory)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(120))
    var lines: [String] = []
    // The output ends with the process: reading on until there is nothing more.
    while let line = try? await process.line() { lines.append(line) }
    return (status, lines, process.log)
  }

  @Test(arguments: [["api"], ["worker"], ["ledger"], ["simulator"], ["broker"], ["demo"], ["topics", "create"]])
  func everyRoleExplainsItself(command: [String]) async throws {
    let (status, lines, _) = try await run(command + ["--help"])
    #expect(status == 0)
    #expect(lines.contains { $0.hasPrefix("OVERVIEW: ") })
    #expect(lines.contains { $0.contains("USAGE: fanfare \(command.joined(separator: " "))") })
  }

  @Test(arguments: [
    (["worker"], [:], "kafka.bootstrapServers is missing"),
    (["api"], ["FANFARE_API_PORT": "many"], "api.port must be a whole number from 0 to 65535"),
    (["api"], ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"], "hub.default.authentication.file is missing"),
    (
      ["api"],
      [
        "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FANFARE_API_HOST": "0.0.0.0",
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo",
      ], "hub.default.authentication.method cannot be used"
    ),
    (["ledger", "--config", "/nonexistent/fanfare.yaml"], [:], "--config names a file that cannot be read"),
  ])
  func aBadConfigurationEndsARoleByItsKey(command: [String], environment: [String: String], message: String) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let files = ["REGISTRY", "LEDGER"].map { ("FANFARE_\($0)_PATH", directory.appending(path: "\($0).sqlite").path) }
    let (status, _, errors) = try await run(command, environment: environment.merging(files) { first, _ in first })
    #expect(status == 78)
    #expect(errors.contains("fanfare: \(message)"), "\(errors)")
  }

  @Test(.timeLimit(.minutes(3))) func theDemoLosesNothing() async throws {
    let (status, lines, errors) = try await run(["demo", "--once", "--sends", "2000"])
    #expect(status == 0, "\(errors)")
    let last = try #require(lines.last)
    let report = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
    #expect(report["accepted"] as? Int == 2000)
    #expect(report["settled"] as? Int == 2000)
    #expect(report["lost"] as? Int == 0)
    #expect(report["duplicates"] as? Int == 0)
    #expect((report["noTarget"] as? Int ?? 0) >= 40)
    #expect((report["delivered"] as? Int ?? 0) > 2000)
    #expect((report["rejected"] as? Int ?? 0) > 0)
    #expect(lines.contains { $0.contains("arrived     on alice's iPhone") && $0.contains("From bob: Hello from Kafka") })
  }
}
