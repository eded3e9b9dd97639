import FanfareCore
import PostgreSQL
import PrivatePostgreSQL
import Registry
import Support
import Testing

/// A database that is not there when those who need it begin.
@Suite(.enabled(if: PrivateServer.programs != nil, "PostgreSQL is not installed"), .timeLimit(.minutes(2)))
struct LateDatabaseTests {
  @Test func whoWaitsForADatabaseHasItWhenItIsThere() async throws {
    let port = try await PrivateServer.unusedPort()
    let configuration = PostgreSQLConfiguration(connection: "host=127.0.0.1 port=\(port) user=fanfare dbname=postgres")
    await #expect(throws: PostgreSQLError.self) {
      _ = try await PostgreSQLRegistry(configuration, logger: TestPostgreSQL.quietLogger)
    }
    let log = LogRecorder()
    let registry = try await PostgreSQLRegistry(configuration, waits: true, logger: log.logger)
    defer { registry.close() }
    #expect(log.count(of: "The registry waits for its database") == 1)
    let refusal = await #expect(throws: RegistryError.self) { try await registry.check() }
    #expect(refusal?.code == .unavailable)
    let server = try PrivateServer(settings: ["listen_addresses": "127.0.0.1", "port": "\(port)"])
    try await registry.check()
    #expect(log.count(of: "Connected to PostgreSQL again") == 1)
    withExtendedLifetime(server) {}
  }
}
