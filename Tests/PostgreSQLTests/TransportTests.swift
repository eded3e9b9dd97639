import Foundation
import PostgreSQL
import PrivatePostgreSQL
import Support
import Testing

/// TLS between us and the server, as `sslmode=verify-full` asks for it.
@Suite(.enabled(if: PrivateServer.programs != nil, "PostgreSQL is not installed"), .timeLimit(.minutes(2)))
struct TransportTests {
  @Test func theServerIsKnownByItsCertificate() async throws {
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
        // Which of the reasons it is, is for whoever reads the log.
        #expect((log.text.contains("certificate") || log.text.contains("SSL")) && !log.text.contains("open-sesame"))
      }
    }
  }

  @Test func aServerWithoutTLSIsRefused() async throws {
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

  /// Runs a test with a server that has the certificate, and a directory.
  private func with(_ certificates: TestCertificates, _ body: (_ directory: String, _ port: Int) async throws -> Void)
    async throws
  {
    let directory = NSTemporaryDirectory() + "/postgresql-tls-\(UUID())"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    // What is left behind is in the system's temporary directory.
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let (certificate, key) = try certificates.write(to: directory)
    var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    // As root's it could not be read: the server runs as somebody else then.
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
