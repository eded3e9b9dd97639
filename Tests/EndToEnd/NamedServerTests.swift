import Foundation
import Store
import Support
import Testing

@testable import fanfare_dev

/// Fault rows and benchmarks on servers that are given on the command line.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: TestKafka.realServers == nil)) struct NamedServerTests {
  /// Runs a command of `fanfare-dev` with `--kafka` naming a broker in another process.
  private static func run(_ arguments: [String]) async throws -> (status: Int32, output: String, errors: String) {
    try await withDirectory("named") { directory in
      let broker = try ChildProcess(["broker"], name: "broker", directory: directory)
      defer { broker.destroy() }
      let command = try ChildProcess(
        arguments + ["--kafka", try await broker.address()], name: arguments[0], directory: directory,
        keepsOutput: true)
      defer { command.destroy() }
      return (try await command.exitStatus(within: .seconds(500)), try command.output(), command.log)
    }
  }

  @Test(TestPostgreSQL.isAvailable) func faultRowsLeaveNothingBehindOnNamedServers() async throws {
    try await TestPostgreSQL.withSchema { configuration in
      let rows = ["nothing", "poison records", "registry slow", "broker connections cut"]
      let (status, output, errors) = try await Self.run(
        ["faults", "--quick", "--json", "--postgres", configuration.connection, "--row"] + rows)
      #expect(status == 0, "\(errors)")
      let report = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
      #expect(report?["rows"]?.compactMap { $0["fault"] as? String } == ["nothing", "poison records"])
      #expect(errors.contains("Left out: registry slow: "))
      #expect(errors.contains("Left out: broker connections cut: "))
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      let schemas = try await pool.read {
        try $0.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'faults%'").integer(0, 0)
      }
      #expect(schemas == 0)
    }
  }

  @Test func benchmarkCountsEveryPushOnANamedCluster() async throws {
    let (status, output, errors) = try await Self.run(["bench", "--quick", "--json", "--scenario", "single", "workers"])
    #expect(status == 0, "\(errors)")
    let report = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
    #expect(report?["scenarios"]?.count == 2)
  }
}
