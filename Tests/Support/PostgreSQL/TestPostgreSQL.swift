import Foundation
package import Logging
package import PostgreSQL
import PrivatePostgreSQL
import Synchronization
package import Testing

/// The server that tests run against: one of its own for each test process, or the one that `FANFARE_TEST_POSTGRES`
/// names with a connection string. Every test has a schema to itself, so tests share it without seeing each other.
package final class TestPostgreSQL: Sendable {
  private let server: PrivateServer?
  private let connection: String

  private static let instance = Mutex<Result<TestPostgreSQL, any Error>?>(nil)
  private static let counter = Atomic(0)

  private init() throws {
    if let connection = ProcessInfo.processInfo.environment["FANFARE_TEST_POSTGRES"], !connection.isEmpty {
      (server, self.connection) = (nil, connection)
    } else {
      let server = try PrivateServer()
      (self.server, connection) = (server, server.connection)
    }
  }

  /// What suites that need a server carry: where there is none they are skipped.
  package static var isThere: ConditionTrait {
    let isNamed = ProcessInfo.processInfo.environment["FANFARE_TEST_POSTGRES"]?.isEmpty == false
    return .enabled(
      if: isNamed || PrivateServer.programs != nil,
      "PostgreSQL is not installed, and FANFARE_TEST_POSTGRES names no server")
  }

  /// The server of this test process; started by the first call.
  package static func shared() throws -> TestPostgreSQL {
    try instance.withLock { instance in
      let result = instance ?? Result { try TestPostgreSQL() }
      instance = result
      return try result.get()
    }
  }

  /// Runs a test with a schema of its own, and leaves nothing of it behind. The connections find the schema without
  /// naming it.
  package static func withSchema<Value>(_ body: (PostgreSQLConfiguration) async throws -> Value) async throws -> Value {
    let server = try shared()
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    let name = "test_\(ProcessInfo.processInfo.processIdentifier)_\(number)"
    var configuration = PostgreSQLConfiguration(connection: server.connection)
    configuration.applicationName = name
    // Hundreds of tests run at once, on two cores.
    configuration.waitLimit = .seconds(60)
    configuration.statementTimeout = .seconds(60)
    configuration.maximumConnections = 4
    var administration = configuration
    administration.maximumConnections = 1
    let pool = try PostgreSQLPool(administration, logger: quietLogger)
    defer { pool.close() }
    _ = try await pool.withConnection { try $0.execute("CREATE SCHEMA \(name)").affected }
    configuration.settings["search_path"] = name
    let result: Result<Value, any Error>
    do { result = .success(try await body(configuration)) } catch { result = .failure(error) }
    _ = try await pool.withConnection { try $0.execute("DROP SCHEMA \(name) CASCADE").affected }
    return try result.get()
  }

  /// Logs what only a person debugging a test wants to see, if `FANFARE_TEST_LOG` is set.
  package static let quietLogger: Logger = {
    var logger = Logger(label: "test.postgresql")
    logger.logLevel = ProcessInfo.processInfo.environment["FANFARE_TEST_LOG"] == nil ? .critical : .debug
    return logger
  }()
}
