import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import FrontEnd
import Ledger
import Logging
import Operations
import PushServices
import PushSimulator
import RDKafka
import Registry
import Roles
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The product's roles in one process, with an embedded cluster and simulated push services.
///
/// All files are in a temporary directory.
struct Demo {
  /// The demonstration to run.
  enum Show {
    /// Users, and a stream of sends to them.
    case stream(sends: Int)
    /// One broadcast, by a worker in another process that can be killed.
    case broadcast(devices: Int)
    /// Registrations and sends in Azure's protocol.
    case azure(AzureLoad)

    /// Whether the worker is another process.
    var hasOwnWorker: Bool {
      if case .broadcast = self { true } else { false }
    }
  }

  let show: Show
  let port: Int
  let isOnce: Bool
  /// Open in each demonstration, for clients of the user.
  private let door = AzureTour.Door()

  init(show: Show, port: Int, isOnce: Bool) { (self.show, self.port, self.isOnce) = (show, port, isOnce) }

  /// Runs the demonstration, then waits for the user unless `isOnce`.
  ///
  /// Returns true if every send was settled and nothing was lost.
  func run() async throws -> Bool {
    let directory = try RunDirectory.create("fanfare-demo")
    defer { RunDirectory.remove(directory) }
    try door.writeRule(in: directory)
    let (settings, _) = try Settings.withWorkshop {
      try Settings.load(file: nil, environment: environment(in: directory), readFurther: $0)
    }
    let runtime = try Runtime(role: "demo", settings: settings)
    // Its servers report the final cancellation as errors.
    var silent = runtime.logger
    silent.logLevel = .critical
    let simulator = try PushSimulator(eventLoopGroup: runtime.eventLoopGroup, logger: silent)
    let cluster = try EmbeddedCluster(
      topics: settings.kafka.specifications(replicationFactor: 1), logger: runtime.logger)
    defer { cluster.close() }
    return try await simulator.withRunning { endpoints in
      try await run(runtime, cluster: cluster, simulator: simulator, endpoints: endpoints, directory: directory)
    }
  }

  /// The scopes of the guests, who try out everything.
  private static let scopes = "device,send:user,send:tag,send:broadcast,send:device,send:native"

  /// The user who may see and control everything; the password is the name.
  static let operatorName = "operator"

  /// A line that leads to the operations page.
  static func invitation(to base: String) -> String {
    "The operations page: \(base)/console (user \(operatorName), password \(operatorName))"
  }

  private func environment(in directory: URL) -> [String: String] {
    [
      "FANFARE_KAFKA_EMBEDDED": "true",
      "FANFARE_LOG_LEVEL": ProcessInfo.processInfo.environment["FANFARE_LOG_LEVEL"] ?? "warning",
      "FANFARE_REGISTRY_PATH": directory.appending(path: "registry.sqlite").path,
      "FANFARE_LEDGER_PATH": directory.appending(path: "ledger.sqlite").path,
      // The tour measures what the front end accepts.
      "FANFARE_HUB_DEFAULT_QUOTA_SENDS_PER_SECOND": "0", "FANFARE_HUB_DEFAULT_QUOTA_DEVICES_PER_DAY": "0",
      "FANFARE_HUB_DEFAULT_QUOTA_OPEN_BROADCASTS": "0", "FANFARE_HUB_DEFAULT_QUOTA_REGISTRATIONS_PER_DAY": "0",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_EVERYONE": Self.scopes,
      // Opal is the operator of the examples in the documentation.
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_OPERATORS": "\(Self.operatorName),opal",
      "FANFARE_API_PORT": "\(port)",
    ].merging(door.environment(in: directory)) { $1 }
  }

