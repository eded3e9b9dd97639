import EmbeddedKafka
import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

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

  @Test func mistakesOfTheConfigurationComeFirst() async throws {
    let report = try await report(["FANFARE_API_PORT": "70000", "FANFARE_KAFKA_PARTITIONS": "0"])
    #expect(report.isMisconfigured)
    #expect(report.findings.filter { $0.area == "configuration" }.count == 2)
  }

  @Test func databaseThatOthersMayReadIsFound() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-doctor-\(UUID())").path
    #expect(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o644]))
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    func finding() async throws -> Finding? {
      let settings = try await Settings.load(file: nil, environment: ["FANFARE_REGISTRY_PATH": path])
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
    let settings = try await Settings.load(
      file: nil,
      environment: ["FANFARE_API_TLS_CERTIFICATE_FILE": file.path, "FANFARE_API_TLS_KEY_FILE": file.path])
    func level(after years: Int64) -> Finding.Level? {
      FileCheck(settings: settings, roles: [.api], now: SystemWallClock().now() + .seconds(years * 31_536_000))
        .findings().first { $0.area == "certificate" }?.level
    }
    #expect(level(after: 1000) == .wrong)
    #expect(level(after: 0) != .wrong)
  }

  private static let answers: [(outcome: PushOutcome?, level: Finding.Level)] = [
    (PushOutcome(.rejected, reason: "BadDeviceToken", status: 400), Finding.Level.ok),
    (PushOutcome(.deviceGone, reason: "UNREGISTERED", status: 404), .ok),
    (PushOutcome(.configurationError, reason: "InvalidProviderToken", status: 403), .wrong),
    (PushOutcome(.unknown), .wrong), (PushOutcome(.retryLater, status: 503), .wrong), (nil, .wrong),
  ]

  @Test(arguments: answers)
  func answersToAPushToNoDeviceAreUnderstood(outcome: PushOutcome?, level: Finding.Level) {
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
