import FanfareCore
import Foundation
import SettingsTable
import Support
import Testing

@testable import Roles
@testable import fanfare

/// All mistakes of a configuration at once.
@Suite struct ConfigurationCheckTests {
  private func report(
    _ yaml: String, environment: [String: String] = [:], roles: Set<ConfigurationCheck.Role> = []
  ) async throws -> (report: ConfigurationCheck.Report, path: String) {
    let file = FileManager.default.temporaryDirectory.appending(path: "fanfare-check-\(UUID()).yaml")
    try yaml.write(to: file, atomically: true, encoding: .utf8)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    let check = ConfigurationCheck(
      file: file.path, environment: environment, roles: roles, logger: TestKafka.quietLogger)
    return (try await check.run(), file.path)
  }

  @Test func allMistakesAreNamedInTheOrderOfTheFile() async throws {
    let (report, path) = try await report(
      """
      kafka:
        partitions: many
        bootstrapServer: x
        properties: [debug]
        topicPrefix: 'a b'
      hub:
        default:
          apns: {keyID: ABCDEFGHIJ, port: 0}
          fcm: {serviceAccountFile: /nonexistent/x}
          authentication: {method: magic}
      log: {level: loud}
      worker: {instance: ~, drainSeconds: -1}
      """, environment: ["FANFARE_API_PORT": "70000", "FANFARE_API_HOSTT": "x"])
    #expect(
      report.mistakes.map(\.line) == [
        "\(path):2: kafka.partitions must be a whole number from 1 to 1000, not \"many\"",
        "\(path):3: kafka.bootstrapServer is not a known key; kafka.bootstrapServers is the nearest one",
        "\(path):4: kafka.properties must be a list of texts of the form key=value",
        "\(path):5: kafka.topicPrefix must be 1 to 100 characters of A–Z a–z 0–9 . _ -",
        "\(path):8: hub.default.apns.port must be a whole number from 1 to 65535, not \"0\"",
        "\(path):9: hub.default.fcm.serviceAccountFile names a file that cannot be read: /nonexistent/x",
        "\(path):10: hub.default.authentication.method must be one of htpasswd, demo, none, not \"magic\"",
        "\(path):11: log.level must be one of trace, debug, info, notice, warning, error, critical, not \"loud\"",
        "\(path):12: worker.instance must not be empty",
        "\(path):12: worker.drainSeconds must be a number of seconds from 0.1 to 3600.0, not \"-1\"",
        "FANFARE_API_PORT: api.port must be a whole number from 0 to 65535, not \"70000\"",
        "\(path): hub.default.apns.keyFile is missing: keyID is given without the .p8 file",
      ])
    #expect(report.unknownVariables == ["FANFARE_API_HOSTT (FANFARE_API_HOST is the nearest one)"])
  }

  @Test func secretsOfHooksAreReadForTheirRole() async throws {
    let secret = try SecretFixture("too short")
    defer { #expect(throws: Never.self) { try secret.remove() } }
    let yaml = """
      kafka: {bootstrapServers: "127.0.0.1:1"}
      hub: {default: {hooks: [audit]}}
      hook: {audit: {url: "https://example.com/outcomes", secretFile: \(secret.path)}}
      """
    #expect(try await report(yaml, roles: [.hooks]).report.mistakes.map(\.key) == ["hook.audit.secretFile"])
    #expect(try await report(yaml, roles: [.ledger]).report.mistakes == [])
  }

  @Test func aNameForClientsOfAzureBelongsToOneHub() async throws {
    let yaml = """

      kafka: {bootstrapServers: "127.0.0.1:1"}
      hubs: [default, orders]
      hub:
        default: {azure: {names: [Shop, default]}}
        orders: {azure: {names: [shop, other]}}
      """

    let mistakes = try await report(yaml).report.mistakes
    #expect(mistakes.map(\.description) == ["hub.orders.azure.names must not have a name of the hub default"])
  }

  @Test func credentialsThatAreReplacedBelongToOneHub() async throws {
    let secret = try SecretFixture("secret\n")
    defer { #expect(throws: Never.self) { try secret.remove() } }
    let wns = "wns: {packageSID: \"ms-app://s-1-15-2-1\", secretFile: \(secret.path)}"
    let yaml = """

      kafka: {bootstrapServers: "127.0.0.1:1"}
      hubs: [default, orders]
      hub:
        default: {azure: {updatesCredentials: true}, \(wns)}
        orders: {\(wns)}
      """

    let mistakes = try await report(yaml).report.mistakes
    #expect(
      mistakes.map(\.description).contains(
        "hub.default.azure.updatesCredentials must not be true: the hub orders has credentials in the same file"),
      "\(mistakes)")
  }

  @Test func filesOfSharedAccessRulesAreReadIfTheProtocolIsOn() async throws {
    let rules = try SecretFixture("")
    defer { #expect(throws: Never.self) { try rules.remove() } }
    func mistakes(isOn: Bool = true, _ text: String, mode: Int = 0o600) async throws -> [String] {
      try rules.replace(with: text)
      try rules.set(mode: mode)
      let yaml = """
        kafka: {bootstrapServers: "127.0.0.1:1"}
        azure: {enabled: \(isOn), prefix: azure/v1, hosts: [ns.example.com]}
        hub: {default: {authentication: {method: none}, azure: {rulesFile: \(rules.path), names: [My_Hub]}}}
        """
      return try await report(yaml, roles: [.api]).report.mistakes.map(\.line)
    }
    #expect(try await mistakes("Full Listen,Send,Manage 0123456789abcdef") == [])
    let invalid = try await mistakes("# c\nFull Sing 0123456789abcdef")
    #expect(invalid.count == 1 && invalid[0].contains("hub.default.azure.rulesFile"))
    #expect(invalid[0].contains("line 2") && !invalid[0].contains("0123456789abcdef"))
    let readable = try await mistakes("Full Listen,Send,Manage 0123456789abcdef", mode: 0o644)
    #expect(readable.count == 1 && readable[0].contains("not safe"))
    #expect(try await mistakes(isOn: false, "nonsense") == [])
  }

  /// A missing file must not also be reported as a missing key.
  @Test func oneMistakeHasOneLine() async throws {
    let (report, _) = try await report(
      """
      hub:
        default:
          apns: {keyFile: /nonexistent/key.p8, keyID: ABCDEFGHIJ, teamID: ABCDEFGHIJ, topic: app}
          wns: {secretFile: /nonexistent/secret, packageSID: x}
      kafka: {security: {mechanism: magic, user: x}}
      """)
    #expect(
      report.mistakes.map(\.key) == [
        "hub.default.apns.keyFile", "hub.default.wns.secretFile", "kafka.security.mechanism",
      ])
  }

  /// The roles print all mistakes too, each on its line.
  @Test func loadingThrowsAllMistakes() async throws {
    let error = #expect(throws: SettingsError.self) {
      try Settings.load(
        file: nil, environment: ["FANFARE_API_PORT": "x", "FANFARE_KAFKA_PARTITIONS": "0"])
    }
    #expect(error?.mistakes.map(\.key) == ["kafka.partitions", "api.port"])
    #expect(error?.mistakes.map(\.value) == ["0", "x"])
  }

  @Test func valuesThatMayBeSecretAreNotShown() async throws {
    let mark = "marked-secret"
    let (report, _) = try await report(
      """
      kafka: {properties: [sasl.password \(mark)]}
      registry: {postgres: {url: "host=db password='\(mark)"}}
      hub: {default: {authentication: {grants: [user \(mark)]}, quota: {exceptions: ["\(mark)"]}}}
      log: {securityKeyFile: [\(mark)]}
      """)
    #expect(report.mistakes.count == 5)
    #expect(!"\(report.mistakes)".contains(mark))
    let json = try JSONEncoder().encode(report.mistakes.map(ConfigReport.Mistake.init))
    #expect(!String(decoding: json, as: UTF8.self).contains(mark))
  }

  @Test func filesOfRolesAreRead() async throws {
    let text = """
      kafka: {bootstrapServers: '127.0.0.1:1', properties: [nosuch=1]}
      api: {host: 0.0.0.0, tls: {certificateFile: /nonexistent/cert, keyFile: /nonexistent/key}}
      hub: {default: {authentication: {file: /nonexistent/htpasswd}}}
      """
    func keys(_ roles: Set<ConfigurationCheck.Role>) async throws -> [String] {
      try await report(text, roles: roles).report.mistakes.map(\.key)
    }
    #expect(
      try await keys([.api, .worker]) == [
        "kafka.properties", "api.tls.certificateFile", "hub.default.authentication.file",
      ])
    #expect(try await keys([.ledger]) == ["kafka.properties"])
    #expect(
      try await report("kafka: {bootstrapServers: h}", roles: [.worker]).report.mistakes.map(\.key) == ["hub.NAME"])
  }

  @Test(arguments: [
    ("kafka.partition", "kafka.partitions"), ("KAFKA.PARTITIONS", "kafka.partitions"), ("api.prot", "api.port"),
    ("worker", nil), ("zzzzzzzzz", nil),
  ])
  func nearestNameIsFound(name: String, nearest: String?) {
    #expect(NearestName.of(name, among: ["kafka.partitions", "api.port", "api.host"]) == nearest)
  }
}
