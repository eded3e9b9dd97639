import Foundation
import PrivatePostgreSQL
import Support
import Testing

@testable import Store

/// TLS to the server with `sslmode=verify-full` and `require`; and a private server that fails to start.
@Suite(.enabled(if: PrivateServer.programs != nil, "PostgreSQL is not installed"), .timeLimit(.minutes(2)))
struct TransportTests {
  @Test func serverIsVerifiedByItsCertificate() async throws {
    let certificates = try TestCertificates(coversAddress: false)
    try await with(certificates) { directory, port in
      let roots = try write(certificates.authorityPEM, "roots.pem", in: directory)
      let server = "hostaddr=127.0.0.1 port=\(port) user=fanfare dbname=postgres sslmode=verify-full"
      let pool = try PostgreSQLPool(
        PostgreSQLConfiguration(connection: "host=localhost \(server) sslrootcert=\(roots)"),
        logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      let isEncrypted = try await pool.read {
        try $0.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").bool(0, 0)
      }
      #expect(isEncrypted)

      let others = try write(try TestCertificates().authorityPEM, "others.pem", in: directory)
      for (host, roots) in [("localhost", others), ("db.example.com", roots)] {
        let log = LogRecorder()
        var configuration = PostgreSQLConfiguration(
          connection: "host=\(host) \(server) sslrootcert=\(roots) password=open-sesame")
        configuration.waitLimit = .seconds(1)
        let pool = try PostgreSQLPool(configuration, logger: log.logger)
        defer { pool.close() }
        let error = await #expect(throws: PostgreSQLError.self) { try await pool.check() }
        #expect(error?.code == .unavailable && error?.description.contains("no TLS connection") == true)
        // The log has libpq's reason.
        #expect((log.text.contains("certificate") || log.text.contains("SSL")) && !log.text.contains("open-sesame"))
      }
    }
  }

  @Test func serverOnTheNetworkIsVerifiedUnlessTheConnectionStringSaysOtherwise() async throws {
    let certificates = try TestCertificates(coversAddress: false, host: "db.test")
    try await with(certificates) { directory, port in
      let roots = try write(certificates.authorityPEM, "roots.pem", in: directory)
      let others = try write(try TestCertificates().authorityPEM, "others.pem", in: directory)
      // The name is what counts, not the address.
      let server = "hostaddr=127.0.0.1 port=\(port) user=fanfare dbname=postgres"
      func isEncrypted(_ connection: String) async throws -> Bool {
        var configuration = PostgreSQLConfiguration(connection: connection)
        configuration.waitLimit = .seconds(1)
        let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
        defer { pool.close() }
        return try await pool.read {
          try $0.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").bool(0, 0)
        }
      }
      #expect(try await isEncrypted("host=db.test \(server) sslrootcert=\(roots)"))
      for refused in [
        "host=db.test \(server) sslrootcert=\(others)", "host=db.example.com \(server) sslrootcert=\(roots)",
        "host=db.test \(server)",
      ] {
        let error = await #expect(throws: PostgreSQLError.self) { try await isEncrypted(refused) }
        #expect(error?.description.contains("no TLS connection") == true)
      }
      #expect(try await isEncrypted("host=db.test \(server) sslmode=require"))
      #expect(try await isEncrypted("host=db.test \(server) sslmode=disable") == false)
      // On this machine TLS is the server's choice, as before.
      _ = try await isEncrypted("host=localhost \(server)")
      _ = try await isEncrypted(server)
    }
  }

  @Test(arguments: [
    ("host=db.example.com", "verify-full"), ("hostaddr=10.1.2.3", "verify-full"),
    ("host=localhost,db.example.com", "verify-full"), ("host=localhost hostaddr=10.1.2.3", "verify-full"),
    ("postgresql://fanfare@[2001:db8::1]/fanfare", "verify-full"), ("service=main", "verify-full"),
    ("host=db.example.com sslmode=prefer", "prefer"), ("host=/run/postgresql", nil), ("host=127.0.0.2", nil),
    ("host=::1", nil), ("host=LOCALHOST", nil), ("host=@abstract", nil), ("dbname=fanfare", nil),
  ])
  func onlyTheNetworkRequiresVerification(connection: String, mode: String?) throws {
    #expect(try PostgreSQLConfiguration(connection: connection).parameters()["sslmode"] == mode)
  }

  @Test func serverWithoutTLSIsRefused() async throws {
    let server = try await PrivateServer.onAPort()
    var configuration = PostgreSQLConfiguration(
      connection: "host=localhost hostaddr=127.0.0.1 port=\(server.port) user=fanfare dbname=postgres sslmode=require")
    configuration.waitLimit = .seconds(1)
    let pool = try PostgreSQLPool(configuration, logger: TestPostgreSQL.quietLogger)
    defer { pool.close() }
    let error = await #expect(throws: PostgreSQLError.self) { try await pool.check() }
    #expect(error?.code == .unavailable && error?.description.contains("no TLS connection") == true)
    withExtendedLifetime(server.server) {}
  }

  @Test func privateServerReportsWhyItDoesNotStart() {
    let failure = #expect(throws: PrivateServer.Failure.self) { try PrivateServer(settings: ["nonsense": "1"]) }
    #expect(failure?.description.contains("nonsense") == true, "its log has the reason")
  }

  /// Runs the body with a temporary directory and a server that uses the certificate.
  private func with(_ certificates: TestCertificates, _ body: (_ directory: String, _ port: Int) async throws -> Void)
    async throws
  {
    let directory = NSTemporaryDirectory() + "/postgresql-tls-\(UUID())"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    // Errors are ignored: the directory is in the system's temporary directory.
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let (certificate, key) = try certificates.write(to: directory)
    var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    // The server does not run as root and could not read root's key.
    if geteuid() == 0 { attributes[.ownerAccountName] = "postgres" }
    try FileManager.default.setAttributes(attributes, ofItemAtPath: key)
    let server = try await PrivateServer.onAPort(settings: [
      "ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key,
    ])
    try await body(directory, server.port)
    withExtendedLifetime(server.server) {}
  }

  private func write(_ text: String, _ name: String, in directory: String) throws -> String {
    let path = "\(directory)/\(name)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }
}
