package import Logging
package import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle

/// A listener for HTTP/1.1 and HTTP/2 that serves one application.
///
/// Create it, then run it. During graceful shutdown the requests that have begun are answered; clients have
/// `drainTimeout` to read the answers.
package final class Listener: Sendable {
  private let configuration: ListenerConfiguration
  private let application: any Application
  private let table: ConnectionTable
  private let listening = ListeningPort()
  private let logger: Logger

  package init(
    _ configuration: ListenerConfiguration, serving application: any Application, logger: Logger
  ) {
    (self.configuration, self.application, self.logger) = (configuration, application, logger)
    table = ConnectionTable(
      maximum: configuration.maximumConnections, maximumPerAddress: configuration.maximumConnectionsPerAddress,
      metrics: configuration.metrics)
  }

  /// Serves until graceful shutdown or cancellation. Throws if the address cannot be bound. Call it once.
  package func run(on eventLoopGroup: any EventLoopGroup) async throws {
    defer { listening.resolve(nil) }
    let (quiescing, table, setup) = (
      ServerQuiescingHelper(group: eventLoopGroup), table,
      ConnectionSetup(configuration: configuration, application: application, table: table)
    )
    let listener = try await ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptGate(table))
          try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
        }
      }
      .bind(host: configuration.host, port: configuration.port, serverBackPressureStrategy: nil) { channel in
        setup.add(channel)
      }
    listening.resolve(listener.channel.localAddress?.port)
    logger.info(
      "Listening", metadata: [LogKeys.host: "\(configuration.host)", LogKeys.port: "\(boundPortNumber(of: listener))"])
    await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        do {
          try await listener.executeThenClose { connections in
            for try await connection in connections {
              group.addTask { [logger] in await setup.serve(connection, logger: logger) }
            }
          }
        } catch is CancellationError {
          // The task of the server was cancelled, which is how it ends with its role.
        } catch {
          logger.error("Listener failed", metadata: [LogKeys.error: "\(error)"])
        }
      }
    } onGracefulShutdown: {
      quiescing.initiateShutdown(promise: nil)
    }
  }

  /// Returns the port as soon as the listener has it; nil if it ended before that.
  package func boundPort() async -> Int? { await listening.value() }

  private func boundPortNumber(of listener: NIOAsyncChannel<ConnectionSetup.Connection, Never>) -> Int {
    listener.channel.localAddress?.port ?? configuration.port
  }
}

/// The address of a listener, and the limits of its connections.
package struct ListenerConfiguration: Sendable {
  package var host: String
  /// 0 lets the kernel choose one.
  package var port: Int
  /// Nil: without TLS.
  package var tls: ServerTLS?
  /// Whose `X-Forwarded-For` is believed.
  package var proxies = TrustedProxies()
  /// Whether only the proxies and this machine may use the listener.
  package var requiresProxy = false

  package var maximumConnections = 1024
  /// IPv6 addresses count by their first 64 bits. Trusted proxies are exempt.
  package var maximumConnectionsPerAddress = Int.max
  /// The most bytes of a header field, of all fields, and their number.
  package var maximumHeaderFieldSize = 16 * 1024
  package var maximumHeaderSize = 32 * 1024
  package var maximumHeaderCount = 100
  /// Whether HTTP/1.1 needs a `Host`. Some probes send none.
  package var requiresHost = true
  /// The most bytes of a body that is handed over whole, and of the largest that a route accepts.
  package var wholeBodySize = 64 * 1024
  package var maximumBodySize = 64 * 1024

  /// The time for the first request's head to arrive, with the TLS handshake.
  package var firstRequestTimeout = Duration.seconds(10)
  /// The time for a request's body to arrive.
  package var bodyTimeout = Duration.seconds(30)
  /// The time for which a connection may be idle.
  package var idleTimeout = Duration.seconds(120)
  /// The time after which a client that reads too little of its answers loses the connection.
  package var writeTimeout = Duration.seconds(30)
  /// Whether a client that has not read its answers within `writeTimeout` loses its place to one that waits.
  package var slowReadersGiveWay = false
  /// The time for clients to send the bodies of requests and read their answers during shutdown.
  package var drainTimeout = Duration.seconds(5)

  /// The memory of bodies and answers; a `ByteBudget` may be shared.
  package var budgets: ByteBudgets
  /// Nil: nothing is counted.
  package var metrics: ConnectionMetrics?

  package init(host: String, port: Int, budgets: ByteBudgets) {
    (self.host, self.port, self.budgets) = (host, port, budgets)
  }
}

/// Accepts connections while there is room for them, on the event loop of the listener.
final class AcceptGate: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias InboundOut = any Channel
  typealias OutboundIn = Never
  typealias OutboundOut = Never

  private let table: ConnectionTable
  private var count = 0
  private var isWaiting = false

  init(_ table: ConnectionTable) { self.table = table }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    count += 1
    let own = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    unwrapInboundIn(data).closeFuture.hop(to: context.eventLoop).whenComplete { _ in
      let (gate, context) = own.value
      gate.count -= 1
      guard gate.isWaiting, gate.table.hasRoom(beside: gate.count) else { return }
      gate.isWaiting = false
      context.read()
    }
    context.fireChannelRead(data)
  }

  func read(context: ChannelHandlerContext) {
    isWaiting = !table.hasRoom(beside: count)
    if !isWaiting { context.read() }
  }
}

// The handler is confined to the event loop of its listener.
@available(*, unavailable)
extension AcceptGate: Sendable {}
