import EmbeddedKafka
import FanfareCore
import Foundation
import Operations
import RDKafka
import Registry
import Store
import Support
import Testing
import Worker

@testable import Roles
@testable import fanfare

/// `fanfare doctor` against real failures.
@Suite(.timeLimit(.minutes(3))) struct DoctorTests {
  private func report(
    _ environment: [String: String], roles: Set<ConfigurationCheck.Role> = [.ledger]
  ) async throws -> Doctor.Report {
    try await Doctor(
      file: nil, environment: environment, roles: roles, patience: .seconds(2), logger: TestKafka.quietLogger
    ).run()
  }

  @Test func closedPortIsFoundWithItsRemedy() async throws {
    let report = try await report(["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"])
    let kafka = try #require(report.findings.first { $0.area == "kafka" })
    #expect(kafka.level == .wrong && kafka.remedy?.contains("kafka.security") == true)
    #expect(kafka.detail == "127.0.0.1:1 (kafka.bootstrapServers) did not answer within 2 s")
    #expect(report.worst == .wrong && !report.isMisconfigured)
  }

  @Test func missingTopicIsFound() async throws {
    let topics = Topics(prefix: "fanfare", retryDelays: Topics.defaultRetryDelays)
    let cluster = try EmbeddedCluster(
      topics: topics.all.filter { $0 != topics.status }.map { TopicSpecification(name: $0, partitions: 1) },
      logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let report = try await report(["FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers])
    let wrong = report.findings.filter { $0.area == "topics" && $0.level == .wrong }
    #expect(wrong.map(\.detail) == ["fanfare.status does not exist"])
    #expect(wrong.first?.remedy == "`fanfare topics create` creates it")
    #expect(report.findings.contains { $0.area == "kafka" && $0.level == .ok })
  }

  @Test(TestPostgreSQL.isAvailable) func sizeOfADatabaseIsReadFromItsServer() async throws {
    try await TestPostgreSQL.withSchema { database in
      let size = DatabaseSize(of: "registry", at: database, logger: TestPostgreSQL.quietLogger)
      let bytes = try await size.bytes()
      #expect(bytes > 1 << 20)
    }
  }

  /// A topic that the client may not see is missing in a list of all topics.
  @Test func missingRightsAreFound() async throws {
    let topics = Topics(prefix: "fanfare", retryDelays: Topics.defaultRetryDelays)
    let cluster = try EmbeddedCluster(
      topics: topics.created.map { TopicSpecification(name: $0, partitions: 1) }, logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let environment = ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers]
    func rights(_ role: ConfigurationCheck.Role) async throws -> [CheckResult] {
      try await report(environment, roles: [role]).findings.filter { $0.area == "rights" }
    }
    #expect(try await rights(.worker).map(\.level) == [.ok])
    try cluster.hide(topics.status)
    let hidden = try await report(environment)
    let remedy = "on it; the article on security lists the permissions of each role"
    #expect(
      hidden.findings.filter { $0.area == "rights" } == [
        .wrong("rights", "this client may not see fanfare.status", remedy: "grant DESCRIBE \(remedy)")
      ])
    #expect(!hidden.findings.contains { $0.detail.contains("does not exist") })
  }

  /// The first question about a group makes the topic of offsets, during which no broker coordinates groups.
  @Test func groupWithoutCoordinatorIsNoMissingRight() async throws {
    let topics = Topics(prefix: "fanfare", retryDelays: Topics.defaultRetryDelays)
    let cluster = try EmbeddedCluster(
      topics: topics.created.map { TopicSpecification(name: $0, partitions: 1) }, logger: TestKafka.quietLogger)
    defer { cluster.close() }
    func group() async throws -> CheckResult? {
      try await report(["FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers], roles: [.worker])
        .findings.first { $0.area == "group" }
    }
    try cluster.inject([.coordinatorNotAvailable], into: .offsetFetch)
    #expect(try await group()?.level == .ok)
    try cluster.inject(Array(repeating: .coordinatorNotAvailable, count: 1_000), into: .findCoordinator)
    let silent = try await group()
    #expect(silent?.level == .warning && silent?.remedy?.contains("grant") == false, "\(silent as Any)")
  }

  @Test(.timeLimit(.minutes(5))) func clockOfAnotherMachineIsFound() async throws {
    let cluster = try EmbeddedCluster(
      topics: [TopicSpecification(name: "fanfare.pulse", partitions: 1)], logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let settings = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers])
    let producer = try Producer(
      configuration: ProducerConfiguration(client: try settings.kafka.client("test")), logger: TestKafka.quietLogger)
    let running = Task { await producer.run() }
    let right = Pulse.Process(id: "p1", role: "worker", version: "1", host: "one", pid: 7, startedAt: 1)
    let wrong = Pulse.Process(id: "p2", role: "ledger", version: "1", host: "two", pid: 8, startedAt: 1)
    // As long as the check listens.
    let reporting = Task {
      while !Task.isCancelled {
        let now = SystemWallClock().now()
        for (process, time) in [(right, now), (wrong, now + .seconds(-90))] {
          let value = try Pulse(process: process, time: time).record()
          _ = await producer.send([ProducerRecord(topic: "fanfare.pulse", key: Array(process.id.utf8), event: value)])
        }
      }
    }
    // On a busy machine no report may arrive while the check listens, or late ones alone, which add to the difference.
    let found = "the clock of ledger 8 on two differs by "
    var findings: [CheckResult] = []
    while !findings.contains(where: { $0.detail.hasPrefix(found) }) {
      findings = await ClockCheck(settings: settings, logger: TestKafka.quietLogger).findings()
    }
    reporting.cancel()
    _ = await reporting.result
    await producer.close(timeout: .seconds(1))
    await running.value
    #expect(findings.allSatisfy { $0.level == .warning }, "\(findings)")
  }

  @Test func unreachableDatabaseIsFoundWithoutItsPassword() async throws {
    let mark = "marked-secret"
    let report = try await report([
      "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
      "FANFARE_LEDGER_POSTGRES_URL": "postgresql://u:\(mark)@127.0.0.1:1/x?sslmode=disable",
    ])
    let found = try #require(report.findings.first { $0.area == "ledger" })
    #expect(found.level == .wrong)
    #expect(found.detail.hasPrefix("127.0.0.1:1 (ledger.postgres.url): the database is unavailable"))
    #expect(!String(decoding: try JSONEncoder().encode(report), as: UTF8.self).contains(mark))
  }

  /// The queries on a real PostgreSQL: without tables, healthy, of an earlier release, and with broken indexes.
  @Test(TestPostgreSQL.isAvailable) func databaseIsComparedWithItsSchema() async throws {
    let settings = try Settings.load(file: nil, environment: [:])
    let check = DatabaseCheck(settings: settings, patience: .seconds(30), logger: TestPostgreSQL.quietLogger)
    let schema = RegistrySchema.migration
    try await TestPostgreSQL.withSchema { database in
      let pool = try PostgreSQLPool(database, logger: TestPostgreSQL.quietLogger)
      defer { pool.close() }
      func findings(_ schema: SchemaMigration = schema) async throws -> [CheckResult] {
        try await check.check(database, schema, "registry", "db:5432 (registry.postgres.url)")
      }
      let empty = try await findings()
      #expect(empty.map(\.level) == [.ok, .warning, .ok], "\(empty)")
      #expect(empty[0].detail.contains(/answers: PostgreSQL \d+.*, \d+ MiB$/))
      #expect(empty[1].detail.hasSuffix("has no tables yet"))
      #expect(empty[2].area == "clock" && empty[2].detail.contains("differs by"))

      try await schema.apply(to: pool)
      #expect(try await findings().map(\.level) == [.ok, .ok])
      let next = SchemaMigration(component: schema.component, steps: schema.steps + ["SELECT 1"])
      let old = try await findings(next).filter { $0.level == .warning }
      let versions = "version \(schema.steps.count) of the tables, and this release uses \(schema.steps.count + 1)"
      #expect(old.count == 1 && old[0].detail.contains(versions))

      try await pool.withConnection { try $0.executeScript("DROP INDEX tombstone_age, scheduled_send_waiting") }
      let missing = try await findings().filter { $0.level == .wrong }
      #expect(
        missing.map(\.remedy) == [
          "CREATE INDEX tombstone_age ON tombstones (at);",
          "CREATE INDEX scheduled_send_waiting ON scheduled_sends (hub, scheduled_at, id) "
            + "WHERE state IN ('held', 'paused') AND lease IS NULL;",
        ], "\(missing)")
      // An operator does as told.
      for remedy in missing.compactMap(\.remedy) { try await pool.withConnection { try $0.executeScript(remedy) } }
      #expect(try await findings().map(\.level) == [.ok, .ok])

      // A failed CREATE INDEX CONCURRENTLY leaves an invalid index.
      try await pool.withConnection { try $0.executeScript("CREATE TABLE twice AS SELECT 1 AS a UNION ALL SELECT 1") }
      await #expect(throws: PostgreSQLError.self) {
        try await pool.withConnection { try $0.executeScript("CREATE UNIQUE INDEX CONCURRENTLY one ON twice (a)") }
      }
      let invalid = try await findings().filter { $0.level == .wrong }
      #expect(invalid.map(\.remedy) == ["REINDEX DATABASE CONCURRENTLY"])
    }
  }

  @Test func mistakesOfTheConfigurationComeFirst() async throws {
    let report = try await report(["FANFARE_API_PORT": "70000", "FANFARE_KAFKA_PARTITIONS": "0"])
    #expect(report.isMisconfigured)
    #expect(report.findings.filter { $0.area == "configuration" }.count == 2)
  }

  @Test func databaseThatOthersMayReadIsFound() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-doctor-\(UUID())").path
    #expect(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o644]))
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    func finding() async throws -> CheckResult? {
      let settings = try Settings.load(file: nil, environment: ["FANFARE_REGISTRY_PATH": path])
      return FileCheck(settings: settings, roles: [], now: SystemWallClock().now()).findings().first
    }
    #expect(try await finding()?.level == .warning)
    #expect(try await finding()?.remedy == "chmod 600 \(path)")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(try await finding()?.level == .ok)
  }

  @Test func expiredCertificateIsFound() async throws {
    let certificates = try TestCertificates()
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-doctor-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let file = directory.appending(path: "cert.pem")
    try certificates.authorityPEM.write(to: file, atomically: true, encoding: .utf8)
    let settings = try Settings.load(
      file: nil,
      environment: ["FANFARE_API_TLS_CERTIFICATE_FILE": file.path, "FANFARE_API_TLS_KEY_FILE": file.path])
    func level(after years: Int64) -> CheckResult.Level? {
      FileCheck(settings: settings, roles: [.api], now: SystemWallClock().now() + .seconds(years * 31_536_000))
        .findings().first { $0.area == "certificate" }?.level
    }
    #expect(level(after: 1000) == .wrong)
    #expect(level(after: 0) != .wrong)
  }

  private static let answers: [(outcome: PushOutcome?, level: CheckResult.Level)] = [
    (PushOutcome(.rejected, reason: "BadDeviceToken", status: 400), CheckResult.Level.ok),
    (PushOutcome(.deviceGone, reason: "UNREGISTERED", status: 404), .ok),
    (PushOutcome(.configurationError, reason: "InvalidProviderToken", status: 403), .wrong),
    (PushOutcome(.unknown), .wrong), (PushOutcome(.retryLater, status: 503), .wrong), (nil, .wrong),
  ]

  @Test(arguments: answers)
  func answersToAPushToNoDeviceAreUnderstood(outcome: PushOutcome?, level: CheckResult.Level) {
    let finding = PushCheck.finding("push default apns", outcome, problem: nil)
    #expect(finding.level == level)
    #expect((finding.remedy != nil) == (level != .ok))
  }

  /// A service that answers 503 is reachable: the network is not to blame.
  @Test func serviceThatAnswersIsNotSaidToBeSilent() {
    let finding = PushCheck.finding(
      "push default apns", PushOutcome(.retryLater, reason: "ServiceUnavailable", status: 503), problem: nil)
    #expect(finding.detail.contains("answers that it cannot take pushes now: ServiceUnavailable (503)"))
    #expect(finding.remedy?.contains("status page") == true)
  }
}
