import EmbeddedKafka
import FanfareCore
import Foundation
import Ledger
import Logging
import NIOCore
import RDKafka
import Registry
import Roles
import Store
import Synchronization

/// A deployment in separate processes, for injecting faults.
///
/// Unless the user names a cluster, Kafka is embedded in this process, so that its brokers can fail on demand.
actor FaultDeployment {
  static let users = 300
  private static let frontEnds = 2
  static let workers = 3
  /// Devices in a page of a broadcast and in the head start of the next.
  static let pageDevices = 500

  /// The embedded cluster in this process; nil if the user named a cluster.
  private let embedded: EmbeddedCluster?
  private let ownTopics: OwnTopics?
  private let schema: OwnSchema?
  private let identityProvider: IdentityProvider?
  nonisolated let topics: Topics
  /// The client configuration of the deployment's Kafka, for writing to the topics without the front end.
  nonisolated let kafka: KafkaClientConfiguration
  /// Whether the roles run in this program instead of the product.
  private let isInWorkshop: Bool
  let logger: Logger
  nonisolated let directory: URL
  private let environment: [String: String]
  private var processes: [String: ChildProcess] = [:]
  /// Clients of the front ends, by name.
  private var callers: [String: APIClient] = [:]
  /// The operations listeners of the front ends.
  private var probes: [String: APIClient] = [:]
  /// The metrics of the workers, by name.
  private var metrics: [String: RoleMetrics] = [:]
  private var simulator: APIClient?
  /// The end of the injury; nil if it was the scenario's last step.
  private(set) var healedAt: ContinuousClock.Instant?
  /// Moments that the scenario noted.
  private(set) var moments: [UnixTime] = []
  /// Figures that the scenario noted.
  private(set) var notes: [String] = []
  /// The broadcast that the scenario has posted, if any.
  private(set) var broadcast: SendID?
  nonisolated let history: any FaultHistory
  nonisolated let ledgerDisk: SmallDisk

  private init(_ scenario: FaultScenario, on servers: FaultServers, directory: URL) async throws {
    self.directory = directory
    var logger = Logger(label: "fanfare.faults")
    logger.logLevel = .error
    self.logger = logger
    let (id, few) = (UUID().uuidString.lowercased().prefix(8), scenario.topics)
    if let servers = servers.kafka {
      topics = Topics(prefix: "faults-\(id)", retryDelays: few.retryDelays)
      let own = try await OwnTopics(topics, partitions: { _ in few.partitions }, at: servers, logger: logger)
      (embedded, ownTopics, kafka) = (nil, own, own.client)
    } else {
      topics = Topics(retryDelays: few.retryDelays)
      let cluster = try EmbeddedCluster(
        brokers: 1, topics: topics.created.map { TopicSpecification(name: $0, partitions: few.partitions) },
        logger: logger)
      (embedded, ownTopics) = (cluster, nil)
      kafka = KafkaClientConfiguration(
        bootstrapServers: cluster.bootstrapServers, clientID: "fanfare-dev", profile: .embedded)
    }
    let isEmbedded = kafka.profile.isEmbedded
    isInWorkshop = isEmbedded || scenario.needs.contains(.steppedClocks)
    let path = { (name: String) in directory.appending(path: name).path }
    ledgerDisk = SmallDisk(directory: directory.appending(path: "ledger"))
    try FileManager.default.createDirectory(at: ledgerDisk.directory, withIntermediateDirectories: true)
    var environment = [
      "FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrapServers, "FANFARE_KAFKA_EMBEDDED": "\(isEmbedded)",
      "FANFARE_KAFKA_TOPIC_PREFIX": topics.prefix,
      // Topics of a named cluster have its default settings.
      "FANFARE_KAFKA_DURABILITY_CHECK": "off",
      "FANFARE_KAFKA_RETRY_DELAYS": few.retryDelays.map(String.init).joined(separator: ","),
      "FANFARE_WORKER_LONGEST_REST": "1", "FANFARE_WORKER_PAGE_DEVICES": "\(Self.pageDevices)",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo", "FANFARE_HUB_DEFAULT_AUTHENTICATION_OPERATORS": "operator",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_EVERYONE": "device,send:user,send:tag,send:broadcast,send:device,send:native",
      // The load has one sender. While the registry is away, its quota would refuse sends.
      "FANFARE_HUB_DEFAULT_QUOTA_SENDS_PER_SECOND": "0", "FANFARE_HUB_DEFAULT_QUOTA_STORED_BYTES_PER_DAY": "0",
      "FANFARE_HUB_DEFAULT_QUOTA_REGISTRATIONS_PER_DAY": "0", "FANFARE_HUB_DEFAULT_QUOTA_OPEN_BROADCASTS": "0",
      "FANFARE_HUB_DEFAULT_QUOTA_DEVICES_PER_DAY": "0", "FANFARE_HUB_DEFAULT_QUOTA_READS_PER_SECOND": "0",
      "FANFARE_API_PORT": "0", "FANFARE_LOG_LEVEL": "notice",
      "FANFARE_SIMULATOR_DIRECTORY": path("simulator"), "FANFARE_HUB_DEFAULT_SIMULATOR": path("simulator"),
      // The simulator keeps all notifications, because a missing one counts as lost.
      "FANFARE_SIMULATOR_NOTIFICATIONS_PER_DEVICE": "100000",
    ].merging(scenario.settings) { $1 }
    identityProvider =
      scenario.needs.contains(.identityProvider) ? try await IdentityProvider.start() : nil
    if let identityProvider { environment.merge(identityProvider.settings) { $1 } }
    if let database = servers.postgres {
      let schema = OwnSchema("faults_\(id)", in: database, logger: logger)
      environment["FANFARE_REGISTRY_POSTGRES_URL"] = schema.connection
      environment["FANFARE_LEDGER_POSTGRES_URL"] = schema.connection
      let ledger = PostgreSQLLedgerConfiguration(database: schema.configuration)
      history = try PostgreSQLLedger(ledger, logger: logger)
      self.schema = schema
    } else {
      environment["FANFARE_REGISTRY_PATH"] = path("registry.sqlite")
      environment["FANFARE_LEDGER_PATH"] = path("ledger/ledger.sqlite")
      history = SQLiteLedgerReader(SQLiteLedgerConfiguration(path: path("ledger/ledger.sqlite")))
      schema = nil
    }
    self.environment = environment
    try await schema?.create()
  }

  /// Runs `body` in a deployment for the scenario once it is ready, and always ends its processes.
  static func with<Value: Sendable>(
    _ scenario: FaultScenario, on servers: FaultServers, _ body: (FaultDeployment) async throws -> Value
  ) async throws -> Value {
    let directory = try RunDirectory.create("fanfare-faults")
    defer { RunDirectory.remove(directory) }
    let deployment = try await FaultDeployment(scenario, on: servers, directory: directory)
    if scenario.needs.contains(.smallDisk) { try await deployment.ledgerDisk.mount() }
    for (name, contents) in scenario.files {
      let file = directory.appending(path: name)
      try Data(contents.utf8).write(to: file)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }
    let result: Result<Value, any Error>
    do {
      try await deployment.startAll()
      result = .success(try await body(deployment))
    } catch {
      // The logs matter only without a cancellation.
      if !Task.isCancelled { Console.error(await deployment.lastWords) }
      result = .failure(error)
    }
    try await deployment.destroy()
    if scenario.needs.contains(.smallDisk) { try await deployment.ledgerDisk.unmount() }
    return try result.get()
  }

  private func startAll() async throws {
    simulator = APIClient(base: try await start("simulator").address())
    _ = try start("ledger")
    for number in 0..<Self.workers { _ = try start("worker", number) }
    for number in 0..<Self.frontEnds { try await startFrontEnd(number) }
    for number in 0..<Self.workers { try await ready("worker", number) }
  }

  private func destroy() async throws {
    for process in processes.values { process.destroy() }
    identityProvider?.close()
    embedded?.close()
    await ownTopics?.delete()
    try await schema?.drop()
  }

  /// The embedded cluster, for a scenario that needs it.
  var cluster: EmbeddedCluster {
    get throws {
      guard let embedded else { throw BenchError("the cluster is not in this process") }
      return embedded
    }
  }

  /// The identity provider, for a scenario that needs it.
  var provider: IdentityProvider {
    get throws {
      guard let identityProvider else { throw BenchError("there is no identity provider") }
      return identityProvider
    }
  }

  /// The time in which the group notices dead workers and reassigns their partitions.
  nonisolated var sessionPatience: Duration { kafka.profile.sessionTimeout + .seconds(8) }

  /// The registry of the deployment.
  func openRegistry() async throws -> any RegistrySettings.Store {
    if let schema { return try await RegistryDatabase(schema.configuration, logger: logger) }
    return try RegistryDatabase(SQLiteRegistryConfiguration(path: registry))
  }

  private var lastWords: String {
    processes.sorted { $0.key < $1.key }.map { "--- \($0.key)\n\($0.value.lastWords)" }.joined(separator: "\n")
  }

  /// Starts a role, in place of the former process of that name.
  @discardableResult
  func start(_ role: String, _ number: Int = 0) throws -> ChildProcess {
    var environment = environment
    environment["FANFARE_OPERATIONS_CLOCK_OFFSET_FILE"] = clockFile(role, number).path
    let process =
      role == "simulator"
      ? try ChildProcess([role], name: role, environment: environment, directory: directory)
      : try .role([role], environment: environment, inWorkshop: isInWorkshop, directory: directory)
    processes["\(role)-\(number)"] = process
    return process
  }

  /// Starts a front end and waits until it is ready.
  func startFrontEnd(_ number: Int) async throws {
    let addresses = try await start("api", number).addresses(of: "api", "operations")
    callers["api-\(number)"] = APIClient(base: "http://" + addresses[0])
    probes["api-\(number)"] = APIClient(base: "http://" + addresses[1])
    try await Ready.wait(for: try process("api", number), operations: addresses[1])
  }

  /// Waits until the process is ready.
  func ready(_ role: String, _ number: Int = 0) async throws {
    let process = try process(role, number)
    let address = try await process.address(of: "operations")
    try await Ready.wait(for: process, operations: address)
    metrics["\(role)-\(number)"] = RoleMetrics(operations: address)
  }

  /// Waits until these workers, which are all that run, share the partitions of sends and segments evenly.
  ///
  /// Returns their numbers of partitions of the sends topic. Throws after a minute.
  func waitForEvenShares(among workers: [Int]) async throws -> [Int] {
    let reader = try LogReader(client: kafka, logger: logger)
    return try await RoleMetrics.waitForEvenShares(
      of: [topics.sends, topics.segments], partitions: try await reader.partitions(of: [topics.sends]).count,
      among: workers.compactMap { metrics["worker-\($0)"] })
  }

  private func process(_ role: String, _ number: Int) throws -> ChildProcess {
    guard let process = processes["\(role)-\(number)"] else { throw BenchError("there is no \(role) \(number)") }
    return process
  }

  /// Kills the process.
  func kill(_ role: String, _ number: Int = 0) async throws {
    let process = try process(role, number)
    process.destroy()
    _ = try await process.exitStatus()
  }

  /// Ends the process by SIGTERM. Throws unless its status is 0.
  func terminate(_ role: String, _ number: Int = 0) async throws {
    let process = try process(role, number)
    let status = try await process.terminate()
    guard status == 0 else { throw BenchError("\(role) \(number) ended with status \(status)\n\(process.lastWords)") }
  }

  /// Suspends the process, like swapping or a debugger; `resume` continues it.
  func freeze(_ role: String, _ number: Int = 0) throws { try process(role, number).signal(SIGSTOP) }

  /// Continues a frozen process.
  func resume(_ role: String, _ number: Int = 0) throws { try process(role, number).signal(SIGCONT) }

  /// Sets the offset of one process's clock.
  nonisolated func setClock(_ role: String, _ number: Int, by offset: Duration) throws {
    let milliseconds = Int64(offset / .milliseconds(1))
    try Data("\(milliseconds)\n".utf8).write(to: clockFile(role, number), options: .atomic)
  }

  private nonisolated func clockFile(_ role: String, _ number: Int) -> URL {
    directory.appending(path: "clock-\(role)-\(number)")
  }

  nonisolated var registry: String { directory.appending(path: "registry.sqlite").path }

  /// Posts a broadcast and notes its id.
  func post(broadcast body: String) async throws -> SendID {
    struct Answer: Decodable { let id: String }
    let frontEnd = try frontEnd
    let answer = try await frontEnd.request("POST", "/api/sends", user: "faults", body: body)
    guard let id = SendID(try JSONDecoder().decode(Answer.self, from: answer).id) else {
      throw BenchError("the send has no id")
    }
    broadcast = id
    return id
  }

  /// Notes the end of the injury; the last call counts.
  func noteHealed() { healedAt = .now }

  /// Notes a figure for the table.
  func note(_ figure: String) { notes.append(figure) }

  /// Notes the present moment.
  func note() { moments.append(SystemWallClock().now()) }

  /// The administration of the simulator.
  func simulated() throws -> APIClient {
    guard let simulator else { throw BenchError("there is no simulator") }
    return simulator
  }

  /// The running front ends, in a fixed order.
  var frontEnds: [APIClient] { callers.sorted { $0.key < $1.key }.map(\.value) }

  /// The first of them.
  var frontEnd: APIClient {
    get throws {
      guard let first = frontEnds.first else { throw BenchError("there is no front end") }
      return first
    }
  }

  /// The resident memory of the first front end, in megabytes.
  func memoryOfFrontEnd() async throws -> Double {
    guard let probe = probes.min(by: { $0.key < $1.key })?.value else { throw BenchError("there is no front end") }
    let metrics = String(decoding: try await probe.request("GET", "/metrics", user: "faults"), as: UTF8.self)
    let line = metrics.split(separator: "\n").first { $0.hasPrefix("process_resident_memory_bytes ") }
    guard let bytes = line?.split(separator: " ").last.flatMap({ Double($0) }) else {
      throw BenchError("the front end does not tell its memory")
    }
    return bytes / 1e6
  }

  /// Whether a front end is not ready.
  func hasUnreadyFrontEnd() async -> Bool {
    for probe in probes.values {
      do { _ = try await probe.request("GET", "/readyz", user: "faults") } catch { return true }
    }
    return false
  }

  /// The exit status, JSON output and log of `fanfare audit`.
  func audit() async throws -> (status: Int32, report: String, words: String) {
    let audit = try ChildProcess(
      ["audit", "--json"], name: "audit", environment: environment, program: ChildProcess.product,
      directory: directory, keepsOutput: true)
    defer { audit.destroy() }
    let status = try await audit.exitStatus(within: .seconds(120))
    return (status, try audit.output(), audit.lastWords)
  }
}

extension FaultDeployment {
  /// Waits until the workers have committed all records that are on the sends topic now.
  ///
  /// A death after that does not repeat these records. Throws after two minutes.
  func waitForCommits() async throws {
    let topics = topics
    let reader = try LogReader(client: kafka, logger: logger)
    let partitions = try await reader.partitions(of: [topics.sends])
    let ends = try await reader.ends(of: partitions).filter { $0.offset > 0 }
    try await withTimeLimit(.seconds(120), "the workers' commits") {
      while true {
        let positions = try await reader.committed(by: "\(topics.prefix).workers", in: partitions)
        let committed = Dictionary(uniqueKeysWithValues: positions.map { ($0.partition, $0.offset) })
        if ends.allSatisfy({ committed[$0.partition] ?? 0 >= $0.offset }) { return }
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }
}
