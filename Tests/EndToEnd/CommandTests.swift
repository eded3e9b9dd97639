import EmbeddedKafka
import Foundation
import RDKafka
import Support
import Testing

@testable import fanfare_dev

/// The commands of both programs: help, errors, exit statuses and the demo.
@Suite(.serialized) struct CommandTests {
  /// Runs the program until it ends, in a directory that contains only the files `notes` and `secret`.
  private func run(
    _ arguments: [String], environment: [String: String] = [:], within limit: Duration = .seconds(120)
  ) async throws -> (status: Int32, lines: [String], errors: String) {
    try await withDirectory("command") { directory in
      let notes = directory.appending(path: "notes")
      try Data(repeating: UInt8(ascii: "x"), count: 8192).write(to: notes)
      // Some tests name it as the file of a secret.
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: notes.path)
      let secret = directory.appending(path: "secret")
      try Data("secret".utf8).write(to: secret)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
      let process = try ChildProcess(
        arguments, name: arguments.first ?? "fanfare", environment: environment,
        program: Self.program(of: arguments), directory: directory)
      defer { process.destroy() }
      let status = try await process.exitStatus(within: limit)
      var lines: [String] = []
      // The output ends with the process: read until its end.
      while let line = try? await process.line() { lines.append(line) }
      return (status, lines, process.log)
    }
  }

  /// The program that has the command.
  private static func program(of arguments: [String]) -> URL {
    let isOfWorkshop = ["bench", "broker", "demo", "faults", "simulate", "simulator"].contains(arguments.first)
    return isOfWorkshop ? ChildProcess.workshop : ChildProcess.product
  }

  @Test func healthFailsWithoutARoleAndSaysWhy() async throws {
    let (status, lines, errors) = try await run(["health"], environment: ["FANFARE_OPERATIONS_PORT": "1"])
    #expect(status == 1 && lines.isEmpty)
    #expect(errors.contains("no role answered at 127.0.0.1:1 (operations.port) within 5 s"), "\(errors)")
    let unusable = try await run(["health"])
    #expect(unusable.status == 78)
    #expect(unusable.errors.contains("operations.port"), "\(unusable.errors)")
  }

  @Test(arguments: [
    ["api"], ["worker"], ["ledger"], ["simulator"], ["broker"], ["demo"], ["topics", "create"], ["audit"],
    ["dead-letters", "list"], ["dead-letters", "show"], ["dead-letters", "redrive"], ["replay"],
    ["registrations", "import"],
    ["registrations", "export"], ["registrations", "tombstones"], ["registrations", "restore"], ["quotas", "show"],
  ])
  func helpShowsOverviewAndUsage(command: [String]) async throws {
    let (status, lines, _) = try await run(command + ["--help"])
    #expect(status == 0)
    #expect(lines.contains { $0.hasPrefix("OVERVIEW: ") })
    let program = Self.program(of: command).lastPathComponent
    #expect(lines.contains { $0.contains("USAGE: \(program) \(command.joined(separator: " "))") })
  }

  @Test(arguments: [
    (["dead-letters", "list", "--reason", "boredom"], "--reason"),
    (["dead-letters", "list", "--platform", "pager"], "--platform"),
    (["dead-letters", "list", "--from", "yesterday"], "--from"), (["dead-letters", "list", "--limit", "0"], "--limit"),
    (["dead-letters", "list", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "--to"),
    (["dead-letters", "redrive", "--letter", "here"], "--letter"),
    (["dead-letters", "show", "3"], "<partition/offset>"),
    (["replay", "--to", "2026-01-01T00:00:00Z"], "--from"),
    (["replay", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "--to"),
    (
      ["replay", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--hub", "nowhere"], "no hub nowhere"
    ),
    (["faults", "--devices", "999"], "--devices"), (["faults", "--row", "earthquake"], "--row"),
    (["faults", "--quick", "--row", "GOAWAY"], "--quick"), (["demo", "--broadcast", "2000"], "--broadcast"),
    (["demo", "--azure", "0"], "--azure"), (["azure", "import"], "--from"),
  ])
  func badOptionIsNamed(command: [String], option: String) async throws {
    let (status, _, errors) = try await run(command, environment: Self.kafka)
    #expect(status == 64)
    #expect(errors.hasPrefix("Error: ") && errors.contains(option), "\(errors)")
  }

  /// The kernel chooses the port; the role logs it.
  @Test(arguments: ["broker", "simulator"]) func roleLogsItsOperationsAddress(role: String) async throws {
    try await withDirectory("command") { directory in
      let environment = ["FANFARE_LOG_LEVEL": "notice"]
      let process = try ChildProcess([role], name: role, environment: environment, directory: directory)
      defer { process.destroy() }
      let caller = Caller(base: "http://" + (try await process.address(of: "operations")))
      #expect(try await caller.get("/healthz").status == 200)
      #expect(try await process.terminate() == 0)
    }
  }

  /// A user name is unique only within a hub.
  @Test func replayOfUserNeedsHub() async throws {
    let command = ["replay", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--user", "bob"]
    let hubs = Self.kafka.merging(["FANFARE_HUBS": "east,west"]) { $1 }
    let (status, _, errors) = try await run(command, environment: hubs)
    #expect(status == 64)
    #expect(errors.contains("--user needs --hub, one of east, west"), "\(errors)")
  }

  /// Without the warning, a misspelled variable would silently set no limit.
  @Test func unknownVariableIsNamed() async throws {
    let (_, _, errors) = try await run(["audit"], environment: ["FANFARE_WORKER_MAXIMUM_RECORD": "1"])
    #expect(errors.hasPrefix("fanfare: unknown environment variables: FANFARE_WORKER_MAXIMUM_RECORD ("), "\(errors)")
  }

  @Test func connectionStringIsPrintedForTheRule() async throws {
    let keys = (1...3).map { "marked-secret-number-\($0)" }
    try await withDirectory("rules") { directory in
      let rules = directory.appending(path: "rules")
      try Data("Listen Listen \(keys[0])\nFull Listen,Send,Manage \(keys[1]) \(keys[2])\n".utf8).write(to: rules)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: rules.path)
      let environment = Self.demo.merging([
        "FANFARE_AZURE_ENABLED": "true", "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": rules.path, "FANFARE_API_PORT": "8080",
      ]) { $1 }
      func run(_ options: String..., with more: [String: String] = [:]) async throws -> (Int32, [String], String) {
        try await self.run(["azure", "connection-string"] + options, environment: environment.merging(more) { $1 })
      }
      let secondary = try await run("--rule", "Full", "--host", "push.example.com", "--secondary")
      #expect(secondary.0 == 0 && secondary.2 == "", "\(secondary.2)")
      #expect(
        secondary.1 == ["Endpoint=sb://push.example.com/;SharedAccessKeyName=Full;SharedAccessKey=\(keys[2])"])
      let own = try await run("--rule", "Listen", "--plain", with: ["FANFARE_AZURE_PREFIX": "anh/v1"])
      #expect(own.1 == ["Endpoint=http://127.0.0.1:8080/anh/v1/;SharedAccessKeyName=Listen;SharedAccessKey=\(keys[0])"])
      let named = try await run("--rule", "Full", with: ["FANFARE_AZURE_HOSTS": "ns.example.com"])
      #expect(named.1 == ["Endpoint=sb://ns.example.com/;SharedAccessKeyName=Full;SharedAccessKey=\(keys[1])"])
      let closed = try await run("--rule", "Full", "--host", "h", with: ["FANFARE_AZURE_ENABLED": "false"])
      #expect(closed.0 == 0 && closed.2.contains("azure.enabled is false"), "\(closed)")

      for (refused, words) in [
        (try await run(), "--rule must be one of Listen, Full"),
        (try await run("--rule", "None"), "--rule must be one of Listen, Full"),
        (try await run("--rule", "Listen", "--secondary"), "the rule Listen has one key only"),
        (try await run("--hub", "shop", "--rule", "Full"), "there is no hub shop"),
      ] {
        #expect(refused.0 == 64 && refused.1.isEmpty && refused.2.contains(words), "\(refused)")
        #expect(!refused.2.contains("marked-secret"))
      }
    }
  }

  /// No broker; a role would wait two seconds for its answer about the topics.
  private static let kafka = [
    "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FANFARE_KAFKA_DURABILITY_CHECK": "off",
  ]
  private static let demo = kafka.merging(["FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo"]) { $1 }
  /// The credentials of one platform, without which a worker does not start.
  private static let platform = kafka.merging([
    "FANFARE_HUB_DEFAULT_WNS_SECRET_FILE": "secret", "FANFARE_HUB_DEFAULT_WNS_PACKAGE_SID": "ms-app://s-1-15-2-1",
  ]) { $1 }
  private static let badConfigurations: [(command: [String], environment: [String: String], message: String)] = [
    (["worker"], [:], "kafka.bootstrapServers is missing"),
    (["worker"], kafka, "hub.NAME has no credentials of a platform"),
    (["audit"], [:], "kafka.bootstrapServers is missing"),
    (["api"], ["FANFARE_API_PORT": "many"], "api.port must be a whole number from 0 to 65535"),
    (["api"], kafka, "hub.default.authentication.file is missing"),
    (
      ["api"],
      demo.merging(["FANFARE_API_HOST": "0.0.0.0", "FANFARE_API_PROXIES": "10.0.0.0/8"]) { $1 },
      "hub.default.authentication.method cannot be used"
    ),
    (["ledger", "--config", "/nonexistent/fanfare.yaml"], [:], "--config names a file that cannot be read"),
    (
      ["api"],
      demo.merging([
        "FANFARE_API_HOST": "203.0.113.1", "FANFARE_HUB_DEFAULT_AUTHENTICATION_ALLOW_REMOTE": "true",
        "FANFARE_API_PROXIES": "10.0.0.0/8",
      ]) {
        $1
      },
      "api.host must be an address"
    ),
    (
      ["api"],
      demo.merging(["FANFARE_API_HOST": "0.0.0.0", "FANFARE_HUB_DEFAULT_AUTHENTICATION_ALLOW_REMOTE": "true"]) { $1 },
      "api.host must be a loopback address without TLS"
    ),
    (["api"], demo.merging(["FANFARE_API_PROXIES": "10.0.0.0/40"]) { $1 }, "api.proxies must be a list"),
    (
      ["api"], demo.merging(["FANFARE_API_TLS_CERTIFICATE_FILE": "nowhere"]) { $1 },
      "api.tls.keyFile is missing"
    ),
    (
      ["api"],
      demo.merging(["FANFARE_API_TLS_CERTIFICATE_FILE": "nowhere", "FANFARE_API_TLS_KEY_FILE": "nowhere"]) { $1 },
      "api.tls.certificateFile names a file that cannot be read"
    ),
    (
      ["worker"], platform.merging(["FANFARE_OPERATIONS_HOST": "nowhere.invalid"]) { $1 },
      "operations.host must be an address"
    ),
    (
      ["worker"],
      kafka.merging([
        "FANFARE_HUB_DEFAULT_APNS_KEY_FILE": "notes", "FANFARE_HUB_DEFAULT_APNS_KEY_ID": "ABCDEFGHIJ",
        "FANFARE_HUB_DEFAULT_APNS_TEAM_ID": "ABCDEFGHIJ", "FANFARE_HUB_DEFAULT_APNS_TOPIC": "app",
      ]) { $1 },
      "hub.default.apns.keyFile must be a P-256 key"
    ),
    (
      ["worker"],
      kafka.merging([
        "FANFARE_HUB_DEFAULT_APNS_KEY_FILE": "notes", "FANFARE_HUB_DEFAULT_APNS_KEY_ID_FILE": "notes",
        "FANFARE_HUB_DEFAULT_APNS_TEAM_ID": "ABCDEFGHIJ", "FANFARE_HUB_DEFAULT_APNS_TOPIC": "app",
      ]) { $1 },
      "hub.default.apns.keyIDFile must be 10 letters and digits"
    ),
    (
      ["broker"], ["FANFARE_BROKER_ANNOUNCE_FILE": "missing/broker"],
      "broker.announceFile names a file that cannot be written"
    ),
    (
      ["simulator"], ["FANFARE_SIMULATOR_DIRECTORY": "notes"],
      "simulator.directory must be a directory that can be created and written"
    ),
  ]

  private static let badProperties = [
    ("client.id=mine", "the property 'client.id' cannot be set"),
    ("no.such=1", "librdkafka does not know the property 'no.such'"),
    ("security.protocol=none", "librdkafka does not accept the value of the property 'security.protocol'"),
  ].flatMap { property, reason in
    [["api"], ["worker"], ["ledger"], ["topics", "create"]].map { command in
      (
        command: command,
        environment: demo.merging(["FANFARE_KAFKA_PROPERTIES": property]) { $1 },
        message: "kafka.properties must be properties that librdkafka and Fanfare accept: \(reason)"
      )
    }
  }

  private static let badFiles = ["missing/file", ".", "notes", "/proc/fanfare.sqlite"].flatMap { path in
    [("api", "registry"), ("worker", "registry"), ("ledger", "ledger")].map { role, file in
      (
        command: [role], environment: kafka.merging(["FANFARE_\(file.uppercased())_PATH": path]) { $1 },
        message:
          "\(file).path must be a \(file), or a new file in a writable directory: cannot open the \(file) \(path): "
      )
    }
  }

  @Test(arguments: badConfigurations + badProperties + badFiles)
  func badConfigurationEndsRoleWithItsKey(command: [String], environment: [String: String], message: String)
    async throws
  {
    let (status, _, errors) = try await run(command, environment: environment)
    #expect(status == 78)
    // The last one: the role's log names the reason too.
    let line = errors.split(separator: "\n").last { $0.contains(message) }
    #expect(line?.hasPrefix("\(Self.program(of: command).lastPathComponent): ") == true, "\(errors)")
  }

  @Test(arguments: [("api", "api.port"), ("worker", "operations.port"), ("demo", "--port")])
  func takenPortEndsRoleWithItsKey(role: String, key: String) async throws {
    // Any listening process would do.
    let cluster = try EmbeddedCluster(topics: [], logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let port = try #require(cluster.bootstrapServers.split(separator: ":").last)
    // The demo reads no configuration.
    let isOption = key.hasPrefix("--")
    let variable = "FANFARE_\(key.uppercased().replacing(".", with: "_"))"
    let (status, _, errors) = try await run(
      isOption ? [role, key, String(port)] : [role],
      environment: isOption
        ? [:] : (role == "worker" ? Self.platform : Self.demo).merging([variable: String(port)]) { $1 })
    #expect(status == 78)
    let program = Self.program(of: [role]).lastPathComponent
    #expect(errors.contains("\(program): \(key) is taken by another process"), "\(errors)")
  }

  @Test(.timeLimit(.minutes(3))) func demoLosesNothing() async throws {
    let (status, lines, errors) = try await run(["demo", "--once", "--sends", "2000"])
    #expect(status == 0, "\(errors)")
    let last = try #require(lines.last)
    let report = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
    #expect(report["accepted"] as? Int == 2000)
    #expect(report["settled"] as? Int == 2000)
    #expect(report["lost"] as? Int == 0)
    #expect(report["duplicates"] as? Int == 0)
    #expect((report["noTarget"] as? Int ?? 0) >= 40)
    #expect((report["delivered"] as? Int ?? 0) > 2000)
    #expect((report["rejected"] as? Int ?? 0) > 0)
    #expect(
      lines.contains { $0.contains("arrived     on alice's iPhone") && $0.contains("From bob: Hello from Kafka") })
  }

  @Test(.timeLimit(.minutes(3))) func demoOfAzureEndsExact() async throws {
    let (status, lines, errors) = try await run(["demo", "--azure", "100", "--sends", "40", "--once"])
    #expect(status == 0, "\(errors)")
    let last = try #require(lines.last)
    let report = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
    #expect(report["registrations"] as? Int == 100 && report["sends"] as? Int == 40, "\(last)")
    #expect(report["arrived"] as? Int == report["pushes"] as? Int && report["repeated"] as? Int == 0, "\(last)")
    #expect(report["wrongInLedger"] as? Int == 0, "\(last)")
    let audit = try #require(report["audit"] as? [String: Int])
    #expect(audit == ["accepted": 40, "settled": 40, "inFlight": 0, "lost": 0], "\(last)")
  }

  /// Even the smallest broadcast runs long enough for a pause and two killed workers.
  @Test(.timeLimit(.minutes(5))) func smallestBroadcastSurvivesKilledWorkers() async throws {
    let (status, lines, errors) = try await run(["demo", "--broadcast", "2001", "--once"], within: .seconds(280))
    #expect(status == 0, "\(errors)")
    #expect(lines.contains("Paused.") && lines.contains("Resumed."))
    #expect(lines.filter { $0.hasPrefix("Killed the worker") }.count == 2)
    let last = try #require(lines.last)
    let report = try #require(try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any])
    #expect(report["delivered"] as? Int == 2001)
    #expect(report["arrived"] as? Int == 2001)
    #expect(report["pages"] as? Int ?? 0 >= 20)
  }

  /// Interrupting the demo is not an error that needs a message.
  @Test(.timeLimit(.minutes(3))) func interruptedDemoReportsNoError() async throws {
    try await withDirectory("demo") { directory in
      let demo = try ChildProcess(
        ["demo", "--broadcast", "2001"], name: "demo", environment: ["TMPDIR": directory.path], directory: directory)
      defer { demo.destroy() }
      while try await !demo.line().hasPrefix("Registering") {}
      demo.signal(SIGINT)
      // The demo was not completed.
      #expect(try await demo.exitStatus() == 1)
      #expect(demo.log == "")
      let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      #expect(!left.contains { $0.hasPrefix("fanfare-demo-") }, "\(left)")
    }
  }

  @Test(
    .timeLimit(.minutes(3)),
    .enabled(if: ChildProcess.find("script") != nil, "script is not installed (Debian: bsdutils)"))
  func resultHasItsOwnLineOnATerminal() async throws {
    try await withDirectory("demo") { directory in
      let demo = try ChildProcess(
        ["-qec", "'\(ChildProcess.workshop.path)' demo --broadcast 2001", "/dev/null"], name: "terminal",
        environment: ["TMPDIR": directory.path], program: try #require(ChildProcess.find("script")),
        directory: directory)
      defer { demo.destroy() }
      var cancel: Substring?
      while cancel == nil {
        cancel = try await demo.line().split { $0 == " " || $0 == "\r" }.last { $0.hasSuffix("/cancel") }
      }
      let caller = Caller(base: String(try #require(cancel)))
      try await eventually("the ledger to know the broadcast") {
        (200..<300).contains(try await caller.call("POST", "", user: "alice", body: "").status)
      }
      while try await !demo.line().hasPrefix(#"{"devices":2001,"state":"cancelled","#) {}
      _ = try await demo.exitStatus()
    }
  }
}
