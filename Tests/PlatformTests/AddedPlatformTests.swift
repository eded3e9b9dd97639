import AsyncHTTPClient
import EmbeddedKafka
import FanfareCore
import Foundation
import FrontEnd
import Logging
import NIOCore
import NIOHTTP1
import Operations
import PushServices
import PushSimulator
import RDKafka
import ServiceLifecycle
import Support
import Testing

@testable import Roles

/// Sends through the whole product to a platform that this target adds. The article "Add a platform" describes
/// its declarations.
@Suite struct AddedPlatformTests {
  /// It runs in a process of its own: the lists of platforms are fixed when they are first used.
  @Test(.timeLimit(.minutes(2))) func sendsReachTheDevicesOfAnAddedPlatform() async {
    await #expect(processExitsWith: .success) {
      PlatformList.add(Pager.self)
      do { try await AddedPlatform.run() } catch { Issue.record(error) }
    }
  }
}

/// Front end, ledger and worker in this process, with an embedded broker and the simulator.
private struct AddedPlatform {
  let http: HTTPClient
  let address: String
  let simulator: PushSimulator
  let runtime: Runtime
  let directory: URL

  private static func environment(in directory: URL) -> [String: String] {
    func path(_ name: String) -> String { directory.appending(path: name).path }
    return [
      "FANFARE_KAFKA_DURABILITY_CHECK": "off", "FANFARE_REGISTRY_PATH": path("registry.sqlite"),
      "FANFARE_LEDGER_PATH": path("ledger.sqlite"), "FANFARE_API_PORT": "0", "FANFARE_LOG_LEVEL": "error",
      "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo", "FANFARE_HUB_DEFAULT_SIMULATOR": path("simulator"),
    ]
  }

