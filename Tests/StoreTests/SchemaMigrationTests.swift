import Store
import Support
import Testing

/// Migrations by several processes and releases.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct SchemaMigrationTests {
  private let first: SchemaMigration.Step =
    "CREATE TABLE things (id integer PRIMARY KEY); INSERT INTO things VALUES (1)"
  private let second: SchemaMigration.Step =
    "ALTER TABLE things ADD COLUMN name text; INSERT INTO things VALUES (2)"

  @Test func concurrentProcessesRunEachStepOnce() async throws {
    try await TestPostgreSQL.withSchema { configuration in
      let migration = SchemaMigration(component: "things", steps: [first, second])
      let pools = try (0..<6).map { _ in try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger) }
      try await withThrowingTaskGroup { group in
        for pool in pools { group.addTask { try await migration.apply(to: pool) } }
        try await group.waitForAll()
      }
      #expect(try await ids(pools[0]) == [1, 2])
      for pool in pools { pool.close() }
    }
  }

  @Test func migrationContinuesAfterThePreviousRelease() async throws {
    try await TestPostgreSQL.withSchema { configuration in
      let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      try await SchemaMigration(component: "things", steps: [first]).apply(to: pool)
      let wrong = SchemaMigration(component: "things", steps: [first, second, "SELECT nothing FROM nowhere"])
      await #expect(throws: PostgreSQLError.self) { try await wrong.apply(to: pool) }
      #expect(try await ids(pool) == [1], "all steps or none")
      try await SchemaMigration(component: "things", steps: [first, second]).apply(to: pool)
      try await SchemaMigration(component: "others", steps: ["CREATE TABLE others (id integer)"]).apply(to: pool)
      // The previous release starts again.
      try await SchemaMigration(component: "things", steps: [first]).apply(to: pool)
      #expect(try await ids(pool) == [1, 2])
    }
  }

  private func ids(_ pool: PostgreSQLPool) async throws -> [Int64] {
    try await pool.read { try $0.execute("SELECT array_agg(id ORDER BY id) FROM things").integers(0, 0) }
  }
}
