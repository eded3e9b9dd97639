import EmbeddedKafka
import FanfareCore
import Foundation
import Logging
import RDKafka
import Support
import Synchronization

@testable import fanfare_dev

/// A deployment in separate processes: broker, simulator, ledger, and the front ends and workers that a test starts.
///
/// If `FANFARE_TEST_KAFKA` names a real cluster, the deployment uses it instead of a broker, with its own topic prefix.
final class Deployment: Sendable {
  let directory: URL
  /// The cluster's `host:port`.
  let bootstrapServers: String
  /// The names of its topics.
  let topics: Topics
  let simulator: Caller
  /// The ledger's operations address.
  let ledger: Caller
  /// The ledger that the deployment began with.
  let ledgerProcess: ChildProcess
  /// The variables of its processes.
  let environment: [String: String]
  private let processes: Processes

  /// All started processes; used to end every one of them.
  private final class Processes: Sendable {
    private let all = Mutex<[ChildProcess]>([])

    func start(_ role: String, _ environment: [String: String], _ directory: URL) throws -> ChildProcess {
      let process =
        ["broker", "simulator"].contains(role)
        ? try ChildProcess([role], name: role, environment: environment, directory: directory)
        : try .role(
          [role], environment: environment, inWorkshop: TestKafka.realServers == nil, directory: directory)
      all.withLock { $0.append(process) }
      return process
    }

    func terminate() async throws -> [(name: String, status: Int32)] {
      var ends: [(name: String, status: Int32)] = []
      for process in all.withLock({ $0 }).reversed() { ends.append((process.name, try await process.terminate())) }
      return ends
    }

    func destroy() {
      for process in all.withLock({ $0 }) { process.destroy() }
    }

    /// The last lines of all logs, printed after a failure.
    var logs: String {
      all.withLock { $0 }.map { "--- \($0.name)\n\($0.lastWords)" }.joined(separator: "\n")
    }
  }

  /// Runs a test in a deployment and ends all its processes, also after a failure.
  ///
  /// `settings` are additional environment variables of every process. `files` are copied into the directory, each
  /// under its name there, before anything starts.
  static func with(
    _ settings: [String: String] = [:], files: [String: URL] = [:], _ body: (Deployment) async throws -> Void
  ) async throws {
    try await withDirectory("deployment") { directory in
      for (name, file) in files {
        try FileManager.default.copyItem(at: file, to: directory.appending(path: name))
      }
      let processes = Processes()
      defer { processes.destroy() }
      do {
        try await body(try await Deployment(directory: directory, processes: processes, settings: settings))
      } catch {
        print(processes.logs)
        throw error
      }
    }
  }

  private init(directory: URL, processes: Processes, settings: [String: String]) async throws {
    self.directory = directory
    self.processes = processes
    func path(_ name: String) -> String { directory.appending(path: name).path }
    let prefix = TestKafka.realServers == nil ? "fanfare" : "fanfare-\(UUID())"
    topics = Topics(prefix: prefix)
    let kafka =
      if let servers = TestKafka.realServers {
        ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": servers, "FANFARE_KAFKA_REPLICATION_FACTOR": "1"]
      } else {
        [
          "FANFARE_KAFKA_BOOTSTRAP_SERVERS_FILE": path("broker"), "FANFARE_BROKER_ANNOUNCE_FILE": path("broker"),
          "FANFARE_KAFKA_EMBEDDED": "true",
        ]
      }
    environment = [
      "FANFARE_KAFKA_TOPIC_PREFIX": prefix, "FANFARE_KAFKA_PARTITIONS": "32",
      "FANFARE_REGISTRY_PATH": path("registry.sqlite"),
      "FANFARE_LEDGER_PATH": path("ledger.sqlite"), "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo",
      "FANFARE_API_PORT": "0",
      "FANFARE_SIMULATOR_DIRECTORY": path("simulator"), "FANFARE_HUB_DEFAULT_SIMULATOR": path("simulator"),
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_OPERATORS": "operator",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_EVERYONE": "device,send:user,send:tag,send:broadcast,send:device,send:native",
    ].merging(kafka) { $1 }.merging(settings) { $1 }
    if let servers = TestKafka.realServers {
      bootstrapServers = servers
      let creation = try ChildProcess(
        ["topics", "create"], name: "topics", environment: environment, program: ChildProcess.product,
        directory: directory)
      guard try await creation.exitStatus() == 0 else { throw ChildProcess.Failure("topics create", log: creation.log) }
    } else {
      bootstrapServers = try await processes.start("broker", environment, directory).address()
    }
    let simulator = try processes.start("simulator", environment, directory)
    self.simulator = Caller(base: try await simulator.address())
    ledgerProcess = try processes.start("ledger", environment, directory)
    ledger = Caller(base: "http://" + (try await ledgerProcess.address(of: "operations")))
  }

