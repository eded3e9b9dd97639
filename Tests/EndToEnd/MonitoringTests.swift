import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@testable import fanfare_dev

/// A real Prometheus, with the configuration and the rules of `deploy/monitoring`, watches a deployment under load.
///
/// Every query of every dashboard has to return data there. An alert's expression returns data only while the alert
/// is pending, so the test asks for each of its metric selectors instead: the parts that begin with the name of a
/// metric, with their labels. A query that returns nothing has a wrong name, a wrong label, or no metric.
@Suite(.serialized) struct MonitoringTests {
  private static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "deploy/monitoring")
  private static let program = URL(filePath: "/usr/bin/prometheus")
  private static let devices = 1_200
  private static let settings = [
    "FANFARE_KAFKA_INGRESS_TOPICS": "true", "FANFARE_WORKER_PAGE_DEVICES": "100",
    "FANFARE_REGISTRY_MAXIMUM_DEVICES_PER_USER": "1",
  ]

  @Test(
    .enabled(if: FileManager.default.isExecutableFile(atPath: program.path), "Debian has it in `prometheus`"),
    .timeLimit(.minutes(3)))
  func everyQueryOfDashboardsAndRulesFindsData() async throws {
    try await Deployment.with(Self.settings) { deployment in
      try await Population.iPhones(Self.devices, tags: [("news", 0..<Self.devices)]).register(
        in: deployment.directory.appending(path: "registry.sqlite").path)
      let worker = try deployment.startWorker()
      let (api, operations) = try await deployment.startObservedFrontEnd()
      let targets = [
        "api": [operations.base, try await Self.startFrontEndWithTLS(in: deployment)],
        "worker": [try await deployment.ready(worker).base], "ledger": [deployment.ledger.base],
        "hooks": [try await Self.startHooks(in: deployment)],
      ]
      let server = try Self.start(watching: targets, in: deployment.directory)
      defer { server.destroy() }
      let prometheus = try await Self.caller(of: server)

      // Before anything has happened: an increase is not seen in a series that begins with its first event.
      let rules = try await Self.rules(prometheus)
      let counters = Set(rules.flatMap { Self.selectors(in: $0) }.filter { $0.contains("_total") })
      #expect(counters.count >= 5)
      try await Self.expectData(counters.sorted(), prometheus)

      try await Self.load(deployment, api)
      let queries = try Self.dashboardQueries() + rules.flatMap { Self.selectors(in: $0) }
      #expect(queries.count > 100)
      try await Self.expectData(Set(queries).sorted(), prometheus)
      // The first dead letter is an increase, so its alert fires.
      try await eventually("the alert of dead letters") {
        let alerts = try await Self.query(#"ALERTS{alertname="FanfareDeadLetters", alertstate="firing"}"#, prometheus)
        return alerts == 1
      }
      _ = try await server.terminate()
    }
  }

  /// Sends of every kind, a broadcast, a device that is gone, a failing push service and a record that nobody can read.
  private static func load(_ deployment: Deployment, _ api: Caller) async throws {
    try await register(String(repeating: "dead", count: 16), of: "alice", api)
    // Her first send is rejected. The second finds the device gone, or dead before it was registered.
    try await inject(#""status":413,"reason":"PayloadTooLarge","count":1"#, deployment)
    for _ in 0..<2 { try await send(#""to":{"user":"alice"}"#, api) }
    // The second device of a user who may have one.
    for number in 0..<2 { try await register(Population.handle(number, prefix: "6e"), of: "bob", api) }
    try await inject(#""status":500,"reason":"InternalServerError","count":5"#, deployment)
    for user in 0..<10 { try await send(#""to":{"user":"\#(Population.user(user))"}"#, api) }
    try await send(#""to":{"tag":"news"}"#, api)
    let due = Date(timeIntervalSinceNow: 2).formatted(.iso8601)
    try await send(#""to":{"user":"bob"},"sendAt":"\#(due)""#, api)
    #expect(try await api.call("POST", "/api/sends", user: "alice", body: #"{"to":{}}"#).status == 400)
    let sends = deployment.topics.sends
    try await deployment.produce([ProducerRecord(topic: sends, key: nil, value: Array("unreadable".utf8))])
    try await deployment.arrived(devices)
  }

  /// Has the simulated APNs answer so.
  private static func inject(_ answer: String, _ deployment: Deployment) async throws {
    let fault = #"{"service":"apns","action":"answer",\#(answer)}"#
    #expect(try await deployment.simulator.call("POST", "/faults", body: fault).status < 300)
  }

  private static func register(_ handle: String, of user: String, _ api: Caller) async throws {
    let body = #"{"platform":"ios","instId":"\#(UUID())","deviceToken":"\#(handle)"}"#
    #expect(try await api.call("POST", "/api/register", user: user, body: body).status == 200)
  }

  private static func send(_ members: String, _ api: Caller) async throws {
    let body = #"{\#(members),"message":{"body":"Goal"}}"#
    #expect(try await api.call("POST", "/api/sends", user: "alice", body: body).status == 202)
  }

  /// Writes a file that only its owner may read, and returns its path.
  private static func file(_ name: String, _ text: String, in deployment: Deployment) throws -> String {
    let file = deployment.directory.appending(path: name)
    try Data(text.utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    return file.path
  }

  /// Starts a front end with a certificate, whose expiry is a metric. Returns its operations address.
  private static func startFrontEndWithTLS(in deployment: Deployment) async throws -> String {
    let certificates = try TestCertificates()
    let process = try deployment.startFrontEndProcess([
      "FANFARE_API_TLS_CERTIFICATE_FILE": try file("server.pem", certificates.serverPEM, in: deployment),
      "FANFARE_API_TLS_KEY_FILE": try file("server-key.pem", certificates.serverKeyPEM, in: deployment),
    ])
    return "http://" + (try await process.address(of: "operations"))
  }

  /// Starts a hook at whose address nothing listens. Returns its operations address.
  private static func startHooks(in deployment: Deployment) async throws -> String {
    let secret = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
    let process = try deployment.startHooks([
      "FANFARE_HUB_DEFAULT_HOOKS": "audit", "FANFARE_HOOK_AUDIT_URL": "https://127.0.0.1:1/",
      "FANFARE_HOOK_AUDIT_ALLOW_PRIVATE": "true",
      "FANFARE_HOOK_AUDIT_SECRET_FILE": try file("hook-audit", secret, in: deployment),
    ])
    return "http://" + (try await process.address(of: "operations"))
  }

  /// Starts Prometheus with the shipped configuration, but the deployment's addresses and an interval of a second.
  private static func start(watching targets: [String: [String]], in directory: URL) throws -> ChildProcess {
    var text = try String(contentsOf: Self.directory.appending(path: "prometheus.yaml"), encoding: .utf8)
      .replacing("15s", with: "1s").replacing("rules/*.yaml", with: Self.directory.path + "/rules/*.yaml")
      .replacing("      # - targets", with: "      - targets").replacing("      #   labels", with: "        labels")
    for (role, ports) in [("api", [9101]), ("worker", [9111, 9112]), ("ledger", [9103]), ("hooks", [9104])] {
      let shipped = ports.map { "\"127.0.0.1:\($0)\"" }.joined(separator: ", ")
      let own = try #require(targets[role]).map { "\"\($0.dropFirst("http://".count))\"" }.joined(separator: ", ")
      #expect(text.contains("[\(shipped)]\n        labels: {role: \(role)}"))
      text = text.replacing(shipped, with: own)
    }
    let file = directory.appending(path: "prometheus.yaml")
    try Data(text.utf8).write(to: file)
    return try ChildProcess(
      [
        "--config.file=\(file.path)", "--storage.tsdb.path=\(directory.path)/prometheus",
        "--web.listen-address=127.0.0.1:0",
      ], name: "prometheus", program: program, directory: directory)
  }

  /// Suspends until Prometheus listens, and returns a caller for it.
  private static func caller(of server: ChildProcess) async throws -> Caller {
    try await eventually("Prometheus to listen") { address(in: server.log) != nil }
    return Caller(base: "http://" + (try #require(address(in: server.log))))
  }

  private static func address(in log: String) -> String? {
    log.firstMatch(of: /msg="Listening on" address=(127\.0\.0\.1:\d+)/).map { String($0.output.1) }
  }

  /// The expressions of all rules as Prometheus has loaded them, once it has evaluated each without an error.
  private static func rules(_ prometheus: Caller) async throws -> [String] {
    try await eventually("all rules to be evaluated") {
      let rules = try await loadedRules(prometheus)
      return rules.count > 20 && rules.allSatisfy { $0.health == "ok" }
    }
    return try await loadedRules(prometheus).map(\.query)
  }

  private struct Rule: Decodable {
    let query: String
    let health: String
  }

  private static func loadedRules(_ prometheus: Caller) async throws -> [Rule] {
    struct Answer: Decodable {
      struct Groups: Decodable { let groups: [Group] }

      struct Group: Decodable { let rules: [Rule] }

      let data: Groups
    }
    let answer = try await ask("/api/v1/rules", prometheus)
    // Not ready yet.
    guard answer.status == 200 else { return [] }
    return try JSONDecoder().decode(Answer.self, from: answer.body).data.groups.flatMap(\.rules)
  }

  /// The metric selectors of an expression.
  private static func selectors(in expression: String) -> [String] {
    expression.matches(of: /(?:\b[a-z_:]*(?:fanfare|process)_[a-z0-9_:]+|\bup\b)(?:\{[^}]*\})?/).map {
      String($0.output)
    }
  }

  /// The queries of all dashboards, with Grafana's variables replaced.
  private static func dashboardQueries() throws -> [String] {
    struct Dashboard: Decodable {
      struct Panel: Decodable {
        struct Target: Decodable { let expr: String }

        let targets: [Target]?
      }

      let panels: [Panel]
    }
    let files = try FileManager.default.contentsOfDirectory(
      at: directory.appending(path: "dashboards"), includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "json" }
    #expect(files.count == 6)
    return try files.flatMap { file in
      try JSONDecoder().decode(Dashboard.self, from: try Data(contentsOf: file)).panels.flatMap { $0.targets ?? [] }
        .map { $0.expr.replacing("$__rate_interval", with: "20s").replacing("$hub", with: ".*") }
    }
  }

  /// Expects that each query returns data, at the latest after half a minute.
  private static func expectData(_ queries: [String], _ prometheus: Caller) async throws {
    var missing = queries
    let end = ContinuousClock.now + .seconds(30)
    while !missing.isEmpty, ContinuousClock.now < end {
      var left: [String] = []
      for query in missing where try await Self.query(query, prometheus) == 0 { left.append(query) }
      missing = left
      // The next scrape is a second away.
      if !missing.isEmpty { try await Task.sleep(for: .milliseconds(500)) }
    }
    for query in missing { Issue.record("no data: \(query)") }
  }

  /// Prometheus compresses its answers so well that the client takes them for an attack.
  private static func ask(_ path: String, _ prometheus: Caller) async throws -> Caller.Answer {
    try await prometheus.call("GET", path, headers: [("accept-encoding", "identity")])
  }

  /// The number of series in the answer to a query. Throws if the query is wrong.
  private static func query(_ query: String, _ prometheus: Caller) async throws -> Int {
    var components = URLComponents()
    components.queryItems = [URLQueryItem(name: "query", value: query)]
    let parameters = (components.percentEncodedQuery ?? "").replacing("+", with: "%2B")
    let answer = try await ask("/api/v1/query?\(parameters)", prometheus)
    try #require(answer.status == 200, "\(query): \(answer.text)")
    return try (answer.json["data"] as? [String: Any]).flatMap { $0["result"] as? [Any] }?.count ?? 0
  }
}
