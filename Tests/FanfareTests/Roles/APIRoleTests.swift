import AsyncHTTPClient
import EmbeddedKafka
import FanfareCore
import Foundation
import FrontEnd
import HTTPServer
import NIOCore
import NIOHTTP1
import Operations
import RDKafka
import ServiceLifecycle
import Support
import Testing

@testable import Roles

/// The role `fanfare api` with a configuration file, over TLS.
@Suite(.timeLimit(.minutes(2))) struct APIRoleTests {
  /// A running role.
  private struct API {
    let directory: URL
    let runtime: Runtime
    let clock: ManualClock
    let checks: [any ReadinessCheck]
    let port: Int

    /// The value of the metric.
    var expiry: Double? {
      let name = "fanfare_tls_certificate_expiry_timestamp_seconds "
      let line = runtime.metrics.exposition().split(separator: "\n").first { $0.hasPrefix(name) }
      return line.flatMap { Double($0.dropFirst(name.count)) }
    }

    func problem(of check: String) async throws -> String? {
      try await #require(checks.first { $0.name == check }).problems().first?.text
    }

    /// Sends a request over a new connection and returns the status. With a body the method is POST.
    func request(
      _ path: String, body: String? = nil, trusting server: TestCertificates, as client: TestCertificates? = nil
    ) async throws -> UInt {
      var configuration = HTTPClient.Configuration(tlsConfiguration: try server.clientTLS(as: client))
      configuration.connectionPool.retryConnectionEstablishment = false
      let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
      defer { http.shutdown { _ in } }
      var request = HTTPClientRequest(url: "https://localhost:\(port)\(path)")
      if let body {
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(string: body))
      }
      return try await http.execute(request, timeout: .seconds(30)).status.code
    }
  }

  /// Runs the role with the server's certificate and the authorities of its clients until `body` returns.
  private func withAPI(
    _ server: TestCertificates, clients: [TestCertificates], _ body: (API) async throws -> Void
  ) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-api-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    func path(_ name: String) -> String { directory.appending(path: name).path }
    try install(server, in: directory)
    try Data(clients.map(\.authorityPEM).joined(separator: "\n").utf8)
      .write(to: directory.appending(path: "clients.pem"))
    let cluster = try EmbeddedCluster(
      topics: Topics().all.map { TopicSpecification(name: $0, partitions: 1) }, logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let file = path("fanfare.yaml")
    try Data(
      """
      kafka: {bootstrapServers: "\(cluster.bootstrapServers)", durabilityCheck: "off"}
      registry: {path: "\(path("registry.sqlite"))"}
      ledger: {path: "\(path("ledger.sqlite"))"}
      api:
        port: 0
        announceFile: "\(path("api"))"
        tls:
          certificateFile: "\(path("cert.pem"))"
          keyFile: "\(path("key.pem"))"
          clientAuthorityFile: "\(path("clients.pem"))"
      hub:
        default:
          authentication:
            method: none
            everyone: [device]
            grants: ["user shop.example.com: send:user"]
            certificate: {userFrom: dns}

      """.utf8
    ).write(to: URL(fileURLWithPath: file))
    var settings = try Settings.load(file: file, environment: [:])
    settings.kafka.profile = .embedded
    let clock = ManualClock(at: SystemWallClock().now())
    let runtime = Runtime(
      settings: settings, logger: TestKafka.quietLogger, metrics: PrometheusMetrics(), clock: clock)
    let role = try await APIRole.services(runtime)
    let group = ServiceGroup(services: role.services, logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await group.run() }
      // Written when the role listens.
      while !FileManager.default.fileExists(atPath: path("api")) { await Task.yield() }
      let address = try String(contentsOfFile: path("api"), encoding: .utf8).dropLast().split(separator: ":")
      let port = try #require(address.last.flatMap { Int($0) })
      try await body(
        API(directory: directory, runtime: runtime, clock: clock, checks: role.checks, port: port))
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }

  /// Installs a certificate and its key. Until both are complete the role cannot use them.
  private func install(_ certificates: TestCertificates, in directory: URL) throws {
    let (files, new) = (FileManager.default, directory.appending(path: "new"))
    try files.createDirectory(at: new, withIntermediateDirectories: true)
    _ = try certificates.write(to: new.path)
    for name in ["cert.pem", "key.pem"] {
      let (source, target) = (new.appending(path: name), directory.appending(path: name))
      try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: source.path)
      if files.fileExists(atPath: target.path) { try files.removeItem(at: target) }
      try files.moveItem(at: source, to: target)
    }
  }

  @Test func sendIsAcceptedFromTheCertificatesUserAlone() async throws {
    let (server, strangers) = (try TestCertificates(), try TestCertificates())
    let (shop, other) = (try TestCertificates(host: "shop.example.com"), try TestCertificates(host: "x.example.com"))
    try await withAPI(server, clients: [shop, other]) { api in
      // Until then a send is refused because Kafka cannot be reached.
      while try await api.problem(of: "kafka") != nil { await Task.yield() }
      func send(as client: TestCertificates?) async throws -> UInt {
        try await api.request(
          "/api/sends", body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#, trusting: server, as: client)
      }
      #expect(try await send(as: shop) == 202)
      #expect(try await send(as: other) == 403, "has no grant")
      #expect(try await send(as: nil) == 401)
      await #expect(throws: (any Error).self) { try await send(as: strangers) }
    }
  }

  @Test func replacedCertificateIsUsedWithoutARestart() async throws {
    let (old, new) = (try TestCertificates(days: 1), try TestCertificates(days: 9))
    func expiry(of certificates: TestCertificates) throws -> Double {
      let identity = try ServerTLS.Identity(certificates: certificates.serverPEM, key: certificates.serverKeyPEM)
      return Double(try ServerTLS(identity).expiry.seconds)
    }
    try await withAPI(old, clients: [old]) { api in
      #expect(try await api.request("/openapi.json", trusting: old) == 200)
      #expect(try api.expiry == expiry(of: old))
      #expect(try await api.problem(of: "certificate") == nil)
      api.clock.advance(by: .seconds(2 * 86_400))
      #expect(try await api.problem(of: "certificate")?.contains("has expired") == true)

      try install(new, in: api.directory)
      // Recorded when new connections use the certificate.
      let replacement = try expiry(of: new)
      while api.expiry != replacement { await Task.yield() }
      #expect(try await api.problem(of: "certificate") == nil)
      #expect(try await api.request("/openapi.json", trusting: new) == 200)
      await #expect(throws: (any Error).self) { try await api.request("/openapi.json", trusting: old) }
    }
  }
}
