import Store
import Support
import Testing

@testable import fanfare_dev

@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(1))) struct BenchDatabaseTests {
  /// Control-C cancels the run; a server named by the user must not keep its schemas.
  @Test func cancelledRunLeavesNothingOnNamedServer() async throws {
    try await TestPostgreSQL.withSchema { server in
      let pool = try PostgreSQLPool(server, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      @Sendable func isThere(_ schema: Substring) async throws -> Bool {
        let statement = PreparedStatement("SELECT 1 FROM pg_namespace WHERE nspname = '\(schema)'")
        return try await pool.read { try $0.query(statement).count == 1 }
      }
      var options = BenchOptions(scenarios: [.ledger], pairs: 1, connections: [1], isQuick: true)
      options.postgres = server.connection
      let (made, make) = AsyncStream.makeStream(of: String.self)
      let (held, release) = AsyncStream.makeStream(of: Void.self)
      defer { release.finish() }
      let run = Task { [options] in
        defer { make.finish() }
        try await BenchRig.with(options) { rig in
          try await BenchDatabase(rig)?.withEmptySchema { connection in
            make.yield(connection)
            // Runs until it is cancelled.
            for await _ in held {}
            try Task.checkCancellation()
          }
        }
      }
      let connection = try #require(await made.first { _ in true })
      let schema = try #require(connection.firstMatch(of: /bench_\w+_empty/)).output
      #expect(try await isThere(schema))
      run.cancel()
      await #expect(throws: CancellationError.self) { try await run.value }
      #expect(try await !isThere(schema))
    }
  }
}
