import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOTLS
import Support
import Synchronization
import Testing

@testable import FrontEnd
@testable import HTTPServer

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

  /// Without forward secrecy or authenticated encryption there is no connection.
  @Test func weakSuitesAreRefused() async throws {
    let certificates = try TestCertificates()
    try await Harness.run({ $0.configuration.tls = try ServerTLS(try identity(certificates)) }) { app in
      func get(_ suites: [NIOTLSCipher]) async throws -> UInt {
        try await self.get("/openapi.json", app, trusting: certificates) {
          $0.maximumTLSVersion = .tlsv12
          $0.cipherSuiteValues = suites
        }
      }
      for suite in [
        NIOTLSCipher.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, .TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
        .TLS_RSA_WITH_AES_128_GCM_SHA256, .TLS_RSA_WITH_AES_128_CBC_SHA,
      ] {
        await #expect(throws: (any Error).self, "\(suite)") { try await get([suite]) }
      }
      // Of either kind of certificate.
      let status = try await get([.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256])
      #expect(status == 200)
    }
  }

  /// RFC 7301 §3.2: a client of another protocol must not talk to this server by accident.
  @Test func clientsOfOtherProtocolsAreRefused() async throws {
    let certificates = try TestCertificates()
    try await Harness.run({ $0.configuration.tls = try ServerTLS(try identity(certificates)) }) { app in
      func handshake(offering protocols: [String]) async throws -> String? {
        var tls = try certificates.clientTLS()
        tls.applicationProtocols = protocols
        let context = try NIOSSLContext(configuration: tls)
        let result = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: String?.self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
          .channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
              try channel.pipeline.syncOperations.addHandlers([
                NIOSSLClientHandler(context: context, serverHostname: "localhost"), HandshakeResult(result),
              ])
            }
          }.connect(host: "localhost", port: app.port).get()
        defer { channel.close(promise: nil) }
        return try await result.futureResult.get()
      }
      for (protocols, chosen) in [([], nil), (["ftp", "http/1.1"], "http/1.1"), (["http/1.1", "h2"], "h2")] {
        let result = try await handshake(offering: protocols)
        #expect(result == chosen, "\(protocols)")
      }
      let error = await #expect(throws: NIOSSLError.self) { try await handshake(offering: ["ftp", "imap"]) }
      #expect(error.map { "\($0)".uppercased().contains("NO_APPLICATION_PROTOCOL") } == true, "\(error)")
    }
  }

  @Test func clientsMessageIsReadHoweverItArrives() {
    // A ClientHello with the protocols in `names`, in records of at most `size` bytes.
    func hello(_ names: [String], size: Int = 16_384) -> ByteBuffer {
      var list = ByteBuffer()
      for name in names { list.writeBytes([UInt8(name.utf8.count)] + Array(name.utf8)) }
      var offer = ByteBuffer()
      offer.writeInteger(UInt16(list.readableBytes))
      offer.writeBuffer(&list)
      var extensions = ByteBuffer(bytes: [0, 23, 0, 0])
      if !names.isEmpty {
        extensions.writeMultipleIntegers(UInt16(16), UInt16(offer.readableBytes))
        extensions.writeBuffer(&offer)
      }
      var content = ByteBuffer(bytes: [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0])
      content.writeInteger(UInt16(extensions.readableBytes))
      content.writeBuffer(&extensions)
      var message = ByteBuffer(bytes: [1, 0])
      message.writeInteger(UInt16(content.readableBytes))
      message.writeBuffer(&content)
      var records = ByteBuffer()
      while var part = message.readSlice(length: min(size, message.readableBytes)), part.readableBytes > 0 {
        records.writeBytes([22, 3, 1])
        records.writeInteger(UInt16(part.readableBytes))
        records.writeBuffer(&part)
      }
      return records
    }
    func offer(in bytes: ByteBuffer) -> ProtocolOfferCheck.Offer {
      var hello = ProtocolOfferCheck.ClientHello()
      return hello.read(bytes)
    }
    for size in [1, 7, 16_384] {
      #expect(offer(in: hello(["ftp", "h2"], size: size)) == .acceptable)
      #expect(offer(in: hello([], size: size)) == .acceptable)
      for step in [1, 5, 40_000] {
        var (foreign, read) = (hello(["ftp"], size: size), ProtocolOfferCheck.ClientHello())
        while let part = foreign.readSlice(length: min(step, foreign.readableBytes)) {
          let offer = read.read(part)
          #expect(offer == (foreign.readableBytes > 0 ? .incomplete : .foreign))
          if foreign.readableBytes == 0 { break }
        }
      }
    }
    // Left to BoringSSL.
    #expect(offer(in: ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n")) == .acceptable)
    #expect(offer(in: ByteBuffer(bytes: [22, 3, 1, 0, 4, 1, 255, 255, 255])) == .acceptable)
    #expect(offer(in: ByteBuffer(bytes: [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])) == .acceptable)
  }

  @Test func browsersAreToldToStayWithTLS() async throws {
    let certificates = try TestCertificates()
    try await Harness.run({ $0.configuration.tls = try ServerTLS(try identity(certificates)) }) { app in
      var configuration = HTTPClient.Configuration(tlsConfiguration: try certificates.clientTLS())
      configuration.httpVersion = .http1Only
      let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
      defer { http.shutdown { _ in } }
      for path in ["/docs", "/api/sends"] {
        let answer = try await http.execute(
          HTTPClientRequest(url: "https://localhost:\(app.port)\(path)"), timeout: .seconds(30))
        #expect(answer.headers["Strict-Transport-Security"] == ["max-age=31536000"], "\(path)")
        _ = try await answer.body.collect(upTo: 1 << 20)
      }
    }
    try await Harness.run { app in
      let page = try await app.request(.get, "/docs", as: nil)
      #expect(page["Strict-Transport-Security"] == nil)
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

/// Tells which protocol a handshake ended with, or why it failed.
private final class HandshakeResult: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let result: EventLoopPromise<String?>

  init(_ result: EventLoopPromise<String?>) { self.result = result }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted(let name) = event as? TLSUserEvent { result.succeed(name) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { result.fail(error) }

  func channelInactive(context: ChannelHandlerContext) { result.fail(ChannelError.eof) }
}
