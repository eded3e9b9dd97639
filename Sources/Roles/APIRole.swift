import AzureHub
import Console
package import FanfareCore
package import FrontEnd
import Ledger
import Logging
import Operations
package import RDKafka
import Registry
import ServiceLifecycle

/// Measures the lag of the sends topic on a cluster that drops records when it is full: a front end then refuses sends
/// before records are dropped.
package protocol BacklogGauge: ProductionWatch {
  /// Measures until cancelled.
  func run() async
  /// Whether another send fits. Cheap; callable from any thread.
  func hasRoom() -> Bool
  /// Whether the lag has been measured; before that there is no room.
  var isInformed: Bool { get }
}

/// The front end as a role.
package enum APIRole {
  /// Creates all services of the role.
  package static func services(_ runtime: Runtime, backlog: (any BacklogGauge)? = nil) async throws -> RoleServices {
    let settings = runtime.settings
    try settings.api.requireProtection()
    var configuration = settings.api.frontEnd
    configuration.tls = try settings.api.tls?.makeTLS()
    let check = try await DurabilityCheck.start(
      settings.kafka, role: "api", topics: settings.intakeTopics, logger: runtime.logger)
    let registry = try await settings.registry.open(role: "api", waits: true, logger: runtime.logger)
    let history = try settings.ledger.history(logger: runtime.logger)
    let hashing = settings.authentication.makeThreads()
    var hubs: [HubCallers] = []
    for hub in settings.hubs {
      hubs.append(
        try await hub.callers(boundTo: settings.api.reachableHost, keys: registry, hashing: hashing, runtime: runtime))
    }
    let (frontEndRole, frontEnd) = try services(
      runtime, client: try settings.kafka.client("api"), registry: registry, history: history,
      configuration: configuration,
      hubs: hubs, backlog: backlog)
    var role = frontEndRole
    if let check { role.services.insert(check, at: 0) }
    role.services += settings.kafka.credentialWatches(logger: runtime.logger)
    role.services.append(
      Announcement(name: "api", file: settings.api.announceFile, logger: runtime.logger) {
        Announcement.address(host: settings.api.frontEnd.host, port: try await frontEnd.boundPort())
      })
    if let settings = settings.api.tls, let tls = configuration.tls {
      let certificate = ListenerCertificate(settings, tls: tls, clock: runtime.clock, metrics: runtime.metrics)
      role.checks.append(certificate.check)
      role.services.append(certificate.watch(logger: runtime.logger))
    }
    role.addOperations(runtime)
    try role.addPulse("api", runtime, client: try settings.kafka.client("pulse"))
    return role
  }

  /// Creates the front end without an operations server, over an open registry and ledger.
  package static func services(
    _ runtime: Runtime, client: KafkaClientConfiguration, registry: any RegistrySettings.Store,
    history: any SendHistory,
    configuration: FrontEndConfiguration, hubs: [HubCallers], backlog: (any BacklogGauge)? = nil
  ) throws -> (RoleServices, FrontEnd) {
    let settings = runtime.settings
    var production = ProducerConfiguration(client: client)
    production.refusesWhileUnreachable = true
    let producer = try Producer(configuration: production, logger: runtime.logger, watch: backlog)
    var services: [any Service] = [UntilShutdown("producer") { await producer.run() }] + hubs.flatMap(\.services)
    var (hasRoom, isInformed): (@Sendable () -> Bool, @Sendable () -> Bool) = ({ true }, { true })
    if let backlog {
      services.append(UntilShutdown("backlog monitor") { await backlog.run() })
      (hasRoom, isInformed) = ({ backlog.hasRoom() }, { backlog.isInformed })
    }
    var checks: [any ReadinessCheck] = [
      NamedCheck("backlog") { [isInformed] in
        isInformed() ? nil : "the lag of the sends topic has not been measured yet"
      },
      NamedCheck("registry") { await RoleServices.problem(of: settings) { try await registry.check() } },
      NamedCheck("ledger") { await RoleServices.problem(of: settings) { try await history.check() } },
      NamedCheck("kafka") {
        await RoleServices.problem(of: settings) {
          _ = try await producer.prepare(topics: settings.intakeTopics, timeout: .seconds(2))
        }
      },
    ]
    checks += hubs.flatMap(\.checks)
    var dependencies = FrontEnd.Dependencies(
      registry: registry, inquiry: registry, secureStore: registry, claims: registry, broadcasts: registry,
      schedule: registry, quotas: registry, history: history,
      deadLetters: KafkaDeadLetters(settings.kafka, logger: runtime.logger),
      sink: producer, hasRoom: hasRoom, security: runtime.security, clock: runtime.clock, tracing: runtime.tracing)
    dependencies.templates = registry
    if settings.console.isEnabled {
      let reader = try PulseReader(
        client: client, topics: settings.kafka.topics,
        hooks: Dictionary(uniqueKeysWithValues: settings.hooks.map { ($0.name, $0.hubs) }), clock: runtime.clock,
        logger: runtime.logger)
      services.append(reader)
      dependencies.pulse = reader
      dependencies.files = ConsolePage.files
    }
    if settings.azure.isEnabled {
      var azure = settings.azure.configuration(of: settings.hubs, runtime)
      azure.jobs = settings.azure.jobs(
        of: settings.hubs, registry: registry, clock: runtime.clock, logger: runtime.logger)
      if let jobs = azure.jobs { services.append(jobs) }
      dependencies.protocols.append { [azure] in AzureRoutes(azure, $0) }
    }
    var configuration = configuration
    configuration.sessions = settings.console.sessions
    let frontEnd = try FrontEnd(
      configuration: configuration, hubs: hubs.map(\.hub), dependencies: dependencies,
      operations: runtime.routes(checks: checks), logger: runtime.logger)
    services.append(
      Scheduler(
        store: registry, sink: producer, topics: settings.kafka.topics, hasRoom: hasRoom, clock: runtime.clock,
        logger: runtime.logger))
    if settings.log.securityKey == nil {
      runtime.logger.notice(
        "The security log uses a random key: its hashes differ after a restart and at other front ends",
        metadata: [LogKeys.key: "log.securityKeyFile"])
    }
    services.append(runtime.securityReports)
    services.append(settings.registry.spaceService(logger: runtime.logger))
    services.append(Listener(section: "api", service: frontEnd))
    // Clients of Azure give installations an end.
    if settings.registry.lifetime != nil || settings.azure.isEnabled {
      let expiry = RegistrationExpiry(
        directory: registry, hubs: hubs.map(\.hub.name), lifetime: settings.registry.lifetime, clock: runtime.clock)
      services.append(ExpiryService(expiry: expiry, logger: runtime.logger))
    }
    return (RoleServices(services: services, checks: checks), frontEnd)
  }
}