  /// Starts another ledger, after the one before it has ended.
  func startLedger() throws -> ChildProcess { try processes.start("ledger", environment, directory) }

  /// Starts another front end and returns a caller for it once it is ready.
  func startFrontEnd() async throws -> Caller { try await startObservedFrontEnd().caller }

  /// Starts another front end and returns callers for it and for its operations address once it is ready.
  func startObservedFrontEnd() async throws -> (caller: Caller, operations: Caller) {
    let process = try startFrontEndProcess()
    let addresses = try await process.addresses(of: "api", "operations").map { Caller(base: "http://" + $0) }
    try await eventually("the front end to be ready") { try await addresses[1].get("/readyz").status == 200 }
    return (addresses[0], addresses[1])
  }

  /// Starts another front end without waiting for it. `variables` are added to its environment.
  func startFrontEndProcess(_ variables: [String: String] = [:]) throws -> ChildProcess {
    try processes.start("api", environment.merging(variables) { $1 }, directory)
  }

  /// Starts another worker. It needs some seconds to join; see `ready`.
  func startWorker() throws -> ChildProcess { try processes.start("worker", environment, directory) }

  /// Starts webhooks without waiting for them. `variables` are added to the environment.
  func startHooks(_ variables: [String: String]) throws -> ChildProcess {
    try processes.start("hooks", environment.merging(variables) { $1 }, directory)
  }

  /// Suspends until the role is ready. Returns a caller for its operations address.
  func ready(_ role: ChildProcess) async throws -> Caller {
    let caller = Caller(base: "http://" + (try await role.address(of: "operations")))
    try await eventually("the \(role.name) to be ready") { try await caller.get("/readyz").status == 200 }
    return caller
  }

  /// Runs one of the product's commands in this deployment until it ends. `variables` are added to its environment.
  func run(
    _ arguments: [String], _ variables: [String: String] = [:]
  ) async throws -> (status: Int32, output: String, errors: String) {
    let process = try start(arguments, variables)
    defer { process.destroy() }
    let status = try await process.exitStatus(within: .seconds(120))
    return (status, try process.output(), process.log)
  }

  /// Starts one of the product's commands in this deployment. The caller ends it.
  func start(_ arguments: [String], _ variables: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess(
      arguments, name: arguments[0], environment: environment.merging(variables) { $1 }, program: ChildProcess.product,
      directory: directory, keepsOutput: true)
  }

  /// Produces records directly, as any backend may. Throws unless Kafka acknowledges all of them.
  func produce(_ records: [ProducerRecord]) async throws {
    let client = KafkaClientConfiguration(
      bootstrapServers: bootstrapServers, clientID: "test",
      profile: TestKafka.realServers == nil ? .embedded : ClusterProfile())
    let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: Logger(label: "test"))
    async let running: Void = producer.run()
    for result in await producer.send(records) { _ = try result.get() }
    await producer.close(timeout: .seconds(5))
    await running
  }

  /// Ends every process by SIGTERM, the last started first, and returns their exit statuses.
  func terminate() async throws -> [(name: String, status: Int32)] { try await processes.terminate() }

  /// The payloads that arrived on a device, oldest first, as JSON values; XML as text.
  func arrivals(_ platform: String, _ handle: String) async throws -> [Any] {
    let answer = try await simulator.get("/devices/\(platform)/\(handle)")
    guard answer.status == 200 else { return [] }
    let notifications = try answer.json["notifications"] as? [[String: Any]] ?? []
    return notifications.compactMap { $0["payload"] }
  }

  /// Suspends until all push services together have accepted at least `count` pushes.
  func arrived(_ count: Int, within limit: Duration = .seconds(60)) async throws {
    let simulator = simulator
    try await eventually(within: limit, "\(count) pushes to arrive") {
      (try await simulator.get("/counts").json["accepted"] as? Int ?? 0) >= count
    }
  }

  /// Suspends until the send has settled and returns its report.
  func settled(_ send: String, as user: String, at caller: Caller) async throws -> [String: Any] {
    let answer = try await withTimeLimit(.seconds(60), "send \(send) to settle") {
      while true {
        let answer = try await caller.get("/api/sends/\(send)", user: user)
        // 429 if the user has used up its reads of this second.
        if answer.status == 200, try answer.json["state"] as? String != "accepted" { return answer }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    return try answer.json
  }
}
