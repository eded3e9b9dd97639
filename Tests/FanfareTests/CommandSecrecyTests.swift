import ArgumentParser
import Foundation
import SettingsTable
import Support
import Testing

@testable import Roles
@testable import fanfare

/// Errors of configurations and commands, with marked secrets in the configuration.
@Suite(.timeLimit(.minutes(3))) struct CommandSecrecyTests {
  private static let mark = "marked-secret"

  @Test(arguments: ["REGISTRY", "LEDGER"])
  func refusedConnectionStringIsNotInTheError(section: String) async throws {
    for url in [
      "postgresql://fanfare:\(Self.mark)@localhost/fanfare?nosuch=1", "postgresql://fanfare:\(Self.mark)@[::1/fanfare",
      "host=db password=\(Self.mark) nosuch=1", "host=db password='\(Self.mark)", "\(Self.mark)",
      "postgresql://fanfare@localhost/fanfare?password=\(Self.mark)%",
    ] {
      try await expectNoMark(in: ["\(section)_POSTGRES_URL": url])
    }
  }

  @Test(arguments: [
    ["KAFKA_PROPERTIES": "sasl.password \(mark)"], ["KAFKA_PROPERTIES": "sasl.password=\(mark),\(mark)"],
    [
      "HUB_DEFAULT_AUTHENTICATION_TOKEN_ISSUER": "i", "HUB_DEFAULT_AUTHENTICATION_TOKEN_AUDIENCES": "a",
      "HUB_DEFAULT_AUTHENTICATION_TOKEN_KEYS_URL": "http://user:\(mark)@issuer.example/keys",
    ],
    ["HUB_DEFAULT_AUTHENTICATION_GRANTS": "user \(mark)"], ["HUB_DEFAULT_QUOTA_EXCEPTIONS": "user a: \(mark)"],
  ])
  func refusedValueIsNotInTheError(given: [String: String]) async throws {
    try await expectNoMark(in: given)
  }

  /// Neither the database nor Kafka can be reached. The other commands set up the log of the process, which a test has
  /// already.
  @Test func errorsOfCommandsHaveNoPassword() async throws {
    let configuration = try SecretFixture(
      """
      kafka:
        bootstrapServers: 127.0.0.1:1
        properties: [security.protocol=SASL_PLAINTEXT, sasl.mechanism=PLAIN, sasl.username=u, sasl.password=\(Self.mark)]
      registry:
        postgres:
          url: postgresql://fanfare:\(Self.mark)@127.0.0.1:1/fanfare?sslmode=disable
          waitSeconds: 0.5
      ledger:
        postgres:
          url: postgresql://fanfare:\(Self.mark)@127.0.0.1:1/fanfare?sslmode=disable
          waitSeconds: 0.5
      """)
    defer { #expect(throws: Never.self) { try configuration.remove() } }
    for arguments in [
      ["keys", "list"], ["quotas", "show"], ["registrations", "export"], ["topics", "check"],
      ["doctor", "--quiet", "--timeout", "2s"],
    ] {
      let error = await #expect(throws: (any Error).self, "\(arguments)") {
        let command = try Fanfare.parseAsRoot(arguments + ["--config", configuration.path])
        var running = try #require(command as? any AsyncParsableCommand)
        try await running.run()
      }
      guard let error else { continue }
      let words = ErrorWords(try Settings.load(file: configuration.path, environment: [:])).text(error)
      for text in ["\(error)", String(reflecting: error), Fanfare.fullMessage(for: error), words] {
        #expect(!text.contains(Self.mark), "\(arguments)")
      }
    }
  }

  private func expectNoMark(in given: [String: String]) async throws {
    let environment = Dictionary(uniqueKeysWithValues: given.map { ("FANFARE_\($0)", $1) })
    let error = #expect(throws: SettingsError.self, "\(given)") {
      try Settings.load(file: nil, environment: environment)
    }
    let text = String(reflecting: error) + (error?.description ?? "")
    #expect(!text.contains(Self.mark), "\(given)")
  }
}