  private func run(
    _ runtime: Runtime, cluster: EmbeddedCluster, simulator: PushSimulator, endpoints: SimulatorEndpoints,
    directory: URL
  ) async throws -> Bool {
    var runtime = runtime
    // For clients that are made from the settings.
    runtime.settings.kafka.bootstrapServers = cluster.bootstrapServers
    let settings = runtime.settings
    // The hub reads the simulator's directory, as in any deployment with a simulator.
    let keys = directory.appending(path: "simulator").path
    try simulator.credentials.write(to: keys, endpoints: endpoints)
    let senders = try settings.hubs[0].senders(toSimulator: keys, runtime).map(\.sender)

    let client = settings.kafka.client
    let registry = try RegistryDatabase(SQLiteRegistryConfiguration(path: settings.registry.path))
    let (ledger, store) = try LedgerRole.services(runtime, client: client("ledger"))
    let backlog = try BacklogMonitor(
      client: client("api"), topic: settings.kafka.topics.sends, groupID: settings.workerGroup, logger: runtime.logger)
    let hashing = settings.authentication.makeThreads()
    var hubs: [HubCallers] = []
    for hub in settings.hubs {
      hubs.append(
        try await hub.callers(boundTo: settings.api.reachableHost, keys: registry, hashing: hashing, runtime: runtime))
    }
    let (api, frontEnd) = try APIRole.services(
      runtime, client: client("api"), registry: registry, history: store, configuration: settings.api.frontEnd,
      hubs: hubs, backlog: backlog)
    var services = ledger.services + api.services
    var checks = ledger.checks + api.checks
    if !show.hasOwnWorker {
      let worker = try WorkerRole.services(
        runtime, client: client("worker"), registry: registry, senders: [.default: senders])
      services += worker.services
      checks = worker.checks + checks
    }
    let operations = runtime.operationsServer(runtime.routes(checks: checks))
    // The tour prints its address.
    services.append(Listener(section: "operations", service: operations))
    // Of other processes of this deployment.
    var environment = environment(in: directory)
    environment["FANFARE_KAFKA_BOOTSTRAP_SERVERS"] = cluster.bootstrapServers
    let visit: TourService
    switch show {
    case .stream(let sends):
      let tour = Tour(
        sends: sends, isOnce: isOnce, frontEnd: frontEnd, operations: operations, simulator: simulator, ledger: store,
        endpoints: endpoints, checks: checks)
      visit = TourService { try await tour.run() }
    case .broadcast(let devices):
      environment["FANFARE_HUB_DEFAULT_SIMULATOR"] = keys
      environment["FANFARE_WORKER_PAGE_DEVICES"] = "\(BroadcastTour.pageDevices(of: devices))"
      let tour = BroadcastTour(
        devices: devices, isOnce: isOnce, frontEnd: frontEnd, registry: registry, simulator: simulator,
        worker: DemoWorker(directory: directory, environment: environment),
        strays: Strays(client: try client("strays"), topics: settings.kafka.topics, logger: runtime.logger),
        checks: checks)
      visit = TourService { try await tour.run() }
    case .azure(let load):
      let tour = AzureTour(
        load: load, isOnce: isOnce, door: door, frontEnd: frontEnd, simulator: simulator, ledger: store,
        environment: environment, directory: directory, checks: checks)
      visit = TourService { try await tour.run() }
    }
    var role = RoleServices(services: services, checks: checks)
    try role.addPulse("demo", runtime, client: client("pulse"))
    try await ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: role.services.map { ServiceGroupConfiguration.ServiceConfiguration(service: $0) } + [
          .init(
            service: visit, successTerminationBehavior: .gracefullyShutdownGroup,
            failureTerminationBehavior: .gracefullyShutdownGroup)
        ],
        gracefulShutdownSignals: UnixSignal.ending, logger: runtime.logger)
    ).run()
    return visit.isComplete
  }
}

/// A failure of the demo.
struct DemoError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// The tour as the last service of the demo: it starts when the others run, and its end stops them.
final class TourService: Service {
  private let tour: @Sendable () async throws -> Bool
  private let result = Mutex(false)

  /// `tour` returns true if it was completed and nothing was lost.
  init(_ tour: @escaping @Sendable () async throws -> Bool) {
    self.tour = tour
  }

  /// Whether the tour was completed and nothing was lost.
  var isComplete: Bool { result.withLock { $0 } }

  func run() async throws {
    do {
      let isComplete = try await cancelWhenGracefulShutdown { [tour] in try await tour() }
      result.withLock { $0 = isComplete }
    } catch {
      // The user ended the demo; errors caused by that are no failure.
      guard Task.isShuttingDownGracefully else { throw error }
    }
  }
}

/// Waits until the demo's roles are ready.
struct Readiness {
  let checks: [any ReadinessCheck]

  /// Suspends until all checks pass. After a while it prints the checks that fail.
  func wait() async throws {
    let start = ContinuousClock.now
    var hasComplained = false
    while true {
      var waiting: [String] = []
      for check in checks {
        waiting += await check.problems().map { "\(check.name): \($0.text)" }
      }
      if waiting.isEmpty { return }
      if !hasComplained, ContinuousClock.now - start > .seconds(10) {
        Console.print("Waiting: \(waiting.joined(separator: "; "))")
        hasComplained = true
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
