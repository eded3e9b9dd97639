import FanfareCore
import HTTP2
import HTTPServer
package import Logging
package import NIOCore
import NIOSSL
import ServiceLifecycle
import Synchronization

/// A simulator of APNs, FCM, WNS and the vendors' token endpoints in one process, over real TLS and HTTP/2.
///
/// It validates what the real services validate, answers as they do, injects faults, and keeps the notifications of
/// each device. It shares no code with the senders, so that each vendor's documentation is implemented twice,
/// independently.
package final class PushSimulator: Service {
  /// The keys and secrets that callers must have.
  package let credentials: SimulatorCredentials
  /// The notifications that have arrived.
  package let store: DeviceStore
  /// The active faults.
  package let faults: FaultRegistry

  private let configuration: SimulatorConfiguration
  private let eventLoopGroup: any EventLoopGroup
  private let logger: Logger
  private let tls: TLSConfiguration
  private let apns: APNsService
  private let fcm: FCMService
  private let google: GoogleToken
  private let microsoft: MicrosoftToken
  private let wns: WNSService
  private let others: [any SimulatedPushService]
  private let injector: FaultInjector
  private let readiness = Readiness()

  /// Makes a simulator that does not listen yet, with new keys if the configuration has none. Throws
  /// `SimulatorConfigurationError` for a host that it does not serve, and an error for an invalid key or certificate.
  package init(
    configuration: SimulatorConfiguration = SimulatorConfiguration(), eventLoopGroup: any EventLoopGroup, logger: Logger
  ) throws {
    guard SimulatorCredentials.certificateHosts.contains(configuration.host) else {
      throw SimulatorConfigurationError(
        field: "host",
        problem:
          "must be one of \(SimulatorCredentials.certificateHosts.joined(separator: ", ")): it serves this machine only"
      )
    }
    self.configuration = configuration
    self.eventLoopGroup = eventLoopGroup
    self.logger = logger
    credentials = try configuration.credentials ?? .generate()
    tls = try Self.serverTLS(credentials)
    store = DeviceStore(configuration)
    faults = FaultRegistry(limit: configuration.maximumFaults)
    injector = FaultInjector(
      store: store, faults: faults, honoursHandlePrefixes: configuration.honoursHandlePrefixes)
    let googleTokens = AccessTokens(
      prefix: "ya29.", lifetime: configuration.googleTokenLifetime, clock: configuration.clock)
    let microsoftTokens = AccessTokens(
      prefix: "EgA", lifetime: configuration.microsoftTokenLifetime, clock: configuration.clock)
    apns = try APNsService(configuration, credentials: credentials.apns, injector: injector)
    google = try GoogleToken(configuration, account: credentials.google, tokens: googleTokens, injector: injector)
    fcm = FCMService(configuration, projectID: credentials.google.projectID, tokens: googleTokens, injector: injector)
    microsoft = MicrosoftToken(app: credentials.windows, tokens: microsoftTokens, injector: injector)
    wns = WNSService(configuration, tokens: microsoftTokens, injector: injector)
    others = try SimulatedPushServices.all.map { try $0.init(configuration) }
  }

  /// Waits until all listeners are bound, and returns the endpoints. Throws what prevented it, or `CancellationError`.
  package func ready() async throws -> SimulatorEndpoints { try await readiness.endpoints() }

  /// Serves until the task is cancelled or graceful shutdown begins. Open HTTP/1.1 requests then have `shutdownTimeout`
  /// to end; HTTP/2 connections are closed at once. Throws if a listener cannot be bound. Call it once.
  package func run() async throws {
    do {
      try await serve()
      readiness.settle(.failure(CancellationError()))
    } catch {
      readiness.settle(.failure(error))
      // A cancelled server ends with an arbitrary error, which is expected.
      if !Task.isCancelled { throw error }
    }
  }

  /// Runs the simulator while `body` runs, and passes it the endpoints.
  package func withRunning<Value: Sendable>(
    _ body: @Sendable (SimulatorEndpoints) async throws -> Value
  ) async throws -> Value {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.run() }
      let result: Result<Value, any Error>
      do { result = .success(try await body(try await ready())) } catch { result = .failure(error) }
      group.cancelAll()
      try await group.waitForAll()
      return try result.get()
    }
  }

  /// Expires every access token and provider token in use, of one service or of all.
  package func expireTokens(of service: SimulatedService? = nil) {
    if service == nil || service == .apns { apns.tokens.expireAll() }
    if service == nil || service == .fcm || service == .googleToken { google.tokens.expireAll() }
    if service == nil || service == .wns || service == .microsoftToken { microsoft.tokens.expireAll() }
  }

  /// Replaces the key of APNs or of Google's service account, as their consoles do. Everything signed with the old key
  /// is refused, and access tokens obtained with it end. `credentials` is not changed.
  package func replaceKey(of service: SimulatedService) throws -> SimulatorCredentials {
    var renewed = credentials
    switch service {
    case .apns:
      renewed.apns = .generate(teamID: credentials.apns.teamID, bundleIDs: credentials.apns.bundleIDs)
      try apns.tokens.replaceKey(renewed.apns)
    default:
      renewed.google = try .generate(projectID: credentials.google.projectID)
      try google.replaceKey(renewed.google)
    }
    return renewed
  }

  private enum Finished {
    case listener
    case timeout
  }

  private func serve() async throws {
    let apnsServer = HTTP2Listeners.apns(
      apns, faults: faults, configuration: configuration, tls: tls, group: eventLoopGroup, logger: logger)
    let fcmServer = HTTP2Listeners.fcm(
      fcm, faults: faults, configuration: configuration, tls: tls, group: eventLoopGroup, logger: logger)
    let https = try makeSecureServer()
    let admin = Listener(
      ListenerConfiguration(simulating: configuration.host, port: configuration.adminPort),
      serving: AdminRoutes(simulator: self), logger: quietLogger)
    try await withThrowingTaskGroup(of: Finished.self) { group in
      try await apnsServer.start()
      do { try await fcmServer.start() } catch {
        await apnsServer.close()
        throw error
      }
      group.addTask { try await Self.finish { try await apnsServer.run() } }
      group.addTask { try await Self.finish { try await fcmServer.run() } }
      group.addTask { try await Self.finish { try await https.run(on: self.eventLoopGroup) } }
      group.addTask { try await Self.finish { try await admin.run(on: self.eventLoopGroup) } }
      group.addTask {
        try await gracefulShutdown()
        await apnsServer.close()
        await fcmServer.close()
        try await Task.sleep(for: self.configuration.shutdownTimeout)
        return .timeout
      }
      group.addTask {
        try await self.announce(apnsServer, fcmServer, https, admin)
        // Waits for the rest, so that the loop below counts all five tasks.
        try await gracefulShutdown()
        return .listener
      }
      defer { group.cancelAll() }
      // Four listeners and the announcement.
      for _ in 0..<5 {
        if try await group.next() == .timeout { break }
      }
    }
  }

  private static func finish(_ run: () async throws -> Void) async throws -> Finished {
    try await run()
    return .listener
  }

  private func announce(
    _ apnsServer: HTTP2Server, _ fcmServer: HTTP2Server, _ https: Listener, _ admin: Listener
  ) async throws {
    guard let https = await https.boundPort(), let admin = await admin.boundPort() else { throw CancellationError() }
    let endpoints = SimulatorEndpoints(
      host: configuration.host, apnsPort: apnsServer.boundPort ?? 0, fcmPort: fcmServer.boundPort ?? 0,
      httpsPort: https, adminPort: admin)
    google.setOwnURL(endpoints.googleTokenURL)
    logger.info(
      "Push simulator listening",
      metadata: [
        "apns": "\(endpoints.apnsPort)", "fcm": "\(endpoints.fcmPort)", "https": "\(https)",
        "admin": "\(endpoints.adminURL)",
      ])
    readiness.settle(.success(endpoints))
  }

  private func makeSecureServer() throws -> Listener {
    let identity = try ServerTLS.Identity(
      certificates: credentials.certificatePEM, key: credentials.certificateKeyPEM)
    let tls = try ServerTLS(identity, protocols: ["http/1.1"])
    return Listener(
      ListenerConfiguration(simulating: configuration.host, port: configuration.httpsPort, tls: tls),
      serving: SecureServices(
        google: google, microsoft: microsoft, wns: wns, others: others, injector: injector, clock: configuration.clock),
      logger: quietLogger)
  }

  /// Suppresses the server's own startup messages.
  private var quietLogger: Logger {
    var logger = logger
    logger.logLevel = max(logger.logLevel, .warning)
    return logger
  }

  private static func serverTLS(_ credentials: SimulatorCredentials) throws -> TLSConfiguration {
    let chain = try NIOSSLCertificate.fromPEMBytes(Array(credentials.certificatePEM.utf8))
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(credentials.certificateKeyPEM.utf8), format: .pem)))
    tls.minimumTLSVersion = .tlsv12
    // A client that has left does not answer close_notify; waiting for it only delays the end.
    tls.shutdownTimeout = .seconds(1)
    return tls
  }
}
