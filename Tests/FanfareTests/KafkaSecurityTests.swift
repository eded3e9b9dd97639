import FanfareCore
import Foundation
import Logging
import RDKafka
import SettingsTable
import Support
import Synchronization
import Testing

@testable import Roles

@Suite struct KafkaSecurityTests {
  private func settings(_ values: [String: String]) async throws -> KafkaSettings {
    var environment = ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092"]
    for (key, value) in values { environment["FANFARE_KAFKA_\(key)"] = value }
    return try Settings.load(file: nil, environment: environment).kafka
  }

  @Test func withoutSettingsThePropertiesDecide() async throws {
    let kafka = try await settings(["PROPERTIES": "security.protocol=SSL"])
    let client = try kafka.client("test")
    #expect(client.security == nil && client.properties["security.protocol"] == "SSL")
  }

  @Test func anySettingTurnsTLSOn() async throws {
    let file = try SecretFixture("secret\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let given = ["SECURITY_MECHANISM": "SCRAM-SHA-512", "SECURITY_USER": "u", "SECURITY_PASSWORD_FILE": file.path]
    let security = try #require(try await settings(given).client("test").security)
    #expect(security.tls != nil)
    guard case .password(.scramSHA512, _) = security.authentication else {
      Issue.record("the mechanism is another one")
      return
    }
    let plain = try #require(
      try await settings(given.merging(["SECURITY_TLS": "false"]) { $1 }).client("test").security)
    #expect(plain.tls == nil && plain.authentication != nil)
    let alone = try #require(try await settings(["SECURITY_TLS": "true"]).client("test").security)
    #expect(alone.tls != nil && alone.authentication == nil)
  }

  @Test(arguments: [
    (["MECHANISM": "PLAIN"], "kafka.security.user is missing: PLAIN needs it"),
    (["MECHANISM": "PLAIN", "USER": "u"], "kafka.security.passwordFile is missing: PLAIN needs it"),
    (["USER": "u"], "kafka.security.mechanism is missing: user, passwordFile or oauth is given without it"),
    (
      ["MECHANISM": "SCRAM"],
      "kafka.security.mechanism must be one of none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
    ),
    (
      ["CERTIFICATE_FILE": "SECRET"],
      "kafka.security.keyFile is missing: a client certificate needs certificateFile and keyFile"
    ),
    (
      ["TLS": "false", "TRUST_ROOTS_FILE": "SECRET"],
      "kafka.security.tls must not be false while files of certificates or keys are given"
    ),
    (
      ["TRUST_ROOTS_FILE": "/nonexistent/x"],
      "kafka.security.trustRootsFile names a file that cannot be read: /nonexistent/x"
    ),
    (["MECHANISM": "OAUTHBEARER"], "kafka.security.oauth.tokenEndpoint is missing: OAUTHBEARER needs it"),
    (
      [
        "MECHANISM": "OAUTHBEARER", "OAUTH_TOKEN_ENDPOINT": "http://login.example.com/token", "OAUTH_CLIENT_ID": "c",
        "OAUTH_CLIENT_SECRET_FILE": "SECRET",
      ], "kafka.security.oauth.tokenEndpoint must be an https URL"
    ),
    (
      [
        "MECHANISM": "OAUTHBEARER", "OAUTH_TOKEN_ENDPOINT": "https://login.example.com/token", "OAUTH_CLIENT_ID": "c",
        "OAUTH_CLIENT_SECRET_FILE": "SECRET", "OAUTH_TRUST_ROOTS_FILE": "SECRET",
      ], "kafka.security.oauth.trustRootsFile must be certificates in PEM"
    ),
  ]) func incompleteSettingsAreRefusedByName(values: [String: String], message: String) async throws {
    let file = try SecretFixture("secret\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let given = Dictionary(
      uniqueKeysWithValues: values.map { ("SECURITY_\($0)", $1.replacing("SECRET", with: file.path)) })
    let error = await #expect(throws: SettingsError.self) { try await settings(given) }
    #expect(error?.description == message)
  }

