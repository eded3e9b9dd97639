package import FanfareCore
import Hummingbird
import HummingbirdCore
package import Logging
import NIOHTTP1
import NIOPosix
package import Operations
import ServiceLifecycle

/// The HTTP server for callers.
/// It registers their devices and enqueues their sends; it sends no pushes.
///
/// Create it, then run it as a service. During shutdown it answers the requests it has begun; clients have
/// `drainTimeout` to read the answers. The dependencies must outlive it.
package final class FrontEnd: Service {
  /// The stores and the producer behind the routes.
  package struct Dependencies: Sendable {
    package var registry: any DeviceRegistry & RegistrationDirectory
    /// Answers operators' questions about devices.
    package var inquiry: any RegistrationInquiry
    package var secureStore: any SecurePayloadStore
    /// Remembers requests with an `Idempotency-Key`.
    package var claims: any SendClaimStore
    /// Progress and control of broadcasts.
    package var broadcasts: any BroadcastStore
    /// Holds scheduled sends. A `Scheduler` over the same store produces them when they are due.
    package var schedule: any ScheduledSendStore
    /// Shares the callers' quotas among all front ends.
    package var quotas: any CallerQuotaStore
    /// The status of sends.
    package var history: any SendHistory
    package var deadLetters: any DeadLetterStore
    /// The templates of hubs; nil: hubs have none.
    package var templates: (any TemplateStore)?
    /// Produces sends.
    package var sink: any SendSink
    /// Whether the sends topic has room for more. Called for every send; must not block.
    package var hasRoom: @Sendable () -> Bool
    /// Records refusals, steering and removals.
    package var security: SecurityLog
    package var clock: any WallClock
    /// The reports of all processes about themselves; nil if this front end does not read it.
    package var pulse: (any PulseSource)?
    /// Files that need no credentials, by their path, such as `console/app.js`.
    package var files: [String: StaticFile] = [:]
    /// Nil: sends are not traced.
    package var tracing: Tracing?
    /// Make the routes of other protocols, which come before the front end's own.
    package var protocols: [@Sendable (FrontEndOperations) -> any ProtocolRoutes] = []

    package init(
      registry: any DeviceRegistry & RegistrationDirectory, inquiry: any RegistrationInquiry,
      secureStore: any SecurePayloadStore,
      claims: any SendClaimStore, broadcasts: any BroadcastStore, schedule: any ScheduledSendStore,
      quotas: any CallerQuotaStore, history: any SendHistory, deadLetters: any DeadLetterStore,
      sink: any SendSink, hasRoom: @escaping @Sendable () -> Bool = { true },
      security: SecurityLog, clock: any WallClock = SystemWallClock(), tracing: Tracing? = nil
    ) {
      self.registry = registry
      self.inquiry = inquiry
      self.secureStore = secureStore
      self.claims = claims
      self.broadcasts = broadcasts
      self.schedule = schedule
      self.quotas = quotas
      self.history = history
      self.deadLetters = deadLetters
      self.sink = sink
      self.hasRoom = hasRoom
      self.security = security
      self.clock = clock
      self.tracing = tracing
    }
  }

  /// All routes, for tests and for the answers to unknown methods.
  let routes = RouteTable()

  /// The bodies and answers that are held now, for tests.
  let budgets: ByteBudgets

  private let configuration: FrontEndConfiguration
  private let returns: PermitReturns
  private let responder: RouterResponder<FrontEndContext>
  private let direct: DirectRoutes
  private let logger: Logger
  private let listening = ListeningPort()

  /// Creates a front end for the hubs. With `operations` it also serves `/healthz` and `/readyz`.
  ///
  /// Throws `.configuration` if a setting is out of range, or if there is no hub or a hub is repeated.
  package init(
    configuration: FrontEndConfiguration, hubs: [FrontEndHub], dependencies: Dependencies,
    operations: OperationsRoutes? = nil, logger: Logger
  ) throws(FrontEndError) {
    try configuration.validate()
    guard !hubs.isEmpty else { throw FrontEndError(.configuration, "hubs must name at least one hub") }
    guard Set(hubs.map(\.name)).count == hubs.count else {
      throw FrontEndError(.configuration, "hubs must name each hub once")
    }
    self.configuration = configuration
    budgets = ByteBudgets(
      bodies: ByteBudget(
        limit: configuration.maximumBodyBytesInMemory,
        largest: max(configuration.maximumBodySize, configuration.maximumBatchSize)),
      answers: ByteBudget(
        limit: configuration.maximumAnswerBytesInMemory, largest: configuration.maximumAnswerBytesInMemory / 4))
    self.logger = logger
    let router = RecordingRouter(
      router: Router(context: FrontEndContext.self, options: .autoGenerateHeadEndpoints), routes: routes)
    let hubs = hubs.map { HubEntry($0, quotas: dependencies.quotas, tracing: dependencies.tracing) }
    returns = PermitReturns(
      quotas: hubs.map(\.quotas), store: dependencies.quotas, clock: dependencies.clock, logger: logger)
    direct = Self.addRoutes(
      to: router, configuration: configuration, hubs: hubs, dependencies: dependencies, operations: operations,
      logger: logger)
    responder = router.router.buildResponder()
  }

  /// Serves until graceful shutdown or cancellation. Throws if the address cannot be bound. Call it once.
  package func run() async throws {
    defer { listening.resolve(nil) }
    let result: Result<Void, any Error>
    do {
      try await withThrowingTaskGroup(of: Void.self) { [returns] group in
        group.addTask { await returns.run() }
        defer { group.cancelAll() }
        try await makeServer().run()
      }
      result = .success(())
    } catch { result = .failure(error) }
    // In a task of its own: in a cancelled one the database refuses to write.
    await Task { [returns] in await returns.giveBack(all: true) }.value
    try result.get()
  }

  /// Returns the port as soon as the server listens.
  /// Throws `.notListening` if the server ended before that.
  package func boundPort() async throws(FrontEndError) -> Int {
    guard let port = await listening.value() else {
      throw FrontEndError(.notListening, "the front end ended before it listened on a port")
    }
    return port
  }

  private func makeServer() -> any Service {
    let (configuration, responder, logger, listening) = (configuration, responder, logger, listening)
    var decoder = NIOHTTPDecoderLimitConfiguration()
    decoder.maxHeaderFieldSize = configuration.maximumHeaderFieldSize
    decoder.maxHeaderListSize = configuration.maximumHeaderSize
    decoder.maxHeaderFieldCount = configuration.maximumHeaderCount
    // Beyond this, reading a refused body to its end costs more than a new connection.
    let maximumDiscard = 4 * max(configuration.maximumBodySize, configuration.maximumBatchSize)
    let table = ConnectionTable(
      maximum: configuration.maximumConnections, maximumPerAddress: configuration.maximumConnectionsPerAddress)
    // Not Hummingbird's `Application`, which makes a logger with metadata and a task-local value for every request.
    let connections = LoopBoundChannel(
      configuration: LoopBoundChannel.Configuration(
        times: ConnectionLife.Limits(
          firstRequestTimeout: configuration.firstRequestTimeout, idleTimeout: configuration.idleTimeout,
          writeTimeout: configuration.writeTimeout, drainTimeout: configuration.drainTimeout),
        reading: HTTP1Connection.Limits(
          wholeBodySize: configuration.maximumBodySize, bodyTimeout: configuration.bodyTimeout,
          maximumDiscard: maximumDiscard),
        decoder: decoder,
        http2: HTTP2Connection.Limits(
          head: HTTP2Head.Limits(
            fieldSize: configuration.maximumHeaderFieldSize, size: configuration.maximumHeaderSize,
            count: configuration.maximumHeaderCount),
          bodySize: max(configuration.maximumBodySize, configuration.maximumBatchSize),
          bodyTimeout: configuration.bodyTimeout, writeTimeout: configuration.writeTimeout),
        table: table, budgets: budgets,
        proxies: configuration.proxies, requiresProxy: configuration.requiresProxy, tls: configuration.tls,
        direct: configuration.answersDirectly ? direct : nil)
    ) { request, connection, answer in
      let source = RequestSource(
        connection, address: connection.client(forwardedFor: request.headers[.forwardedFor]), answer: answer,
        logger: logger)
      return try await responder.respond(to: request, context: FrontEndContext(source: source))
    }
    return connections.server(
      configuration: ServerConfiguration(
        address: .hostname(configuration.host, port: configuration.port), backlog: 1024,
        availableConnectionsDelegate: ConnectionTable.Gate(table)),
      onServerRunning: { channel in listening.resolve(channel.localAddress?.port) },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger)
  }

  /// Adds all routes to the router. Returns those that need no router.
  private static func addRoutes(
    to router: RecordingRouter, configuration: FrontEndConfiguration, hubs: [HubEntry], dependencies: Dependencies,
    operations: OperationsRoutes?, logger: Logger
  ) -> DirectRoutes {
    let clock = dependencies.clock
    let desk = AnswerDesk(clock: clock, isSecure: configuration.tls != nil, logger: logger)
    router.add(
      middleware: AnswerMiddleware(
        routes: router.routes, origins: OriginRule(allowed: configuration.allowedOrigins), desk: desk))
    operations?.addProbes(to: router)
    Description.add(to: router)
    for (path, file) in dependencies.files { router.get(RouterPath(path)) { request, _ in file.answer(request) } }
    let cookie = SessionCookie(key: configuration.sessions, isSecure: configuration.tls != nil, clock: clock)
    let access = AccessControl(
      hubs: hubs, logins: LoginGuard(limits: configuration.logins), cookie: cookie,
      security: dependencies.security, clock: clock)
    let intake = SendIntake(
      sink: dependencies.sink, topics: configuration.topics, hasRoom: dependencies.hasRoom,
      schedule: dependencies.schedule, clock: clock)
    let idempotency = Idempotency(store: dependencies.claims)
    let hubTemplates = HubTemplates(store: dependencies.templates ?? NoTemplates(), clock: clock)
    let registration = RegistrationRoutes(
      access: access, registry: dependencies.registry, clock: clock, maximumBodySize: configuration.maximumBodySize)
    let notifications = NotificationRoutes(
      access: access, intake: intake, idempotency: idempotency, secure: dependencies.secureStore,
      inquiry: dependencies.inquiry, clock: clock, maximumBodySize: configuration.maximumBodySize,
      securePayloadLifetime: configuration.securePayloadLifetime)
    let sends = SendRoutes(
      access: access, intake: intake, idempotency: idempotency, templates: hubTemplates,
      local: LocalSends(intake: intake, idempotency: idempotency, directory: dependencies.registry), clock: clock,
      maximumBodySize: configuration.maximumBodySize, maximumBatchSize: configuration.maximumBatchSize)
    let tracking = TrackingRoutes(
      access: access, history: dependencies.history, broadcasts: dependencies.broadcasts,
      schedule: dependencies.schedule, clock: clock, maximumBodySize: configuration.maximumBodySize)
    // Before the routes: a middleware applies to those that are added after it.
    let shared = FrontEndOperations(
      registry: dependencies.registry, inquiry: dependencies.inquiry, clock: clock, hubs: hubs.map(\.name),
      maximumBodySize: configuration.maximumBodySize, maximumBatchSize: configuration.maximumBatchSize,
      access: access, intake: intake, idempotency: idempotency, templates: hubTemplates, tracking: tracking)
    let protocols = dependencies.protocols.map { $0(shared) }
    if !protocols.isEmpty { router.add(middleware: ProtocolMiddleware(protocols: protocols, desk: desk)) }
    let fallback = access.fallbackHub
    let deadLetters = DeadLetterRoutes(
      access: access, store: dependencies.deadLetters, hubs: [fallback] + hubs.map(\.name).filter { $0 != fallback },
      maximumBodySize: configuration.maximumBodySize)
    let pulse = PulseRoutes(access: access, source: dependencies.pulse)
    let sessions = SessionRoutes(access: access, cookie: cookie)
    let inquiries = InquiryRoutes(access: access, inquiry: dependencies.inquiry, clock: clock)
    let templates = TemplateRoutes(
      access: access, templates: hubTemplates, registry: dependencies.registry, clock: clock,
      maximumBodySize: configuration.maximumBodySize)
    for root in [router.group(), router.group("hubs/{hub}")] {
      registration.add(to: root)
      notifications.add(to: root)
      sends.add(to: root)
      tracking.add(to: root)
      deadLetters.add(to: root)
      pulse.add(to: root)
      sessions.add(to: root)
      inquiries.add(to: root)
      templates.add(to: root)
    }
    return DirectRoutes(
      hubs: hubs.map(\.name), access: access, intake: intake, templates: hubTemplates, desk: desk,
      maximumBodySize: configuration.maximumBodySize)
  }
}
