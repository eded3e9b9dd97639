package import Logging
package import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization

/// An HTTP/2 server for fakes and tests: passes every complete request to one handler.
package final class HTTP2Server: Sendable {
  /// Answers a request, now or later. Called on the connection's event loop; must not block.
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

  package init(
    configuration: HTTP2ServerConfiguration, eventLoopGroup: any EventLoopGroup, logger: Logger,
    handler: @escaping Handler
  ) {
    self.configuration = configuration
    self.eventLoopGroup = eventLoopGroup
    self.logger = logger
    self.handler = handler
  }

  /// The bound port; nil before `start()` has returned.
  package var boundPort: Int? { guarded.withLock { $0.listener?.localAddress?.port } }

  /// The number of open connections.
  package var connectionCount: Int { guarded.withLock { $0.connections.count } }

  /// Listens, and returns when connections are accepted. Throws if the address is in use or TLS cannot be set up.
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
    logger.debug("HTTP/2 server listening", metadata: [LogKeys.port: "\(listener.localAddress?.port ?? 0)"])
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
    // A client that does not read its answers is not read from, because the answers would pile up here.
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

/// Refuses a TLS handshake: answers the client's hello with a fatal alert and closes.
final class HandshakeRefusal: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// A TLS 1.2 alert record, valid for any version of the client's hello: fatal (2), handshake_failure (40).
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 40]

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.alert)), promise: nil)
    context.close(promise: nil)
  }
}

/// The address of a server and the limits of its clients.
package struct HTTP2ServerConfiguration: Sendable {
  /// The address to listen on.
  package var host: String
  /// The port; 0 lets the system choose one.
  package var port: Int
  /// TLS; ALPN is always set to `h2`. Nil means cleartext with prior knowledge.
  package var tls: TLSConfiguration?
  /// `SETTINGS_MAX_CONCURRENT_STREAMS` of a new connection.
  package var maximumConcurrentStreams = 1000
  /// The most bytes of a request's body; a longer one is reset with ENHANCE_YOUR_CALM.
  package var maximumBodyBytes = 64 * 1024
  /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  package var maximumHeaderListSize = 32 * 1024
  /// The flow-control window of each stream, in bytes.
  package var streamWindow = 1 << 20
  /// The flow-control window of each connection, in bytes; values below the protocol's 65,535 have no effect.
  package var connectionWindow = 1 << 24
  /// Whether PINGs are answered; false plays dead.
  package var answersPings = true
  /// Whether the TLS handshake of a new connection is refused. Called on the connection's event loop; must not block.
  package var refusesHandshake: @Sendable () -> Bool = { false }
  /// The time for TLS, the preface and the client's SETTINGS; then the connection is closed.
  package var handshakeTimeout: Duration = .seconds(10)
  /// The most connections; further ones are closed at once.
  package var maximumConnections = 1000

  package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration?) {
    self.host = host
    self.port = port
    self.tls = tls
  }
}
