import Foundation
import Operations
import Testing
import Yams

/// Checks the rules of `deploy/monitoring` with `promtool`, and that each alert has tests and a runbook.
@Suite(.enabled(if: Monitoring.promtool != nil, "promtool is not installed; Debian has it in `prometheus`"))
struct AlertTests {
  private struct TestFile: Decodable {
    struct Case: Decodable { let promql_expr_test: [Query] }

    struct Query: Decodable {
      let expr: String
      let exp_samples: [Sample]?
    }

    struct Sample: Decodable { let labels: String }

    let tests: [Case]
  }

  @Test(.timeLimit(.minutes(1))) func promtoolAcceptsConfigurationAndRules() async throws {
    let check = try await Monitoring.run(["check", "config", "prometheus.yaml"])
    #expect(check.status == 0, "\(check.output)")
    // Not only the configuration: it names the rules by a pattern that may match no file.
    for file in try Monitoring.files("rules") { #expect(check.output.contains("rules/\(file.lastPathComponent)")) }
  }

  @Test(.timeLimit(.minutes(1))) func alertsFireAndAreSilentAsTheirCasesSay() async throws {
    let files = try Monitoring.files("tests").map(\.path)
    #expect(!files.isEmpty)
    let tests = try await Monitoring.run(["test", "rules"] + files)
    #expect(tests.status == 0, "\(tests.output)")
  }

  @Test func everyAlertHasACaseInWhichItFiresAndOneInWhichItIsSilent() throws {
    var (firing, silent): (Set<String>, Set<String>) = ([], [])
    for file in try Monitoring.files("tests") {
      for query in try Monitoring.decode(TestFile.self, file).tests.flatMap(\.promql_expr_test) {
        let alert = try #require(query.expr.firstMatch(of: /^ALERTS\{alertname="(\w+)", alertstate="firing"\}$/))
        if query.exp_samples?.isEmpty == false {
          firing.insert(String(alert.output.1))
        } else {
          silent.insert(String(alert.output.1))
        }
      }
    }
    let alerts = Set(try Monitoring.rules().compactMap(\.alert))
    #expect(alerts.count > 15)
    #expect(firing == alerts)
    #expect(silent == alerts)
  }

  @Test func everyAlertSaysHowBadItIsAndWhatToDo() throws {
    let article = try String(
      contentsOf: Monitoring.root.appending(path: "Sources/fanfare/Documentation.docc/Operations.md"), encoding: .utf8)
    let headings = article.split(separator: "\n").filter { $0.hasPrefix("### Fanfare") }.map { $0.dropFirst(4) }
    let alerts = try Monitoring.rules().filter { $0.alert != nil }
    #expect(Set(headings.map(String.init)) == Set(alerts.compactMap(\.alert)))
    for alert in alerts {
      let name = try #require(alert.alert)
      #expect(["warning", "critical"].contains(alert.labels?["severity"]), "\(name)")
      #expect(Set(alert.annotations?.keys.map(\.self) ?? []) == ["summary", "description", "runbook"], "\(name)")
      #expect(
        alert.annotations?["runbook"] == "Sources/fanfare/Documentation.docc/Operations.md#\(name.lowercased())",
        "\(name)")
    }
  }

  /// A query of a metric that does not exist is no error for Prometheus.
  @Test func rulesAskOnlyForMetricsThatExist() throws {
    for rule in try Monitoring.rules() { try Monitoring.expectKnownMetrics(in: rule.expr) }
  }
}

/// The files of `deploy/monitoring`.
enum Monitoring {
  struct Rule: Decodable {
    let alert: String?
    let record: String?
    let expr: String
    let labels: [String: String]?
    let annotations: [String: String]?
  }

  private struct RuleFile: Decodable {
    struct Group: Decodable { let rules: [Rule] }

    let groups: [Group]
  }

  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  static let directory = root.appending(path: "deploy/monitoring")
  static let promtool = find("promtool")

  static func find(_ program: String) -> URL? {
    ["/usr/bin", "/usr/local/bin"].map { URL(filePath: "\($0)/\(program)") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  /// The YAML files of a folder.
  static func files(_ folder: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(
      at: directory.appending(path: folder), includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "yaml" }.sorted { $0.path < $1.path }
  }

  static func decode<Value: Decodable>(_ type: Value.Type, _ file: URL) throws -> Value {
    try YAMLDecoder().decode(type, from: try String(contentsOf: file, encoding: .utf8))
  }

  static func rules() throws -> [Rule] {
    try files("rules").flatMap { try decode(RuleFile.self, $0).groups.flatMap(\.rules) }
  }

  /// Expects that the exporter or a recording rule has every metric that a query names.
  static func expectKnownMetrics(in query: String) throws {
    let recorded = Set(try rules().compactMap(\.record))
    let names = query.matches(of: /\b[a-z_:]*(?:fanfare|process)_[a-z0-9_:]+/).map { String($0.output) }
    #expect(!names.isEmpty || query.contains("up{"), "\(query) names no metric")
    for name in names {
      let isKnown =
        recorded.contains(name)
        || ["", "_bucket", "_count", "_sum"].contains { suffix in
          name.hasSuffix(suffix) && MetricCatalogue.help[String(name.dropLast(suffix.count))] != nil
        }
      #expect(isKnown, "\(name) does not exist")
    }
  }

  /// Runs a program in the directory; `promtool` unless another is given.
  static func run(_ arguments: [String], program: URL? = promtool) async throws -> (status: Int32, output: String) {
    let process = Process()
    let executable: URL = try #require(program)
    process.executableURL = executable
    process.arguments = arguments
    process.currentDirectoryURL = directory
    let file = FileManager.default.temporaryDirectory.appending(path: "monitoring-\(UUID())")
    try Data().write(to: file)
    // A file left in the temporary directory does no harm.
    defer { try? FileManager.default.removeItem(at: file) }
    let output = try FileHandle(forWritingTo: file)
    process.standardOutput = output
    process.standardError = output
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    return (process.terminationStatus, try String(contentsOf: file, encoding: .utf8))
  }
}
