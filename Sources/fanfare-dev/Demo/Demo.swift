import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import FrontEnd
import Ledger
import Logging
import PushSimulator
import RDKafka
import Registry
import Roles
import ServiceLifecycle
import UnixSignals

/// The whole product in one process: the roles as they are in production, over an embedded cluster, simulated push
/// services and a directory of its own.
struct Demo {
  /// What the visitor is shown.
  enum Show {
    /// People, and a stream of so many sends to them.
    case stream(sends: Int)
    /// One broadcast to so many devices, by a worker in a process of its own, which can be killed.
    case broadcast(devices: Int)
  }

  let show: Show
  let port: Int
  let isOnce: Bool

  /// Runs until everything has been shown, and then, unless it is to run only once, until the visitor ends it. True if
  /// every send was accepted and settled and nothing was lost.
  func run() async throws -> Bool {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-demo-\(UUID())")
    // Nobody else's: what is there already is refused.
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    defer {
      do { try FileManager.default.removeItem(at: directory) } catch {
        Console.error("Left behind: \(directory.path): \(error)")
      }
    }
    let (settings, _) = try await Settings.withWorkshop {
      try await Settings.load(file: nil, environment: environment(in: directory), readFurther: $0)
    }
    let runtime = try Runtime(role: "demo", settings: settings)
    // It is cancelled at the end, and its servers report as errors what that interrupts.
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

  private func environment(in directory: URL) -> [String: String] {
    [
      "FANFARE_KAFKA_EMBEDDED": "true", "FANFARE_LOG_LEVEL": "warning",
      "FANFARE_REGISTRY_PATH": directory.appending(path: "registry.sqlite").path,
      "FANFARE_LEDGER_PATH": directory.appending(path: "ledger.sqlite").path,
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo", "FANFARE_API_PORT": "\(port)",
    ]
  }

  private func run(
    _ runtime: Runtime, cluster: EmbeddedCluster, simulator: PushSimulator, endpoints: SimulatorEndpoints,
    directory: URL
  ) async throws -> Bool {
    let settings = runtime.settings
    // The hub finds its push services as in any deployment with a simulator: in the simulator's directory.
    let keys = directory.appending(path: "simulator").path
    try simulator.credentials.write(to: keys, endpoints: endpoints)
    let hub = try SimulatorDirectory(path: keys).configurations(of: .default)
    let senders = try HubSettings.senders(apns: hub.apns, fcm: hub.fcm, wns: hub.wns, runtime: runtime)

    func client(_ role: String) -> KafkaClientConfiguration {
      KafkaClientConfiguration(
        bootstrapServers: cluster.bootstrapServers, clientID: "fanfare-\(role)", profile: .embedded)
    }
    let registry = try SQLiteRegistry(SQLiteRegistryConfiguration(path: settings.registry.path))
    let (ledger, store) = try LedgerRole.services(runtime, client: client("ledger"))
    let backlog = try BacklogMonitor(
      client: client("api"), topic: settings.kafka.topics.sends, groupID: settings.workerGroup, logger: runtime.logger)
    let (api, frontEnd) = try APIRole.services(
      runtime, client: client("api"), registry: registry, history: store, configuration: settings.api.frontEnd,
      hubs: settings.hubs.map { hub in
        FrontEndHub(
          name: hub.name,
          authenticator: try hub.authenticator(boundTo: settings.api.frontEnd.host, logger: runtime.logger),
          quota: hub.quota)
      }, backlog: backlog)
    let visit: TourService
    var services = ledger.services + api.services
    switch show {
    case .stream(let sends):
      let worker = try WorkerRole.services(
        runtime, client: client("worker"), registry: registry, senders: [.default: senders])
      services += worker.services
      let tour = Tour(
        sends: sends, isOnce: isOnce, frontEnd: frontEnd, simulator: simulator, ledger: store, endpoints: endpoints,
        checks: worker.checks + ledger.checks + api.checks)
      visit = TourService { try await tour.run() }
    case .broadcast(let devices):
      let worker = DemoWorker(
        directory: directory,
        environment: environment(in: directory).merging([
          "FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers, "FANFARE_HUB_DEFAULT_SIMULATOR": keys,
          "FANFARE_WORKER_PAGE_DEVICES": "\(BroadcastTour.pageDevices(of: devices))",
        ]) { $1 })
      let tour = BroadcastTour(
        devices: devices, isOnce: isOnce, frontEnd: frontEnd, registry: registry, simulator: simulator, worker: worker,
        checks: ledger.checks + api.checks)
      visit = TourService { try await tour.run() }
    }
    try await ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services.map { ServiceGroupConfiguration.ServiceConfiguration(service: $0) } + [
          .init(
            service: visit, successTerminationBehavior: .gracefullyShutdownGroup,
            failureTerminationBehavior: .gracefullyShutdownGroup)
        ],
        gracefulShutdownSignals: UnixSignal.ending, logger: runtime.logger)
    ).run()
    return visit.isComplete
  }
}
