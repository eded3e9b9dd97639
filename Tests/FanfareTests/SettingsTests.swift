import FanfareCore
import Foundation
import FrontEnd
import PushServices
import RDKafka
import SettingsTable
import Store
import Support
import Testing
import Worker
import Yams

@testable import Roles

@Suite struct SettingsTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let example = root.appending(path: "deploy/fanfare.yaml")

  @Test func everyKeyThatIsReadIsDeclared() throws {
    // The keys of a hook are read only if a hub names it.
    let reader = SettingsReader([
      SettingsSource(environment: [
        "FANFARE_HUB_DEFAULT_HOOKS": "audit", "FANFARE_HOOK_AUDIT_URL": "https://hooks.example.com/fanfare",
        "FANFARE_HOOK_AUDIT_SECRET_FILE": "/etc/fanfare/hook-audit",
      ])
    ])
    _ = try Settings(from: reader)
    #expect(Settings.keys(hub: "default", hook: "audit").symmetricDifference(reader.keys) == [])
  }

  /// Behind a proxy callers come from anywhere, although the front end listens on loopback.
  @Test(arguments: [false, true]) func demoUsersAreRefusedBehindProxies(isBehindProxy: Bool) async throws {
    var environment = ["FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo"]
    if isBehindProxy { environment["FANFARE_API_PROXIES"] = "127.0.0.1" }
    let settings = try Settings.load(file: nil, environment: environment)
    #expect(settings.api.frontEnd.host == "127.0.0.1")
    let hashing = settings.authentication.makeThreads()
    func authenticators() throws -> Int {
      try settings.hubs[0].authenticators(
        boundTo: settings.api.reachableHost, authentication: settings.authentication, hashing: hashing,
        logger: TestKafka.quietLogger
      ).count
    }
    guard isBehindProxy else { return #expect(try authenticators() == 1) }
    let error = #expect(throws: SettingsError.self) { try authenticators() }
    #expect(error?.description.hasPrefix("hub.default.authentication.method cannot be used") == true)
  }

  /// On a cluster that compacts topics by default, only one send of each user would remain.
  @Test func topicsDeleteByAge() async throws {
    let kafka = try Settings.load(file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092"])
      .kafka
    let specifications = kafka.specifications(replicationFactor: 3)
    #expect(Set(specifications.map(\.name)) == Set(kafka.topics.created))
    #expect(
      specifications.filter { $0.name != kafka.topics.pulse }.allSatisfy {
        $0.configuration["cleanup.policy"] == "delete" && $0.configuration["retention.ms"] != nil
      })
  }

  @Test func statusAndRetryTopicsHaveFewerPartitions() async throws {
    func counts(_ partitions: String) async throws -> [String: Int32] {
      let kafka = try Settings.load(
        file: nil,
        environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092", "FANFARE_KAFKA_PARTITIONS": partitions]
      ).kafka
      return Dictionary(
        uniqueKeysWithValues: kafka.specifications(replicationFactor: 1).map { ($0.name, $0.partitions) })
    }
    let many = try await counts("64")
    #expect(many["fanfare.sends"] == 64 && many["fanfare.segments"] == 64 && many["fanfare.dead-letter"] == 64)
    #expect(many["fanfare.status"] == 16 && many["fanfare.retry.15s"] == 8)
    #expect(try await counts("1").allSatisfy { $0.value == 1 })
    // asyncapi.yaml has the same counts.
    let text = try String(
      contentsOf: Self.example.deletingLastPathComponent().appending(path: "asyncapi.yaml"), encoding: .utf8)
    let document = try #require(try Yams.load(yaml: text) as? [String: Any])
    let channels = try #require(document["channels"] as? [String: [String: Any]])
    for channel in channels.values {
      let name = try #require(channel["address"] as? String).replacing("{delay}", with: "15s")
      let kafka = (channel["bindings"] as? [String: Any])?["kafka"] as? [String: Any]
      let documented = try #require(kafka?["partitions"] as? Int)
      #expect(documented == many[name].map(Int.init), "\(name)")
    }
  }

  @Test func environmentOverridesFile() async throws {
    let settings = try Settings.load(
      file: Self.example.path,
      environment: [
        "FANFARE_KAFKA_TOPIC_PREFIX": "other", "FANFARE_HUBS": "default,app-2", "FANFARE_WORKER_MAXIMUM_RECORDS": "7",
        "FANFARE_HUB_DEFAULT_AUTHENTICATION_OPERATORS": "ann,bob",
      ])
    #expect(settings.kafka.topics.sends == "other.sends")
    #expect(settings.hubs.map(\.name.rawValue) == ["default", "app-2"])
    #expect(settings.worker.configuration.limits.maximumRecords == 7)
    #expect(settings.hubs.first?.policy.users == ["ann": [.readAll, .operate], "bob": [.readAll, .operate]])
  }

  @Test func grantsAddScopesToUsersAndGroups() async throws {
    let key = "FANFARE_HUB_DEFAULT_AUTHENTICATION"
    let settings = try Settings.load(
      file: nil,
      environment: [
        "\(key)_EVERYONE": "device", "\(key)_OPERATORS": "ann",
        "\(key)_GRANTS": "user Yves Müller: send:tag send:user,group ops: operate,user ann: send:tag",
      ])
    let policy = try #require(settings.hubs.first?.policy)
    #expect(policy.scopes(of: "bob") == [.device])
    #expect(policy.scopes(of: "bob", groups: ["ops"]) == [.device, .operate])
    #expect(policy.scopes(of: "ann") == [.device, .readAll, .operate, .sendTag])
    #expect(policy.scopes(of: "Yves Müller") == [.device, .sendTag, .sendUser])
    #expect(try Settings.load(file: nil, environment: [:]).hubs.first?.policy == ScopePolicy())
  }

  @Test func budgetsAndLifetimesOfLoginsAreRead() async throws {
    let settings = try Settings.load(
      file: nil,
      environment: [
        "FANFARE_AUTHENTICATION_FAILURES_PER_USER": "7", "FANFARE_AUTHENTICATION_REMEMBER_SECONDS": "30",
      ])
    #expect(settings.api.frontEnd.logins.perUser == 7 && settings.api.frontEnd.logins.perAddress == 100)
    #expect(settings.authentication.passwords.cacheTimeToLive == .seconds(30))
  }

  /// An unknown variable is not an error, unlike an unknown key of the file. The environment may contain variables with
  /// this prefix: Kubernetes sets some for a service with the name fanfare-ledger.
  @Test func unknownVariableIsReported() async throws {
    let settings = try Settings.load(
      file: nil,
      environment: [
        "FANFARE_WORKER_MAXIMUM_RECORD": "1", "FANFARE_WORKER_MAXIMUM_RECORDS": "7",
        "FANFARE_HUB_OTHER_APNS_KEY_ID_FILE": "x",
        "FANFARE_HUB_OTHER_SIMULATOR": "keys",
        "FANFARE_CONFIG": "fanfare.yaml", "FANFARES": "2", "PATH": "/bin",
      ])
    #expect(
      settings.unknownVariables == [
        "FANFARE_HUB_OTHER_APNS_KEY_ID_FILE (FANFARE_HUB_DEFAULT_APNS_KEY_IDFILE is the nearest one)",
        "FANFARE_HUB_OTHER_SIMULATOR (FANFARE_HUB_DEFAULT_SIMULATOR is the nearest one)",
        "FANFARE_WORKER_MAXIMUM_RECORD (FANFARE_WORKER_MAXIMUM_RECORDS is the nearest one)",
      ])
  }

  /// The rule derives `…_KEY_IDFILE`; the expected spelling `…_KEY_ID_FILE` works as well.
  @Test(arguments: ["KEY_ID_FILE", "KEY_IDFILE"]) func apnsKeyIDComesFromFile(variable: String) async throws {
    let file = try SecretFixture("ABCDEFGHIJ\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let given = ["KEY_FILE": file.path, variable: file.path, "TEAM_ID": "ABCDEFGHIJ", "TOPIC": "app"]
    let settings = try Settings.load(
      file: nil, environment: Dictionary(uniqueKeysWithValues: given.map { ("FANFARE_HUB_DEFAULT_APNS_\($0)", $1) }))
    #expect(
      settings.hubs[0].services.lazy.compactMap { $0 as? APNsSettings }.first?.configuration.keyID == "ABCDEFGHIJ")
    #expect(settings.unknownVariables == [])
  }

  @Test(arguments: [
    ("{bootstrapServers: file:1}", [:], "file:1"),
    ("{bootstrapServersFile: ANNOUNCED}", [:], "announced:1"),
    ("{bootstrapServers: file:1}", ["": "environment:1"], "environment:1"),
    ("{bootstrapServers: file:1}", ["_FILE": "ANNOUNCED"], "announced:1"),
    ("{bootstrapServersFile: /nonexistent/stale}", ["": "environment:1"], "environment:1"),
    ("{bootstrapServersFile: /nonexistent/stale}", ["_FILE": "ANNOUNCED"], "announced:1"),
    ("{bootstrapServers: file:1, bootstrapServersFile: ANNOUNCED}", [:], nil),
    ("{topicPrefix: mine}", ["": "environment:1", "_FILE": "ANNOUNCED"], nil),
    ("{bootstrapServers: file:1, bootstrapServersFile: ANNOUNCED}", ["": "environment:1"], "environment:1"),
  ])
  func environmentOverridesBothWaysToNameTheCluster(kafka: String, environment: [String: String], servers: String?)
    async throws
  {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-servers-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let (file, announced) = (directory.appending(path: "fanfare.yaml"), directory.appending(path: "announced"))
    try "announced:1\n".write(to: announced, atomically: true, encoding: .utf8)
    func placed(_ text: String) -> String { text.replacing("ANNOUNCED", with: announced.path) }
    try "kafka: \(placed(kafka))".write(to: file, atomically: true, encoding: .utf8)
    let variables = environment.map { ("FANFARE_KAFKA_BOOTSTRAP_SERVERS\($0)", placed($1)) }
    let load = { @Sendable in
      try Settings.load(file: file.path, environment: Dictionary(uniqueKeysWithValues: variables)).kafka.client(
        "test")
    }
    guard let servers else {
      let error = #expect(throws: SettingsError.self) { try load() }
      #expect(error?.description == "kafka.bootstrapServers must not be given together with kafka.bootstrapServersFile")
      return
    }
    #expect(try load().bootstrapServers == servers)
  }

  @Test func simulatorHasConfiguredLimits() async throws {
    var environment = ["FANFARE_HUB_DEFAULT_SIMULATOR": "fanfare-simulator"]
    func connections(_ hub: HubSettings) -> [Int] {
      hub.services.compactMap {
        ($0 as? APNsSettings)?.configuration.maximumConnections ?? ($0 as? FCMSettings)?.maximumConnections
      }
    }
    let free = try Settings.load(file: nil, environment: environment)
    #expect(free.hubs[0].pushesPerMinute == [:])
    #expect(connections(free.hubs[0]) == [4, 10])
    environment["FANFARE_HUB_DEFAULT_FCM_MAXIMUM_PER_MINUTE"] = "600"
    environment["FANFARE_HUB_DEFAULT_APNS_MAXIMUM_CONNECTIONS"] = "2"
    let limited = try Settings.load(file: nil, environment: environment)
    #expect(limited.hubs[0].pushesPerMinute == [.fcm: 600])
    #expect(connections(limited.hubs[0]) == [2, 10])
  }

  @Test func secretsDoNotAppearInSettings() async throws {
    let file = try SecretFixture("marked-secret\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let settings = try Settings.load(
      file: nil,
      environment: [
        "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "localhost:9092",
        "FANFARE_KAFKA_PROPERTIES": "sasl.password=marked-secret",
        "FANFARE_HUB_DEFAULT_WNS_SECRET_FILE": file.path, "FANFARE_HUB_DEFAULT_WNS_PACKAGE_SID": "ms-app://s-1",
        "FANFARE_REGISTRY_POSTGRES_URL": "postgresql://fanfare:marked-secret@localhost/fanfare",
        "FANFARE_REGISTRY_POSTGRES_PASSWORD_FILE": file.path,
      ])
    #expect(settings.registry.postgreSQL?.password == "marked-secret")
    #expect(try settings.kafka.client("test").properties["sasl.password"] == "marked-secret")
    #expect(!"\(settings)".contains("marked-secret"))
    var dumped = ""
    dump(settings, to: &dumped)
    #expect(!dumped.contains("marked-secret"))
  }
}

@Suite struct RegistrySettingsTests {
  @Test func patienceIsTheMinimumOfEveryWait() async throws {
    let environment = ["FANFARE_REGISTRY_POSTGRES_URL": "host=db", "FANFARE_REGISTRY_POSTGRES_STATEMENT_SECONDS": "90"]
    let settings = try Settings.load(file: nil, environment: environment).registry
    let usual = settings.database(role: "api", patience: .zero)
    #expect(usual?.applicationName == "fanfare-api")
    #expect(usual?.statementTimeout == .seconds(90) && usual?.waitLimit == .seconds(5))
    let patient = settings.database(role: "registrations", patience: .seconds(60))
    #expect(patient?.statementTimeout == .seconds(90) && patient?.waitLimit == .seconds(60))
  }
}

extension Settings {
  /// All keys of a hub and of a hook with these names, and those of every deployment.
  static func keys(hub: String, hook: String) -> Set<String> {
    Set(declarations.flatMap { $0.dottedKeys(of: $0.prefix.hasPrefix("hook.") ? hook : hub) })
  }
}
