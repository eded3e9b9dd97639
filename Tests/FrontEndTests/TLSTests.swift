import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// The listener with TLS, over real connections.
@Suite(.timeLimit(.minutes(2))) struct TLSTests {
  /// Admits everybody and notes the certificates that callers present.
  private final class CertificateAuthenticator: Authenticator {
    private let noted = Mutex<[[UInt8]]>([])
    var certificates: [[UInt8]] { noted.withLock { $0 } }
    var challenge: String { "" }

    func authenticate(_ credentials: Credentials, hub: HubName, from origin: LoginOrigin) async throws -> Principal? {
      guard case .certificate(let certificate) = credentials else { return nil }
      noted.withLock { $0.append(certificate.der) }
      return Principal(user: "alice", scopes: [.readAll])
    }
  }

  private func identity(_ certificates: TestCertificates, clients: TestCertificates? = nil) throws -> ServerTLS.Identity
  {
    try ServerTLS.Identity(
      certificates: certificates.serverPEM, key: certificates.serverKeyPEM, clientAuthorities: clients?.authorityPEM)
  }

  /// Requests a path over TLS and returns the status.
  private func get(
    _ path: String, _ app: Harness, trusting certificates: TestCertificates, as client: TestCertificates? = nil,
    over version: HTTPVersion? = nil, configure: (inout TLSConfiguration) -> Void = { _ in }
  ) async throws -> UInt {
    var tls = try certificates.clientTLS(as: client)
    configure(&tls)
    var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
    configuration.connectionPool.retryConnectionEstablishment = false
    if version == .http1_1 { configuration.httpVersion = .http1Only }
    let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    defer { http.shutdown { _ in } }
    let request = HTTPClientRequest(url: "https://localhost:\(app.port)\(path)")
    let response = try await http.execute(request, timeout: .seconds(30))
    if let version { #expect(response.version == version) }
    return response.status.code
  }

  @Test func requestsAreAnsweredOverTLSAlone() async throws {
    let certificates = try TestCertificates()
    try await Harness.run({ $0.configuration.tls = try ServerTLS(try identity(certificates)) }) { app in
      #expect(try await get("/openapi.json", app, trusting: certificates) == 200)
      #expect(try await get("/api/sends", app, trusting: certificates) == 401)
      // By ALPN.
      #expect(try await get("/openapi.json", app, trusting: certificates, over: .http2) == 200)
      #expect(try await get("/openapi.json", app, trusting: certificates, over: .http1_1) == 200)
      await #expect(throws: (any Error).self) {
        try await get("/openapi.json", app, trusting: certificates) { $0.maximumTLSVersion = .tlsv11 }
      }
      #expect(
        try await get("/openapi.json", app, trusting: certificates) { $0.maximumTLSVersion = .tlsv12 } == 200)
      // In the clear there is no HTTP.
      let text = try await RawConnection.exchangeUntilClosed("GET / HTTP/1.1\r\nHost: x\r\n\r\n", port: app.port)
      #expect(!text.contains("HTTP/1.1"))
    }
  }

  @Test func handshakeMustEndSoon() async throws {
    let certificates = try TestCertificates()
    try await Harness.run({
      $0.configuration.tls = try ServerTLS(try identity(certificates))
      $0.configuration.firstRequestTimeout = .milliseconds(50)
      $0.configuration.idleTimeout = .seconds(3600)
    }) { app in
      let text = try await RawConnection.exchangeUntilClosed("", port: app.port)
      #expect(text == "")
    }
  }

  @Test func newConnectionsUseTheNewCertificate() async throws {
    let (old, new) = (try TestCertificates(), try TestCertificates())
    let tls = try ServerTLS(try identity(old))
    try await Harness.run({ $0.configuration.tls = tls }) { app in
      #expect(try await get("/openapi.json", app, trusting: old) == 200)
      let isReplaced = try tls.use(try identity(new))
      #expect(isReplaced)
      #expect(try await get("/openapi.json", app, trusting: new) == 200)
      await #expect(throws: (any Error).self) { try await get("/openapi.json", app, trusting: old) }
      let isReplacedAgain = try tls.use(try identity(new))
      #expect(!isReplacedAgain, "is in use already")
      // The key of another certificate.
      let broken = try ServerTLS.Identity(certificates: old.serverPEM, key: new.serverKeyPEM)
      #expect(throws: (any Error).self) { try tls.use(broken) }
      #expect(try await get("/openapi.json", app, trusting: new) == 200)
    }
    #expect(throws: ServerTLS.Unusable.certificates) {
      try ServerTLS.Identity(certificates: "x", key: old.serverKeyPEM)
    }
    #expect(throws: ServerTLS.Unusable.key) { try ServerTLS.Identity(certificates: old.serverPEM, key: "x") }
  }

  @Test(arguments: ServerTLS.ClientCertificates.allCases)
  func clientCertificateIsVerifiedAndPassedOn(mode: ServerTLS.ClientCertificates) async throws {
    let (server, clients, strangers) = (try TestCertificates(), try TestCertificates(), try TestCertificates())
    let authenticator = CertificateAuthenticator()
    try await Harness.run({
      $0.configuration.tls = try ServerTLS(try identity(server, clients: clients), clientCertificates: mode)
      $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
    }) { app in
      let known = try await get("/api/sends", app, trusting: server, as: clients)
      #expect(known == (mode == .none ? 401 : 200))
      if mode == .required {
        await #expect(throws: (any Error).self) { try await get("/api/sends", app, trusting: server) }
      } else {
        #expect(try await get("/api/sends", app, trusting: server) == 401)
      }
      if mode != .none {
        await #expect(throws: (any Error).self) { try await get("/api/sends", app, trusting: server, as: strangers) }
        let certificate = try #require(try NIOSSLCertificate.fromPEMBytes(Array(clients.serverPEM.utf8)).first)
        #expect(authenticator.certificates == [try certificate.toDERBytes()])
      }
    }
  }

  /// An authority that changes its key keeps its name.
  @Test func authoritiesOfOneNameNeedKeyIdentifiers() async throws {
    let server = try TestCertificates()
    func identity(_ authorities: TestCertificates...) throws -> ServerTLS.Identity {
      try ServerTLS.Identity(
        certificates: server.serverPEM, key: server.serverKeyPEM,
        clientAuthorities: authorities.map(\.authorityPEM).joined(separator: "\n"))
    }
    let old = try TestCertificates(hasKeyIdentifiers: true)
    let new = try TestCertificates(hasKeyIdentifiers: true)
    try await Harness.run({
      $0.configuration.tls = try ServerTLS(try identity(old, new), clientCertificates: .required)
      $0.hubs = [FrontEndHub(name: .default, authenticators: [CertificateAuthenticator()])]
    }) { app in
      for client in [old, new] {
        let status = try await get("/api/sends", app, trusting: server, as: client)
        #expect(status == 200)
      }
    }
    // The first one would be taken for the issuer of each certificate.
    let bare = try TestCertificates()
    for other in [try TestCertificates(), old] {
      #expect(throws: ServerTLS.Unusable.equalAuthorities) { try identity(bare, other) }
    }
    #expect(throws: Never.self) { try identity(bare, bare, try TestCertificates(host: "other")) }
  }

  /// A proxy presents its own certificate for the requests of all its clients.
  @Test func certificateOfAProxyIsNotItsClients() async throws {
    let (server, proxy) = (try TestCertificates(), try TestCertificates())
    let authenticator = CertificateAuthenticator()
    try await Harness.run({
      $0.configuration.tls = try ServerTLS(try identity(server, clients: proxy), clientCertificates: .required)
      $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1", "::1"]))
      $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
    }) { app in
      let status = try await get("/api/sends", app, trusting: server, as: proxy)
      #expect(status == 401)
      #expect(authenticator.certificates == [])
    }
  }
}
