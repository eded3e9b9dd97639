import Foundation
package import Logging
import NIOCore
import NIOPosix
package import PrivatePostgreSQL
package import Store
import Synchronization
package import Testing

/// The PostgreSQL server of the tests: a private one for each test process, or the one that the connection string
/// `FANFARE_TEST_POSTGRES` names. Each test has a schema of its own, so tests can share the server.
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

  /// The trait of tests that need a server: they are skipped if none is available.
  package static var isAvailable: ConditionTrait {
    .enabled(if: exists, "PostgreSQL is not installed, and FANFARE_TEST_POSTGRES names no server")
  }

  /// Whether there is a server.
  package static var exists: Bool {
    ProcessInfo.processInfo.environment["FANFARE_TEST_POSTGRES"]?.isEmpty == false || PrivateServer.programs != nil
  }

  /// The server of this test process. The first call starts it.
  package static func shared() throws -> TestPostgreSQL {
    try instance.withLock { instance in
      let result = instance ?? Result { try TestPostgreSQL() }
      instance = result
      return try result.get()
    }
  }

  /// Runs a test with a schema of its own, which is dropped afterwards. The connections' `search_path` names it.
  package static func withSchema<Value>(_ body: (PostgreSQLConfiguration) async throws -> Value) async throws -> Value {
    let server = try shared()
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    let name = "test_\(ProcessInfo.processInfo.processIdentifier)_\(number)"
    var configuration = PostgreSQLConfiguration(connection: server.connection)
    configuration.applicationName = name
    // Long limits, because hundreds of tests may run at once on a few cores.
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

  /// Logs critical messages only, or from `debug` up if `FANFARE_TEST_LOG` is set.
  package static let quietLogger: Logger = {
    var logger = Logger(label: "test.postgresql")
    logger.logLevel = ProcessInfo.processInfo.environment["FANFARE_TEST_LOG"] == nil ? .critical : .debug
    return logger
  }()
}

extension PrivateServer {
  /// A port of 127.0.0.1 that was free a moment ago. PostgreSQL cannot choose a free port by itself.
  package static func unusedPort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(
      host: "127.0.0.1", port: 0
    ).get()
    defer { channel.close(promise: nil) }
    return channel.localAddress?.port ?? 0
  }

  /// Starts a server that also listens on a port of 127.0.0.1. Tries another port if the first is taken meanwhile.
  package static func onAPort(settings: [String: String] = [:]) async throws -> (server: PrivateServer, port: Int) {
    var (attempt, settings) = (0, settings)
    settings["listen_addresses"] = "127.0.0.1"
    while true {
      let port = try await unusedPort()
      settings["port"] = "\(port)"
      do { return (try PrivateServer(settings: settings), port) } catch {
        attempt += 1
        guard attempt < 5 else { throw error }
      }
    }
  }
}