  @Test func replacedPropertiesAreRefusedBesideTheSettings() async throws {
    let error = await #expect(throws: SettingsError.self) {
      try await settings(["SECURITY_TLS": "true", "PROPERTIES": "security.protocol=PLAINTEXT"])
    }
    #expect(error?.description == "kafka.properties must not contain security.protocol together with kafka.security")
  }

  @Test func replacedPasswordFileIsUsed() async throws {
    let file = try SecretFixture("first\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let kafka = try await settings([
      "SECURITY_MECHANISM": "PLAIN", "SECURITY_USER": "u", "SECURITY_PASSWORD_FILE": file.path,
    ])
    let security = try #require(kafka.security)
    #expect(try !security.renewPassword())
    try file.replace(with: "second\n")
    #expect(try security.renewPassword())
    // A password that others could read is not taken.
    try file.replace(with: "third\n")
    try file.set(mode: 0o644)
    #expect(throws: SettingsError.self) { try security.renewPassword() }
    #expect(kafka.credentialWatches(logger: Logger(label: "test")).count == 1)
  }

  @Test func clientsShareAFreshToken() async throws {
    let clock = ManualClock()
    let fetches = Atomic(0)
    let source = OAuthTokenSource(principal: "c", extensions: ["a": "b"], clock: clock) {
      ("token-\(fetches.wrappingAdd(1, ordering: .relaxed).newValue)", .seconds(100))
    }
    async let one = source.token()
    async let other = source.token()
    #expect(try await [one, other].map(\.value) == ["token-1", "token-1"])
    clock.advance(by: .seconds(49))
    #expect(try await source.token().value == "token-1")
    clock.advance(by: .seconds(2))
    let token = try await source.token()
    #expect(token.value == "token-2" && token.extensions == ["a": "b"])
    #expect(token.expiresAtMilliseconds == (clock.now() + .seconds(100)).milliseconds)
    #expect(!"\(token)".contains("token-2"))
  }
}

@Suite struct SecretFileTests {
  @Test(
    arguments: [
      (1000, 0o600, false, true), (1000, 0o400, false, true), (1000, 0o640, false, false), (1000, 0o604, false, false),
      (0, 0o600, false, true), (0, 0o640, false, true), (0, 0o644, false, false), (0, 0o660, false, false),
      // A mounted secret of a container platform.
      (0, 0o444, true, true), (1000, 0o444, true, false), (1001, 0o600, false, false),
    ] as [(UInt32, UInt32, Bool, Bool)])
  func permissionsDecide(owner: UInt32, mode: UInt32, isReadOnlyMount: Bool, isSafe: Bool) {
    let access = FileAccess(owner: owner, mode: mode, isReadOnlyMount: isReadOnlyMount)
    #expect((SecretFile.problem(with: access, user: 1000) == nil) == isSafe)
  }

  private func secrets(_ path: String) -> [[String: String]] {
    [
      ["KAFKA_SECURITY_MECHANISM": "PLAIN", "KAFKA_SECURITY_USER": "u", "KAFKA_SECURITY_PASSWORD_FILE": path],
      ["KAFKA_SECURITY_CERTIFICATE_FILE": path, "KAFKA_SECURITY_KEY_FILE": path],
      [
        "REGISTRY_POSTGRES_URL": "postgresql://fanfare@localhost/fanfare", "REGISTRY_POSTGRES_PASSWORD_FILE": path,
      ],
      ["LEDGER_POSTGRES_URL": "postgresql://fanfare@localhost/fanfare", "LEDGER_POSTGRES_PASSWORD_FILE": path],
      [
        "HUB_DEFAULT_APNS_KEY_FILE": path, "HUB_DEFAULT_APNS_KEY_ID": "ABCDEFGHIJ",
        "HUB_DEFAULT_APNS_TEAM_ID": "ABCDEFGHIJ", "HUB_DEFAULT_APNS_TOPIC": "app",
      ],
      ["HUB_DEFAULT_FCM_SERVICE_ACCOUNT_FILE": path], ["LOG_SECURITY_KEY_FILE": path],
      ["HUB_DEFAULT_WNS_SECRET_FILE": path, "HUB_DEFAULT_WNS_PACKAGE_SID": "ms-app://s-1"],
    ]
  }

  @Test func fileThatOthersMayReadIsRefusedByName() async throws {
    let file = try SecretFixture("marked-secret-of-the-file\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    try file.set(mode: 0o644)
    for given in secrets(file.path) {
      let environment = Dictionary(uniqueKeysWithValues: given.map { ("FANFARE_\($0)", $1) })
      let error = #expect(throws: SettingsError.self) {
        try Settings.load(file: nil, environment: environment)
      }
      let text = error?.description ?? ""
      #expect(text.contains("names a file that is not safe: \(file.path): others may use it (mode 0644)"), "\(given)")
      #expect(!text.contains("marked-secret"))
      let allowed = environment.merging(["FANFARE_SECRETS_ALLOW_READABLE": "true"]) { $1 }
      // The service account is not one; its error is not about permissions.
      if given.keys.contains("HUB_DEFAULT_FCM_SERVICE_ACCOUNT_FILE") { continue }
      #expect(throws: Never.self, "\(given)") { try Settings.load(file: nil, environment: allowed) }
    }
  }
}
