import GRDB
import Store
import Support

@testable import Registry

/// The engine of a registry's store.
enum RegistryEngine: CaseIterable, Sendable {
  case sqlite, postgreSQL

  /// Those that can be tested here.
  static let available = allCases.filter { $0 == .sqlite || TestPostgreSQL.exists }

  /// Runs a test with a registry on a new store, and with a function that opens it once more, as another process does.
  func withRegistry(
    tombstoneLifetime: Duration = .seconds(30 * 86_400), limits: RegistrationLimits = RegistrationLimits(),
    _ body: (RegistryDatabase, _ reopen: () async throws -> RegistryDatabase) async throws -> Void
  ) async throws {
    switch self {
    case .sqlite:
      let temporary = try TemporaryRegistry { ($0.tombstoneLifetime, $0.limits) = (tombstoneLifetime, limits) }
      try await body(temporary.registry) { try RegistryDatabase(temporary.configuration) }
    case .postgreSQL:
      try await withPostgreSQLRegistry(tombstoneLifetime: tombstoneLifetime, limits: limits) { registry, database in
        try await body(registry) { try await RegistryDatabase(database, logger: TestPostgreSQL.quietLogger) }
      }
    }
  }
}

/// Runs a test with a PostgreSQL registry in a new schema.
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

/// The store's engines, for what the registry itself does not do.
extension RegistryDatabase {
  private struct OtherEngine: Error {}

  func readFile<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await read { try body(Self.file($0)) }
  }

  func writeFile<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await write { try body(Self.file($0)) }
  }

  func readDatabase<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await read { try body(Self.connection($0)) }
  }

  func writeDatabase<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await write { try body(Self.connection($0)) }
  }

  /// The number of rows of a table.
  func count(_ table: String) async throws -> Int? {
    try await read { try $0.first(PreparedStatement("SELECT count(*) FROM \(table)")) { try $0.int(0) } }
  }

  private static func file(_ session: Session) throws -> Database {
    guard case .sqlite(let db) = session.engine else { throw OtherEngine() }
    return db
  }

  private static func connection(_ session: Session) throws -> PostgreSQLConnection {
    guard case .postgreSQL(let connection) = session.engine else { throw OtherEngine() }
    return connection
  }
}
