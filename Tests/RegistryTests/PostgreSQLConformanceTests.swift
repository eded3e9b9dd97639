import FanfareCore
import PostgreSQL
import Registry
import Support
import Testing

@Suite(TestPostgreSQL.isThere, .timeLimit(.minutes(2))) struct PostgreSQLConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func keeps(promise: DeviceRegistryConformance) async throws {
    try await withPostgreSQLRegistry { registry, _ in try await promise.check(registry) }
  }
}

/// Runs a test with a registry of its own in a schema of its own; a second `PostgreSQLRegistry` with the configuration
/// shares the tables as another machine would.
func withPostgreSQLRegistry(
  tombstoneLifetime: Duration = .seconds(30 * 86_400),
  _ body: (PostgreSQLRegistry, PostgreSQLConfiguration) async throws -> Void
) async throws {
  try await TestPostgreSQL.withSchema { configuration in
    let registry = try await PostgreSQLRegistry(
      configuration, tombstoneLifetime: tombstoneLifetime, logger: TestPostgreSQL.quietLogger)
    defer { registry.close() }
    try await body(registry, configuration)
  }
}
