import Logging
import Roles
import Store

/// A schema of one run in a PostgreSQL database.
struct OwnSchema: Sendable {
  let name: String
  /// The connection string of the database.
  private let database: String
  private let logger: Logger

  init(_ name: String, in database: String, logger: Logger) {
    (self.name, self.database, self.logger) = (name, database, logger)
  }

  /// The connection string of a process that sees only this schema, in either of libpq's forms.
  var connection: String {
    guard database.contains("://") else { return "\(database) options='-c search_path=\(name)'" }
    return database + (database.contains("?") ? "&" : "?") + "options=-c%20search_path%3D\(name)"
  }

  /// A pool's configuration for this schema.
  var configuration: PostgreSQLConfiguration {
    var configuration = administration
    configuration.settings["search_path"] = name
    return configuration
  }

  func create() async throws { try await execute("CREATE SCHEMA \(name)") }

  /// Drops the schema with its contents, even in a cancelled task, because it would outlive this process.
  func drop() async throws {
    try await Task { try await execute("DROP SCHEMA IF EXISTS \(name) CASCADE") }.value
  }

  private var administration: PostgreSQLConfiguration {
    var configuration = PostgreSQLConfiguration(connection: database)
    configuration.applicationName = "fanfare-dev"
    configuration.statementTimeout = .seconds(3600)
    return configuration
  }

  private func execute(_ statement: String) async throws {
    let pool = try PostgreSQLPool(administration, logger: logger)
    defer { pool.close() }
    _ = try await pool.withConnection { try $0.execute(statement).affected }
  }
}
