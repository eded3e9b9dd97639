import FanfareCore
import Foundation
import SettingsTable
import Support
import Testing

@testable import Roles

/// Files of settings: rules of single keys, and YAML. The corpus of commands has what `config check` says of a wrong type
/// or range, for every key.
@Suite struct SettingsFileTests {
  private func load(_ yaml: String) throws -> (settings: Settings?, problem: String?) {
    let file = FileManager.default.temporaryDirectory.appending(path: "fanfare-settings-\(UUID()).yaml")
    try yaml.write(to: file, atomically: true, encoding: .utf8)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    do { return (try Settings.load(file: file.path, environment: [:]), nil) } catch let error as SettingsError {
      return (nil, error.description.replacing(file.path, with: "FILE"))
    }
  }

  @Test(arguments: [
    ("kafka: {properties: acks}", "kafka.properties must be a list of texts"),
    ("kafka: {properties: [{sasl.password: open-sesame}]}", "kafka.properties must be a list of texts"),
    ("kafka: {properties: [debug=all, [open-sesame]]}", "kafka.properties must be a list of texts"),
    ("hubs: [default, null]", "hubs must not have an empty element"),
    ("kafka: {[open, sesame]: x}", "kafka must have words for keys"),
    ("worker: {instance: null}", "worker.instance must not be empty"),
    ("worker: {instance: ~}", "worker.instance must not be empty"),
    ("worker:\n  instance:\n", "worker.instance must not be empty"),
    ("api:\n  # port: 1\n", "api must not be empty"),
    (
      "kafka: {retryDelays: []}",
      "kafka.retryDelays must list at least one delay, such as 60"
    ),
    ("tracing: {batchSize: 100}", "tracing.batchSize is no key any more: a request has at most 512 spans"),
    (
      "registry: {postgres: {connectSeconds: 5}}",
      "registry.postgres.connectSeconds is no key any more: an attempt to connect may take 5 seconds, unless url has a connect_timeout"
    ),
    (
      "registry: {postgres: {url: 'postgresql://u:marked@[::1/x'}}",
      "registry.postgres.url must be a connection string that libpq reads: postgresql://user@host/database?sslmode=verify-full"
    ),
    (
      "registry: {postgres: {passwordFile: /nonexistent/x}}",
      "registry.postgres.passwordFile names a file that cannot be read: /nonexistent/x"
    ),
    ("registry: {postgres: {waitSeconds: 6}}", "registry.postgres.url is missing: waitSeconds is given without it"),
    (
      "ledger: {postgres: {maximumConnections: 8}}",
      "ledger.postgres.url is missing: maximumConnections is given without it"
    ),
    ("hubs: [Default]", "hubs must list names once each: \(HubName.rule)"),
    ("hubs: []", "hubs must name at least one hub"),
    ("hubs: [a, a]", "hubs must list names once each: \(HubName.rule)"),
    (
      "hub: {default: {authentication: {everyone: [device, sender]}}}",
      "hub.default.authentication.everyone has the word sender of earlier versions; write send:user, and send:tag, "
        + "send:broadcast, send:device or send:native where callers may send more than to single users"
    ),
    (
      "hub: {default: {authentication: {everyone: [device, root]}}}",
      "hub.default.authentication.everyone must be a list of device, send:user, send:tag, send:broadcast, send:device, "
        + "send:native, read:all, operate"
    ),
    (
      "hub: {default: {authentication: {operators: ['a:b']}}}",
      "hub.default.authentication.operators must be a list of user names: \(UserName.rule)"
    ),
    (
      "hub: {default: {authentication: {grants: ['alice: send:tag']}}}",
      "hub.default.authentication.grants must be a list of texts such as \"user alice: send:tag send:broadcast\" or "
        + "\"group ops: operate\""
    ),
    (
      "hub: {default: {authentication: {grants: [':']}}}",
      "hub.default.authentication.grants must be a list of texts such as \"user alice: send:tag send:broadcast\" or "
        + "\"group ops: operate\""
    ),
    (
      "hub: {other: {simulator: x}}",
      "hub.other.simulator is not a known key; deploy/fanfare.yaml lists all keys"
    ),
    (
      "hub: {default: {authentication: {token: {audience: [a]}}}}",
      "hub.default.authentication.token.issuer is missing: the claim iss of the tokens to accept"
    ),
    (
      "hub: {default: {authentication: {token: {issuer: i, keysFile: f}}}}",
      "hub.default.authentication.token.audience must name the audience of the tokens: those for other services are refused"
    ),
    (
      "hub: {default: {authentication: {token: {issuer: i, audience: [a]}}}}",
      "hub.default.authentication.token.keysURL is missing, and so is keysFile: the provider's JSON Web Key Set"
    ),
    (
      "hub: {default: {authentication: {token: {issuer: i, audience: [a], keysFile: f, keysURL: 'https://h/k'}}}}",
      "hub.default.authentication.token.keysURL must not be given together with hub.default.authentication.token.keysFile"
    ),
    (
      "hub: {default: {authentication: {token: {issuer: i, audience: [a], keysURL: 'http://example.com/k'}}}}",
      "hub.default.authentication.token.keysURL must be a URL of https, or of http on a loopback address"
    ),
    (
      "hub: {default: {authentication: {token: {issuer: i, audience: [a], keysFile: f, algorithms: [none]}}}}",
      "hub.default.authentication.token.algorithms must be a list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA"
    ),
  ])
  func badValueIsRefusedWithItsKey(yaml: String, message: String) throws {
    #expect(try load(yaml).problem == message)
  }

  @Test(arguments: [
    "kafka: {a: b: c open-sesame\n", "registry: {postgres: {url: \"open-sesame}}\n", "a: &x 1\nb: *open-sesame\n",
    "open-sesame:\t- 1\n - 2",
    "a: open-sesame\u{1}",
  ])
  func invalidYAMLIsRefusedWithoutItsText(yaml: String) throws {
    let problem = try #require(try load(yaml).problem)
    #expect(problem.hasPrefix("--config names a file that is not YAML: FILE: ") && !problem.contains("sesame"))
  }

  @Test(arguments: ["open-sesame", "- open-sesame\n", "'null'"])
  func nonMappingIsRefusedWithoutItsText(yaml: String) throws {
    #expect(try load(yaml).problem == "--config must name a file with a mapping of keys: FILE")
  }

  @Test(arguments: ["", "# worker: {instance: x}\n", "---\n", "{}"])
  func emptyFileGivesDefaults(yaml: String) throws {
    let settings = try #require(try load(yaml).settings)
    #expect(settings.worker.instance == nil)
  }

  /// Without quotes these words are YAML's null.
  @Test(arguments: ["null", "~"]) func quotedNullIsText(word: String) throws {
    #expect(try load("worker: {instance: '\(word)'}").settings?.worker.instance == word)
  }

  @Test(arguments: ["registry", "ledger"]) func passwordWithoutDatabaseIsRefused(section: String) throws {
    let secret = try SecretFixture("marked-secret\n")
    defer { #expect(throws: Never.self) { try secret.remove() } }
    let prefix = "FANFARE_\(section.uppercased())_POSTGRES"
    let given = ["\(prefix)_PASSWORD_FILE": secret.path]
    let error = #expect(throws: SettingsError.self) { try Settings.load(file: nil, environment: given) }
    #expect(error?.description == "\(section).postgres.url is missing: passwordFile is given without it")
    let whole = given.merging(["\(prefix)_URL": "postgresql://fanfare@localhost/fanfare"]) { $1 }
    _ = try Settings.load(file: nil, environment: whole)
  }
}
