import FanfareCore
import HTTP2
import Logging
import NIOCore
import NIOSSL
import PushServices
import PushSimulator
import Synchronization

/// One captured push of the product. The ceiling sends the same header fields and the same body.
struct PushSpecimen: Sendable {
  /// The header fields without the pseudo fields; names are in lower case.
  let headers: [(name: String, value: String)]
  let body: [UInt8]

  /// Captures a push with a private server.
  static func capture(
    credentials: SimulatorCredentials, eventLoopGroup: any EventLoopGroup, logger: Logger
  ) async throws -> PushSpecimen {
    let caught = Mutex<PushSpecimen?>(nil)
    let server = HTTP2Server(
      configuration: HTTP2ServerConfiguration(tls: try TLSConfiguration.sink(credentials)),
      eventLoopGroup: eventLoopGroup,
      logger: logger
    ) { request, responder in
      caught.withLock { $0 = PushSpecimen(headers: Array(request.headers), body: request.body) }
      responder.respond(status: 200)
    }
    try await server.start()
    var configuration = APNsConfiguration(
      keyID: credentials.apns.keyID, teamID: credentials.apns.teamID, privateKey: credentials.apns.privateKeyPEM,
      topic: credentials.apns.bundleIDs[0])
    (configuration.host, configuration.port) = ("127.0.0.1", server.boundPort ?? 0)
    configuration.trustRoots = credentials.authorityPEM
    let sender = try APNsSender(configuration, SenderResources(eventLoopGroup: eventLoopGroup, logger: logger))
    let running = Task { try await sender.run() }
    let send = Population.send(to: .user(Population.user(0)), number: 0)
    let push = Push(
      ticket: 0, id: PushID(send: send.id, registration: .random()), handle: Population.handle(0),
      rendering: try sender.render(send), expiresAt: send.acceptedAt + .seconds(3600))
    await withCheckedContinuation { continuation in sender.submit([push]) { _ in continuation.resume() } }
    running.cancel()
    try await running.value
    await server.close()
    guard let specimen = caught.withLock({ $0 }) else { throw BenchError("the product's own push did not arrive") }
    return specimen
  }
}

extension TLSConfiguration {
  /// A server's configuration with the simulator's certificate.
  static func sink(_ credentials: SimulatorCredentials) throws -> TLSConfiguration {
    .makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(credentials.certificatePEM.utf8)).map {
        .certificate($0)
      },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(credentials.certificateKeyPEM.utf8), format: .pem)))
  }
}
