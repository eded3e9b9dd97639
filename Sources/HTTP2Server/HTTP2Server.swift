package import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP/2 server for fakes and tests: it hands every request that has arrived whole to one handler.
package final class HTTP2Server: Sendable {
  /// Answers requests. Called on the connection's event loop; it must not block, and may answer at once or later.
  package typealias Handler = @Sendable (HTTP2ServerRequest, HTTP2Responder) -> Void

  private struct Guarded {
    var listener: (any Channel)?
    var isClosed = false
    var connections: [ObjectIdentifier: any Channel] = [:]
    var nextID = 1
  }

  private let configuration: HTTP2ServerConfiguration
  private let eventLoopGroup: any EventLoopGroup
  private let handler: Handler
  private let logger: Logger
  private let guarded = Mutex(Guarded())

  /// A server that does not listen yet.
  package init(
    configuration: HTTP2ServerConfiguration, eventLoopGroup: any EventLoopGroup, logger: Logger,
    handler: @escaping Handler
  ) {
    self.configuration = configuration
    self.eventLoopGroup = eventLoopGroup
    self.logger = logger
    self.handler = handler
  }

  /// The port the server listens on, nil before `start()` has returned.
  package var boundPort: Int? { guarded.withLock { $0.listener?.localAddress?.port } }

  /// How many connections are open.
  package var connectionCount: Int { guarded.withLock { $0.connections.count } }

  /// Listens, and returns as soon as connections are accepted. Throws if the address is taken or the TLS configuration
  /// cannot be used.
  package func start() async throws {
    let tls = try configuration.tls.map { tls in
      var tls = tls
      tls.applicationProtocols = ["h2"]
      tls.shutdownTimeout = min(tls.shutdownTimeout, .seconds(1))
      return try NIOSSLContext(configuration: tls)
    }
    let listener = try await ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.backlog, value: 256)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { [self] channel in
        channel.eventLoop.makeCompletedFuture { try accept(channel, tls: tls) }
      }
      .bind(host: configuration.host, port: configuration.port)
      .get()
    let isClosed = guarded.withLock { guarded in
      guarded.listener = listener
      return guarded.isClosed
    }
    if isClosed { listener.close(promise: nil) }
    logger.debug("HTTP/2 server listens", metadata: [LogKeys.port: "\(listener.localAddress?.port ?? 0)"])
  }

  /// Listens if `start()` has not been called, and serves until `close()` is called or the task is cancelled.
  package func run() async throws {
    if guarded.withLock({ $0.listener == nil }) { try await start() }
    guard let listener = guarded.withLock({ $0.listener }) else { return }
    try await withTaskCancellationHandler {
      try await listener.closeFuture.get()
    } onCancel: {
      beginClosing()
    }
  }

  /// Closes the listener and all connections, and returns when they are closed.
  package func close() async {
    for channel in beginClosing() {
      // A channel that fails to close is closed all the same.
      try? await channel.closeFuture.get()
    }
  }

  @discardableResult
  private func beginClosing() -> [any Channel] {
    let channels = guarded.withLock { guarded in
      guarded.isClosed = true
      return (guarded.listener.map { [$0] } ?? []) + guarded.connections.values
    }
    for channel in channels { channel.close(promise: nil) }
    return channels
  }

  private func accept(_ channel: any Channel, tls: NIOSSLContext?) throws {
    let id: Int? = guarded.withLock { guarded in
      guard !guarded.isClosed, guarded.connections.count < configuration.maximumConnections else { return nil }
      guarded.connections[ObjectIdentifier(channel)] = channel
      defer { guarded.nextID += 1 }
      return guarded.nextID
    }
    guard let id else { return channel.close(promise: nil) }
    let greeting = channel.eventLoop.scheduleTask(in: TimeAmount(configuration.handshakeTimeout)) {
      channel.close(promise: nil)
    }
    channel.closeFuture.whenComplete { [self] _ in
      greeting.cancel()
      guarded.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
    }
    // A client that does not take its answers is not asked for more: they would gather here without end.
    try channel.pipeline.syncOperations.addHandler(BackPressureHandler())
    if let tls {
      guard !configuration.refusesHandshake() else {
        return try channel.pipeline.syncOperations.addHandler(HandshakeRefusal())
      }
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
    }
    let connection = HTTP2ServerConnection(id: id, eventLoop: channel.eventLoop)
    try channel.pipeline.syncOperations.addHandler(
      ServerChannelHandler(
        connection: connection, configuration: configuration, greeting: greeting, handler: handler, logger: logger))
  }
}