  static func run() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-pager-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let cluster = try EmbeddedCluster(
      topics: Topics().all.map { TopicSpecification(name: $0, partitions: 1) }, logger: TestKafka.quietLogger)
    defer { cluster.close() }
    var environment = environment(in: directory)
    environment["FANFARE_KAFKA_BOOTSTRAP_SERVERS"] = cluster.bootstrapServers
    let settings = try Settings.load(file: nil, environment: environment)
    let runtime = Runtime(settings: settings, logger: TestKafka.quietLogger)
    let simulator = try PushSimulator(eventLoopGroup: runtime.eventLoopGroup, logger: TestKafka.quietLogger)
    try await simulator.withRunning { endpoints in
      let files = directory.appending(path: "simulator")
      try simulator.credentials.write(to: files.path, endpoints: endpoints)
      try await run(runtime, simulator, in: directory)
    }
  }

  private static func run(_ runtime: Runtime, _ simulator: PushSimulator, in directory: URL) async throws {
    let settings = runtime.settings
    func client(_ role: String) throws -> KafkaClientConfiguration { try settings.kafka.client(role) }
    let registry = try await settings.registry.open(role: "api", waits: true, logger: runtime.logger)
    let (ledger, history) = try LedgerRole.services(runtime, client: try client("ledger"))
    let hub = try #require(settings.hubs.first)
    let callers = try await hub.callers(
      boundTo: settings.api.reachableHost, keys: registry, hashing: settings.authentication.makeThreads(),
      runtime: runtime)
    let (api, frontEnd) = try APIRole.services(
      runtime, client: try client("api"), registry: registry, history: history,
      configuration: settings.api.frontEnd, hubs: [callers])
    let senders = try hub.senders(runtime)
    let worker = try WorkerRole.services(
      runtime, client: try client("worker"), registry: registry, senders: [.default: senders.map(\.sender)])
    let group = ServiceGroup(services: ledger.services + api.services + worker.services, logger: runtime.logger)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await group.run() }
      let http = HTTPClient(eventLoopGroupProvider: .singleton)
      defer { http.shutdown { _ in } }
      let platform = AddedPlatform(
        http: http, address: "http://127.0.0.1:\(try await frontEnd.boundPort())", simulator: simulator,
        runtime: runtime, directory: directory)
      try platform.replacedSecretIsRead(by: senders, of: hub)
      try await platform.sendsArrive()
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }

  private func replacedSecretIsRead(by senders: [RenewableSender], of hub: HubSettings) throws {
    let watches = hub.credentialWatches(of: senders, logger: runtime.logger)
    let watch = try #require(watches.first { $0.metadata["platform"] == "pager" })
    let file = try #require(watch.files.first)
    let secret = try Data(contentsOf: URL(filePath: file))
    #expect(try !watch.use())
    try Data("another".utf8).write(to: URL(filePath: file))
    #expect(try watch.use())
    try secret.write(to: URL(filePath: file))
    #expect(try watch.use())
  }

  private func sendsArrive() async throws {
    // By the name of its system, and by an alias; with a template of its own, and without.
    try await answer(.PUT, "/api/installations/a1", #"{"platform":"pageros","number":"01 23"}"#)
    try await answer(
      .PUT, "/api/installations/a2",
      #"{"platform":"beeper","handle":"0456","templates":{"call":{"body":"{\"call\":\"$(who)\"}"}}}"#)
    try await answer(.PUT, "/api/installations/a3", #"{"platform":"pager","handle":"0410"}"#)
    try await answer(.PUT, "/api/installations/a4", #"{"platform":"pager","handle":"x"}"#, status: 400)

    let portable = try await settle(#"{"to":{"user":"alice"},"message":{"title":"Hi","body":"there"}}"#)
    #expect(portable == ["delivered": 2, "deviceGone": 1], "\(portable)")
    #expect(texts(of: "0123") == ["Hi: there"], "\(texts(of: "0123"))")
    let templated = try await settle(#"{"to":{"user":"alice"},"template":{"name":"call","properties":{"who":"Bob"}}}"#)
    #expect(templated == ["delivered": 1], "\(templated)")
    #expect(texts(of: "0456") == ["Hi: there", #"{"call":"Bob"}"#], "\(texts(of: "0456"))")
    try await answer(.POST, "/api/notifications?pns=beeper&to_tag=alice", #""Lunch?""#)
    try await eventually { texts(of: "0123").last == "From alice: Lunch?" }

    // Native payloads need a scope that not everyone has, and are checked when they are accepted.
    let native = #"{"to":{"user":"alice"},"native":{"pager":"x"}}"#
    try await answer(.POST, "/api/sends", native, status: 403)
    let long = String(repeating: "x", count: 81)
    let refusal = try await answer(
      .POST, "/api/sends", #"{"to":{"user":"alice"},"platforms":["pager"],"message":{"body":"\#(long)"}}"#, status: 400)
    #expect(refusal.contains("the limit of Pager"))
  }

  private func texts(of handle: String) -> [String] {
    simulator.store.notifications(Pager.platform, handle).map(\.text)
  }

  /// Sends, and returns the outcomes on the platform when all of it is settled.
  private func settle(_ send: String) async throws -> [String: Int] {
    struct Accepted: Decodable { let id: String }
    struct Report: Decodable {
      let state: String
      let counts: [String: [String: Int]]
    }
    let accepted = try await answer(.POST, "/api/sends", send, status: 202)
    let id = try JSONDecoder().decode(Accepted.self, from: Data(accepted.utf8)).id
    var counts: [String: Int] = [:]
    try await eventually {
      let (status, text) = try await request(.GET, "/api/sends/\(id)")
      // The ledger has not read the record yet.
      if status == 404 { return false }
      let report = try JSONDecoder().decode(Report.self, from: Data(text.utf8))
      counts = report.counts["pager"] ?? [:]
      return report.state == "settled"
    }
    return counts
  }

  /// Asks again until the condition holds; the test's time limit ends it.
  private func eventually(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(10)) }
  }

  @discardableResult private func answer(
    _ method: HTTPMethod, _ path: String, _ body: String, status: UInt = 200
  ) async throws -> String {
    let (code, text) = try await request(method, path, body)
    #expect(code == status || status == 200 && code == 201, "\(path): \(text)")
    return text
  }

  private func request(_ method: HTTPMethod, _ path: String, _ body: String? = nil) async throws -> (UInt, String) {
    var request = HTTPClientRequest(url: address + path)
    request.method = method
    request.headers.add(name: "authorization", value: "Basic \(Data("alice:alice".utf8).base64EncodedString())")
    if let body {
      request.headers.add(name: "content-type", value: "application/json")
      request.body = .bytes(ByteBuffer(string: body))
    }
    let response = try await http.execute(request, timeout: .seconds(30))
    return (response.status.code, String(buffer: try await response.body.collect(upTo: 1 << 20)))
  }
}
