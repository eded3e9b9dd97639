import GRDB
import Store

@testable import Registry

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

  private static func file(_ session: Session) throws -> Database {
    guard case .sqlite(let db) = session.engine else { throw OtherEngine() }
    return db
  }

  private static func connection(_ session: Session) throws -> PostgreSQLConnection {
    guard case .postgreSQL(let connection) = session.engine else { throw OtherEngine() }
    return connection
  }
}
