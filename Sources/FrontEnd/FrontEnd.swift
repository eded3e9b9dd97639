package import FanfareCore
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOPosix
package import Operations
import ServiceLifecycle

/// The HTTP server that callers talk to: registers their devices, and enqueues their sends and nothing else.
///
/// Make it, then keep `run()` running: it listens until the task is cancelled or shut down gracefully, and answers what
/// it has begun before it returns; clients that do not read their answers are waited for no longer than `drainTimeout`.
/// What it stands on (registry, producer, stores) must run longer than it does.
package final class FrontEnd: Service {
  /// What the front end stands on.
  package struct Dependencies: Sendable {
    /// Where devices are registered.
    package var registry: any DeviceRegistry & RegistrationDirectory
    /// Where secure payloads wait.
    package var secureStore: any SecurePayloadStore
    /// Where requests with an `Idempotency-Key` are remembered.
    package var claims: any SendClaimStore
    /// Where broadcasts are watched and steered.
    package var broadcasts: any BroadcastStore
    /// Where sends wait for their time; a `Scheduler` over the same store has them go.
    package var schedule: any ScheduledSendStore
    /// Where sends are looked up.
    package var history: any SendHistory
    /// Where sends go.
    package var sink: any SendSink
    /// Whether the sends topic may be given more. Asked for every request; must not block.
    package var hasRoom: @Sendable () -> Bool
    /// Where the present moment comes from.
    package var clock: any WallClock

    package init(
      registry: any DeviceRegistry & RegistrationDirectory, secureStore: any SecurePayloadStore,
      claims: any SendClaimStore,
      broadcasts: any BroadcastStore, schedule: any ScheduledSendStore, history: any SendHistory, sink: any SendSink,
      hasRoom: @escaping @Sendable () -> Bool = { true }, clock: any WallClock = SystemWallClock()
    ) {
      self.registry = registry
      self.secureStore = secureStore
      self.claims = claims
      self.broadcasts = broadcasts
      self.schedule = schedule
      self.history = history
      self.sink = sink
      self.hasRoom = hasRoom
      self.clock = clock
    }
  }

  /// What it answers to.
  let routes = RouteTable()

  private let configuration: FrontEndConfiguration
  private let responder: RouterResponder<FrontEndContext>
  private let logger: Logger
  private let listening = ListeningPort()

  /// Makes a front end for the hubs, which also answers operators where it is told how. Throws when a setting is out of
  /// range or a hub is there twice.
  package init(
    configuration: FrontEndConfiguration, hubs: [FrontEndHub], dependencies: Dependencies,
    operations: OperationsRoutes? = nil,
    logger: Logger
  ) throws(FrontEndError) {
    try configuration.validate()
    guard !hubs.isEmpty else { throw FrontEndError(.configuration, "hubs must name at least one hub") }
    guard Set(hubs.map(\.name)).count == hubs.count else {
      throw FrontEndError(.configuration, "hubs must name each hub once")
    }
    self.configuration = configuration
    self.logger = logger
    responder = Self.makeResponder(
      configuration: configuration, hubs: hubs, dependencies: dependencies, operations: operations, table: routes)
  }

  /// Serves until the task is cancelled or shut down gracefully. Throws when the address cannot be bound. To be called
  /// once.
  package func run() async throws {
    defer { listening.resolve(nil) }
    try await makeServer().run()
  }

  /// The port that is listened on. Waits until there is one; throws `.notListening` when the server ended without.
  package func boundPort() async throws(FrontEndError) -> Int {
    guard let port = await listening.value() else {
      throw FrontEndError(.notListening, "the front end ended before it listened on a port")
    }
    return port
  }

  private func makeServer() -> any Service {
    let (responder, logger, listening) = (responder, logger, listening)
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
      maxHeaderFieldSize: configuration.maximumHeaderFieldSize, maxHeaderListSize: configuration.maximumHeaderSize,
      maxHeaderFieldCount: configuration.maximumHeaderCount)
    let limits = configuration
    // A refused body is read to its end only as far as keeping the connection is worth it.
    let maximumBodyBytes = 4 * max(configuration.maximumBodySize, configuration.maximumBatchSize)
    let channel = HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        ConnectionGuard(
          bodyTimeout: limits.bodyTimeout, writeTimeout: limits.writeTimeout, drainTimeout: limits.drainTimeout,
          maximumBodyBytes: maximumBodyBytes)
      ],
      idleTimeout: TimeAmount(configuration.idleTimeout), httpDecoderConfiguration: decoder)
    // Not Hummingbird's `Application`: it makes a logger with metadata and a task-local value for every request, which
    // nobody reads here.
    let connections = LoopBoundChannel(configuration: channel, maximumBodySize: configuration.maximumBodySize) {
      request, channel in
      try await responder.respond(
        to: request, context: FrontEndContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
      )
    }
    return connections.server(
      configuration: ServerConfiguration(
        address: .hostname(configuration.host, port: configuration.port), backlog: 1024,
        availableConnectionsDelegate: MaximumAvailableConnections(configuration.maximumConnections, logger: logger)),
      onServerRunning: { channel in listening.resolve(channel.localAddress?.port) },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger)
  }

  private static func makeResponder(
    configuration: FrontEndConfiguration, hubs: [FrontEndHub], dependencies: Dependencies,
    operations: OperationsRoutes?,
    table: RouteTable
  ) -> RouterResponder<FrontEndContext> {
    let router = Router(context: FrontEndContext.self, options: .autoGenerateHeadEndpoints)
    let routes = RecordingRouter(router: router, routes: table)
    routes.add(
      middleware: AnswerMiddleware(
        routes: routes.routes, metrics: RequestMetrics(), date: DateField(), clock: dependencies.clock)
    )
    operations?.add(to: routes)
    DescriptionRoute().add(to: routes)
    let gate = Gate(hubs: hubs.map(HubEntry.init))
    let intake = SendIntake(
      sink: dependencies.sink, topic: configuration.topics.sends, hasRoom: dependencies.hasRoom,
      schedule: dependencies.schedule,
      clock: dependencies.clock)
    let repetitions = Repetitions(store: dependencies.claims)
    let registration = RegistrationRoutes(
      gate: gate, registry: dependencies.registry, clock: dependencies.clock,
      maximumBodySize: configuration.maximumBodySize)
    let installations = InstallationRoutes(
      gate: gate, registry: dependencies.registry, clock: dependencies.clock,
      maximumBodySize: configuration.maximumBodySize)
    let directory = DirectoryRoutes(
      gate: gate, registry: dependencies.registry, clock: dependencies.clock,
      maximumBodySize: configuration.maximumBodySize)
    let notifications = NotificationRoutes(
      gate: gate, intake: intake, repetitions: repetitions, secure: dependencies.secureStore, clock: dependencies.clock,
      maximumBodySize: configuration.maximumBodySize, securePayloadLifetime: configuration.securePayloadLifetime)
    let sends = SendRoutes(
      gate: gate, intake: intake, repetitions: repetitions, clock: dependencies.clock,
      maximumBodySize: configuration.maximumBodySize, maximumBatchSize: configuration.maximumBatchSize)
    let tracking = TrackingRoutes(
      gate: gate, history: dependencies.history, broadcasts: dependencies.broadcasts, schedule: dependencies.schedule,
      clock: dependencies.clock)
    for root in [routes.group(), routes.group("hubs/{hub}")] {
      registration.add(to: root)
      installations.add(to: root)
      directory.add(to: root)
      notifications.add(to: root)
      sends.add(to: root)
      tracking.add(to: root)
    }
    return router.buildResponder()
  }
}
