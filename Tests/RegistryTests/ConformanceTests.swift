import FanfareCore
import Foundation
import Registry
import Store
import Support
import Testing

@Suite struct SQLiteConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func conforms(to promise: DeviceRegistryConformance) async throws {
    let temporary = try TemporaryRegistry()
    try await promise.check(temporary.registry)
  }

  @Test(arguments: DeviceRegistryConformance.limited)
  func conformsWithLimits(to promise: DeviceRegistryConformance) async throws {
    let temporary = try TemporaryRegistry { $0.limits = DeviceRegistryConformance.limits }
    try await promise.check(temporary.registry)
  }
}

@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct PostgreSQLConformanceTests {
  @Test(arguments: DeviceRegistryConformance.cases)
  func conforms(to promise: DeviceRegistryConformance) async throws {
    try await withPostgreSQLRegistry { registry, _ in try await promise.check(registry) }
  }

  @Test(arguments: DeviceRegistryConformance.limited)
  func conformsWithLimits(to promise: DeviceRegistryConformance) async throws {
    try await withPostgreSQLRegistry(limits: DeviceRegistryConformance.limits) { registry, _ in
      try await promise.check(registry)
    }
  }
}

/// Runs a test with a registry in a new schema. A second `RegistryDatabase` with the same configuration shares the
/// tables, like another machine.
func withPostgreSQLRegistry(
  tombstoneLifetime: Duration = .seconds(30 * 86_400), limits: RegistrationLimits = RegistrationLimits(),
  _ body: (RegistryDatabase, PostgreSQLConfiguration) async throws -> Void
) async throws {
  try await TestPostgreSQL.withSchema { configuration in
    let registry = try await RegistryDatabase(
      configuration, tombstoneLifetime: tombstoneLifetime, limits: limits, logger: TestPostgreSQL.quietLogger)
    defer { registry.close() }
    try await body(registry, configuration)
  }
}

/// A request to complete an id for an APNs device.
func application(_ id: RegistrationID, _ user: String, _ handle: String, tags: [String] = []) -> DeviceRequest {
  DeviceRequest(id: id, hub: .default, user: user, platform: .apns, handle: handle, tags: tags)
}

/// A query of the default hub on every platform.
func query(_ audience: Audience) -> AudienceQuery {
  AudienceQuery(hub: .default, audience: audience, platforms: .all)
}

/// Expects that each of two registries on the same data sees the changes of the other at once.
func expectSharedChanges(_ one: any DeviceRegistry, _ other: any DeviceRegistry, at now: UnixTime) async throws {
  let id = try await one.issue(hub: .default, handle: "ab01", at: now)
  #expect(try await other.issue(hub: .default, handle: "AB01", at: now) == id)
  for round in 0..<20 {
    let (writer, reader) = round.isMultiple(of: 2) ? (one, other) : (other, one)
    let user = "user\(round)"
    _ = try await writer.complete(application(id, user, "ab01"), at: now)
    let answers = try await reader.resolve([query(.user(user)), query(.user("user\(round - 1)"))])
    #expect(answers.map { $0.map(\.registration) } == [[id], []], "the device belongs to the last user")
  }
  try await other.remove(id, hub: .default, user: "user19", at: now)
  #expect(try await one.registration(id, hub: .default) == nil)
}

/// Collects errors and checks that they contain no stored value.
struct CollectedErrors {
  private var errors: [any Error] = []

  /// Expects the call to throw.
  mutating func collect(_ body: () async throws -> some Sendable) async {
    do {
      _ = try await body()
      Issue.record("nothing was thrown")
    } catch { errors.append(error) }
  }

  /// Expects that many errors, all `RegistryError`, none of which contains the mark.
  func expect(count: Int, without mark: String) {
    #expect(errors.count == count)
    for error in errors {
      #expect(error is RegistryError)
      for text in ["\(error)", String(reflecting: error), error.localizedDescription] { #expect(!text.contains(mark)) }
    }
  }
}
