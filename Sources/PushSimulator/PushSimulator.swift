package import FanfareCore
package import FoundationEssentials
import HTTP2
import HTTPServer
package import Logging
package import NIOCore
import NIOSSL
import ServiceLifecycle
import Synchronization

/// A simulator of all push services and the vendors' token endpoints in one process, over real TLS and HTTP/2.
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
  let services: [any SimulatedPushService]
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
    let injector = FaultInjector(
      store: store, faults: faults, honoursHandlePrefixes: configuration.honoursHandlePrefixes)
    let credentials = self.credentials
    services = try SimulatedPushServices.all.map { try $0.make(configuration, credentials, injector) }
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
    for double in services where service?.includes(type(of: double).platform) ?? true { double.expireTokens() }
  }

  /// Replaces the key or secret of a service's app, as its vendor's console does. Everything made with the old one is
  /// refused, and access tokens obtained with it end. Returns the files of the new one; nil if there is no such service.
  /// `credentials` is not changed.
  package func replaceKey(of platform: Platform) async throws -> [String: Data]? {
    let endpoints = try await ready()
    return try services.first { type(of: $0).platform == platform }?.replacedFiles(endpoints)
  }

  private enum Finished {
    case listener
    case timeout
  }

  private func serve() async throws {
    let servers = services.filter { type(of: $0).streams != nil }.map { service in
      (
        platform: type(of: service).platform,
        server: HTTP2Server(
          service, faults: faults, configuration: configuration, tls: tls, group: eventLoopGroup, logger: logger)
      )
    }
    let https = try makeSecureServer()
    let admin = Listener(
      ListenerConfiguration(simulating: configuration.host, port: configuration.adminPort),
      serving: AdminRoutes(simulator: self), logger: quietLogger)
    try await withThrowingTaskGroup(of: Finished.self) { group in
      for index in servers.indices {
        do { try await servers[index].server.start() } catch {
          for started in servers[..<index] { await started.server.close() }
          throw error
        }
      }
      for (_, server) in servers { group.addTask { try await Self.finish { try await server.run() } } }
      group.addTask { try await Self.finish { try await https.run(on: self.eventLoopGroup) } }
      group.addTask { try await Self.finish { try await admin.run(on: self.eventLoopGroup) } }
      group.addTask {
        try await gracefulShutdown()
        for (_, server) in servers { await server.close() }
        try await Task.sleep(for: self.configuration.shutdownTimeout)
        return .timeout
      }
      group.addTask {
        try await self.announce(servers, https, admin)
        // Waits for the rest, so that the loop below counts all tasks.
        try await gracefulShutdown()
        return .listener
      }
      defer { group.cancelAll() }
      // The listeners and the announcement.
      for _ in 0..<servers.count + 3 {
        if try await group.next() == .timeout { break }
      }
    }
  }

  private static func finish(_ run: () async throws -> Void) async throws -> Finished {
    try await run()
    return .listener
  }

  private func announce(
    _ servers: [(platform: Platform, server: HTTP2Server)], _ https: Listener, _ admin: Listener
  ) async throws {
    guard let https = await https.boundPort(), let admin = await admin.boundPort() else { throw CancellationError() }
    let endpoints = SimulatorEndpoints(
      host: configuration.host,
      ports: Dictionary(uniqueKeysWithValues: servers.map { ($0.platform.name, $0.server.boundPort ?? 0) }),
      httpsPort: https, adminPort: admin)
    var metadata: Logger.Metadata = ["https": "\(https)", "admin": "\(endpoints.adminURL)"]
    for (name, port) in endpoints.ports { metadata[name] = "\(port)" }
    logger.info("Push simulator listening", metadata: metadata)
    readiness.settle(.success(endpoints))
  }

  private func makeSecureServer() throws -> Listener {
    let identity = try ServerTLS.Identity(
      certificates: credentials.certificatePEM, key: credentials.certificateKeyPEM)
    let tls = try ServerTLS(identity, protocols: ["http/1.1"])
    return Listener(
      ListenerConfiguration(simulating: configuration.host, port: configuration.httpsPort, tls: tls),
      serving: SecureServices(services: services), logger: quietLogger)
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
