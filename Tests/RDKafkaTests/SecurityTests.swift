import EmbeddedKafka
import Foundation
import NIOSSL
import Support
import Synchronization
import Testing

@testable import RDKafka

/// Real TLS handshakes and SASL exchanges with a front before the embedded cluster.
@Suite struct SecurityTests {
  /// Files in a directory of their own, which is removed afterwards.
  private func withDirectory<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-security-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    return try await body(directory)
  }

  private func client(_ front: KafkaFront, _ security: KafkaSecurity) -> KafkaClientConfiguration {
    // The front listens on the address of one family only.
    KafkaClientConfiguration(
      bootstrapServers: front.bootstrapServers, clientID: "test", properties: ["broker.address.family": "v4"],
      security: security, profile: .embedded)
  }

  /// Produces a record to a new topic and reads it back; throws the first error of either.
  private func exchange(_ kafka: TestKafka, _ client: KafkaClientConfiguration) async throws {
    let topic = try await kafka.topic(partitions: 1)
    var configuration = ProducerConfiguration(client: client)
    configuration.deliveryTimeout = .seconds(20)
    let producer = try Producer(configuration: configuration, logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      _ = try await producer.send(ProducerRecord(topic: topic, key: nil, value: Array("hello".utf8)))
      let reader = try LogReader(client: client, timeout: .seconds(30), logger: TestKafka.quietLogger)
      let spans = try await reader.spans(of: [topic])
      #expect(spans.map(\.end) == [1])
      await producer.close(timeout: .seconds(5))
    }
  }

  /// Asks for the topics of a cluster. A refused client waits for the whole limit.
  private func topics(_ client: KafkaClientConfiguration, within limit: Duration = .seconds(30)) async throws {
    _ = try await LogReader(client: client, timeout: limit, logger: TestKafka.quietLogger).topics()
  }

  @Test func recordsGoOverTLS() async throws {
    let certificates = try TestCertificates()
    try await withDirectory { directory in
      let authority = directory.appending(path: "ca.pem")
      try Data(certificates.authorityPEM.utf8).write(to: authority)
      let kafka = try TestKafka.embedded(brokers: 2)
      let front = try await KafkaFront.start(before: kafka, tls: try certificates.serverTLS())
      let security = KafkaSecurity(tls: KafkaSecurity.TLS(authoritiesFile: authority.path))
      try await exchange(kafka, client(front, security))
      await front.close()
    }
  }

  @Test func brokerOfAnotherAuthorityIsRefused() async throws {
    let (certificates, others) = (try TestCertificates(), try TestCertificates())
    try await withDirectory { directory in
      let authority = directory.appending(path: "ca.pem")
      try Data(others.authorityPEM.utf8).write(to: authority)
      let front = try await KafkaFront.start(before: try TestKafka.embedded(), tls: try certificates.serverTLS())
      let refused = client(front, KafkaSecurity(tls: KafkaSecurity.TLS(authoritiesFile: authority.path)))
      await #expect(throws: RDKafkaError.self) { try await topics(refused, within: .seconds(3)) }
      await front.close()
    }
  }

  @Test func brokerWithAnotherNameIsRefused() async throws {
    let certificates = try TestCertificates(coversAddress: false)
    try await withDirectory { directory in
      let authority = directory.appending(path: "ca.pem")
      try Data(certificates.authorityPEM.utf8).write(to: authority)
      let front = try await KafkaFront.start(before: try TestKafka.embedded(), tls: try certificates.serverTLS())
      var refused = client(front, KafkaSecurity(tls: KafkaSecurity.TLS(authoritiesFile: authority.path)))
      try await topics(refused)
      refused.bootstrapServers = refused.bootstrapServers.replacing("localhost", with: "127.0.0.1")
      await #expect(throws: RDKafkaError.self) { try await topics(refused, within: .seconds(3)) }
      await front.close()
    }
  }

  @Test func clientShowsItsCertificate() async throws {
    let (certificates, clients) = (try TestCertificates(), try TestCertificates())
    try await withDirectory { directory in
      let authority = directory.appending(path: "ca.pem")
      try Data(certificates.authorityPEM.utf8).write(to: authority)
      let files = try clients.write(to: directory.path)
      var tls = try certificates.serverTLS()
      tls.certificateVerification = .noHostnameVerification
      tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(clients.authorityPEM.utf8)))
      let front = try await KafkaFront.start(before: try TestKafka.embedded(), tls: tls)
      var security = KafkaSecurity.TLS(authoritiesFile: authority.path)
      let without = client(front, KafkaSecurity(tls: security))
      await #expect(throws: RDKafkaError.self) { try await topics(without, within: .seconds(3)) }
      (security.certificateFile, security.keyFile) = (files.certificate, files.key)
      try await topics(client(front, KafkaSecurity(tls: security)))
      await front.close()
    }
  }

  @Test(arguments: KafkaSecurity.PasswordMechanism.allCases)
  func clientsAuthenticateWithAPassword(mechanism: KafkaSecurity.PasswordMechanism) async throws {
    let kafka = try TestKafka.embedded()
    let accounts = KafkaAccounts(passwords: ["fanfare": "right"])
    let front = try await KafkaFront.start(before: kafka, accounts: accounts)
    func security(_ password: String) -> KafkaSecurity {
      KafkaSecurity(authentication: .password(mechanism, KafkaPassword(user: "fanfare", password: password)))
    }
    try await exchange(kafka, client(front, security("right")))
    let wrong = client(front, security("wrong"))
    await #expect(throws: RDKafkaError.self) { try await topics(wrong, within: .seconds(3)) }
    #expect(accounts.logins.allSatisfy { $0.mechanism == mechanism.rawValue && $0.name == "fanfare" })
    #expect(Set(accounts.logins.map(\.isAccepted)) == [true, false])
    await front.close()
  }

  @Test(arguments: KafkaSecurity.PasswordMechanism.allCases)
  func replacedPasswordReachesRunningClients(mechanism: KafkaSecurity.PasswordMechanism) async throws {
    let kafka = try TestKafka.embedded()
    let accounts = KafkaAccounts(passwords: ["fanfare": "second"])
    let front = try await KafkaFront.start(before: kafka, accounts: accounts)
    let password = KafkaPassword(user: "fanfare", password: "first")
    let client = client(front, KafkaSecurity(authentication: .password(mechanism, password)))
    // Both exist before the change. The first one waits for its whole limit.
    let refused = try LogReader(client: client, timeout: .seconds(2), logger: TestKafka.quietLogger)
    let reader = try LogReader(client: client, timeout: .seconds(30), logger: TestKafka.quietLogger)
    await #expect(throws: RDKafkaError.self) { _ = try await refused.topics() }
    let (isNew, isNewAgain) = (
      try password.replace(user: "fanfare", password: "second"),
      try password.replace(user: "fanfare", password: "second")
    )
    #expect(isNew && !isNewAgain)
    _ = try await reader.topics()
    await front.close()
  }

  /// Counts its tokens. The first ones may be errors.
  private final class Tokens: KafkaTokenSource {
    struct Unavailable: Error, CustomStringConvertible { let description = "no token yet" }

    let count = Mutex(0)
    let lifetime: Duration

    init(lifetime: Duration) { self.lifetime = lifetime }

    func token() async throws -> KafkaToken {
      let number = count.withLock { count in
        count += 1
        return count
      }
      let expiry = Date().timeIntervalSince1970 + lifetime / .seconds(1)
      return KafkaToken(
        value: "token-\(number)", expiresAtMilliseconds: Int64(expiry * 1000), principal: "fanfare",
        extensions: ["logicalCluster": "lkc-1"])
    }
  }

  @Test func clientsAuthenticateWithATokenAndRenewIt() async throws {
    let kafka = try TestKafka.embedded()
    let accounts = KafkaAccounts(tokens: ["token-1", "token-2", "token-3", "token-4", "token-5"])
    let front = try await KafkaFront.start(before: kafka, accounts: accounts)
    let tokens = Tokens(lifetime: .seconds(3600))
    try await exchange(kafka, client(front, KafkaSecurity(authentication: .token(tokens))))
    #expect(Set(accounts.logins.map(\.mechanism)) == ["OAUTHBEARER"])
    #expect(Set(accounts.logins.map(\.isAccepted)) == [true])
    // Two handles took part, each with a token of its own.
    #expect(tokens.count.withLock { $0 } == 2)
    await front.close()
  }

  @Test func unknownTokenIsRefused() async throws {
    let front = try await KafkaFront.start(
      before: try TestKafka.embedded(), accounts: KafkaAccounts(tokens: ["another"]))
    let client = client(front, KafkaSecurity(authentication: .token(Tokens(lifetime: .seconds(3600)))))
    await #expect(throws: RDKafkaError.self) { try await topics(client, within: .seconds(3)) }
    await front.close()
  }

  /// Handles must not outlive the clients that own them, or their threads and connections accumulate.
  @Test func handleWithTokensIsReleased() async throws {
    let tokens = Tokens(lifetime: .seconds(3600))
    weak var handle: Handle?
    do {
      let client = KafkaClientConfiguration(
        bootstrapServers: "127.0.0.1:1", clientID: "test", security: KafkaSecurity(authentication: .token(tokens)))
      let made = try Handle(
        kind: .producer, properties: ProducerConfiguration(client: client).properties, events: 0, logsToQueue: false)
      handle = made
    }
    // A token that is being fetched may hold it for a moment.
    while handle != nil { await Task.yield() }
  }

  @Test func scramWithAnOldLibraryIsSaidByName() throws {
    let recorder = LogRecorder()
    let security = KafkaSecurity(
      authentication: .password(.scramSHA512, KafkaPassword(user: "u", password: "s3cret")))
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", security: security)
    Workarounds.check(client, logger: recorder.logger)
    let old = Librdkafka.version.compare("2.6.1", options: .numeric) == .orderedAscending
    #expect(recorder.count(of: "against Kafka 4.0") == (old ? 1 : 0))
    #expect(recorder.text.contains("SCRAM-SHA-512") == old && recorder.text.contains(Librdkafka.version) == old)
    #expect(!recorder.text.contains("s3cret"))
  }

  @Test func noDescriptionShowsASecret() throws {
    let security = KafkaSecurity(
      tls: KafkaSecurity.TLS(keyFile: "k", keyPassword: "s3cret"),
      authentication: .password(.plain, KafkaPassword(user: "marked-user", password: "s3cret")))
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", security: security)
    var dumped = ""
    dump(client, to: &dumped)
    dump(security, to: &dumped)
    dump(ProducerConfiguration(client: client), to: &dumped)
    for text in ["\(client)", String(reflecting: client), "\(security)", String(reflecting: security), dumped] {
      #expect(!text.contains("s3cret") && !text.contains("marked-user"))
    }
  }

  @Test func topicsAreNeverCreatedByUse() {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
    let producer = ProducerConfiguration(client: client).properties.required
    let consumer = ConsumerConfiguration(client: client, groupID: "g", topics: ["t"]).properties.required
    for properties in [producer, consumer] {
      #expect(properties.contains { $0.key == "allow.auto.create.topics" && $0.value == "false" })
    }
    var forced = client
    forced.properties["allow.auto.create.topics"] = "true"
    #expect(throws: RDKafkaError.self) {
      _ = try Producer(configuration: ProducerConfiguration(client: forced), logger: TestKafka.quietLogger)
    }
  }
}
