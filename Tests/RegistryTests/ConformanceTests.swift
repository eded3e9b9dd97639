import FanfareCore
import PostgreSQL
import Registry
import Support
import Testing

@Suite struct SQLiteConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func conforms(to promise: DeviceRegistryConformance) async throws {
    let temporary = try TemporaryRegistry()
    try await promise.check(temporary.registry)
  }
}

@Suite(TestPostgreSQL.isThere, .timeLimit(.minutes(2))) struct PostgreSQLConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func conforms(to promise: DeviceRegistryConformance) async throws {
    try await withPostgreSQLRegistry { registry, _ in try await promise.check(registry) }
  }
}

/// Runs a test with a registry in a new schema. A second `PostgreSQLRegistry` with the same configuration shares the
/// tables, like another machine.
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

/// A request to complete an id for an APNs device.
func application(_ id: RegistrationID, _ user: String, _ handle: String, tags: [String] = []) -> RegistrationRequest {
  RegistrationRequest(id: id, hub: .default, user: user, platform: .apns, handle: handle, tags: tags)
}

/// A query of the default hub on every platform.
func query(_ audience: Audience) -> AudienceQuery {
  AudienceQuery(hub: .default, audience: audience, platforms: .all)
}
