package import FanfareCore
import HTTPServer
import HTTPTypes
package import Logging
import Metrics
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
    /// Records refusals, controls and removals.
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

  /// All routes, for tests.
  var routes: RouteTable<Route> { door.routes }

  /// The bodies and answers that are held now, for tests.
  let budgets: ByteBudgets

  private let door: Door
  private let listener: Listener

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
    budgets = ByteBudgets(
      bodies: ByteBudget(
        limit: configuration.maximumBodyBytesInMemory,
        largest: max(configuration.maximumBodySize, configuration.maximumBatchSize)),
      answers: ByteBudget(
        limit: configuration.maximumAnswerBytesInMemory, largest: configuration.maximumAnswerBytesInMemory / 4))
    let hubs = hubs.map { HubEntry($0, quotas: dependencies.quotas, tracing: dependencies.tracing) }
    door = Self.door(configuration, hubs, dependencies, operations, logger)
    listener = Listener(
      ListenerConfiguration(configuration, budgets), serving: door, logger: logger)
  }

  /// Serves until graceful shutdown or cancellation. Throws if the address cannot be bound. Call it once.
  package func run() async throws {
    try await listener.run(on: MultiThreadedEventLoopGroup.singleton)
  }

  /// Returns the port as soon as the server listens.
  /// Throws `.notListening` if the server ended before that.
  package func boundPort() async throws(FrontEndError) -> Int {
    guard let port = await listener.boundPort() else {
      throw FrontEndError(.notListening, "the front end ended before it listened on a port")
    }
    return port
  }

  /// Makes the application from the routes of all parts.
  private static func door(
    _ configuration: FrontEndConfiguration, _ hubs: [HubEntry], _ dependencies: Dependencies,
    _ operations: OperationsRoutes?, _ logger: Logger
  ) -> Door {
    let clock = dependencies.clock
    let desk = AnswerDesk(clock: clock, isSecure: configuration.tls != nil, logger: logger)
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
      intake: intake, idempotency: idempotency, secure: dependencies.secureStore,
      inquiry: dependencies.inquiry, clock: clock, maximumBodySize: configuration.maximumBodySize,
      securePayloadLifetime: configuration.securePayloadLifetime, logger: logger)
    let sends = SendRoutes(
      access: access, intake: intake, idempotency: idempotency, templates: hubTemplates,
      local: LocalSends(intake: intake, idempotency: idempotency, directory: dependencies.registry), clock: clock,
      maximumBodySize: configuration.maximumBodySize, maximumBatchSize: configuration.maximumBatchSize)
    let tracking = TrackingRoutes(
      access: access, history: dependencies.history, broadcasts: dependencies.broadcasts,
      schedule: dependencies.schedule, clock: clock, maximumBodySize: configuration.maximumBodySize)
    let shared = FrontEndOperations(
      registry: dependencies.registry, inquiry: dependencies.inquiry, clock: clock, hubs: hubs.map(\.name),
      maximumBodySize: configuration.maximumBodySize, maximumBatchSize: configuration.maximumBatchSize,
      access: access, intake: intake, idempotency: idempotency, templates: hubTemplates, tracking: tracking)
    let fallback = access.fallbackHub
    let deadLetters = DeadLetterRoutes(
      access: access, store: dependencies.deadLetters, hubs: [fallback] + hubs.map(\.name).filter { $0 != fallback },
      maximumBodySize: configuration.maximumBodySize)
    let templates = TemplateRoutes(
      access: access, templates: hubTemplates, registry: dependencies.registry, clock: clock,
      maximumBodySize: configuration.maximumBodySize)
    let hubRoutes =
      registration.routes + notifications.routes + sends.routes + tracking.routes + deadLetters.routes
      + PulseRoutes(access: access, source: dependencies.pulse).routes
      + SessionRoutes(access: access, cookie: cookie).routes
      + InquiryRoutes(inquiry: dependencies.inquiry, clock: clock).routes + templates.routes
    var routes = RouteTable<Route>()
    for route in hubRoutes {
      for root in ["", "hubs/{hub}/"] { routes.add(route.method, root + route.pattern, route) }
    }
    // Those that belong to the process, not to a hub.
    let files = Description.files.merging(dependencies.files) { $1 }
    for var route in (operations?.frontEndRoutes ?? []) + files.map({ Route.file($1, at: $0) }) {
      route.isOfProcess = true
      routes.add(route.method, route.pattern, route)
    }
    return Door(
      routes: routes, protocols: dependencies.protocols.map { $0(shared) },
      origins: OriginRule(allowed: configuration.allowedOrigins), access: access, desk: desk,
      mailboxes: SendMailboxes(intake, desk))
  }
}

extension OperationsRoutes {
  fileprivate var frontEndRoutes: [Route] {
    probes.map { probe in .open(.get, probe.path) { _ in .later { _ in try await probe.answer() } } }
  }
}

extension Route {
  fileprivate static func file(_ file: StaticFile, at path: String) -> Route {
    .open(.get, path) { .now(file.answer($0)) }
  }
}

extension ListenerConfiguration {
  fileprivate init(_ configuration: FrontEndConfiguration, _ budgets: ByteBudgets) {
    self.init(host: configuration.host, port: configuration.port, budgets: budgets)
    (tls, proxies, requiresProxy) = (configuration.tls, configuration.proxies, configuration.requiresProxy)
    maximumConnections = configuration.maximumConnections
    maximumConnectionsPerAddress = configuration.maximumConnectionsPerAddress
    maximumHeaderFieldSize = configuration.maximumHeaderFieldSize
    maximumHeaderSize = configuration.maximumHeaderSize
    maximumHeaderCount = configuration.maximumHeaderCount
    wholeBodySize = configuration.maximumBodySize
    maximumBodySize = max(configuration.maximumBodySize, configuration.maximumBatchSize)
    firstRequestTimeout = configuration.firstRequestTimeout
    bodyTimeout = configuration.bodyTimeout
    idleTimeout = configuration.idleTimeout
    writeTimeout = configuration.writeTimeout
    drainTimeout = configuration.drainTimeout
    func closed(_ reason: String) -> Counter {
      Counter(label: "fanfare_http_connections_closed_total", dimensions: [("reason", reason)])
    }
    metrics = ConnectionMetrics(
      open: Gauge(label: "fanfare_http_connections"), evicted: closed("evicted"), refused: closed("perAddress"),
      floods: closed("flood"))
  }
}
