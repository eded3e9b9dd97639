import EmbeddedKafka
import FanfareCore
import Logging
import RDKafka
import SettingsTable
import Support
import Testing

@testable import Roles

@Suite(.timeLimit(.minutes(2))) struct DurabilityCheckTests {
  private func settings(_ front: KafkaFront, policy: String = "refuse", replicas: Int = 3) async throws
    -> KafkaSettings
  {
    try Settings.load(
      file: nil,
      environment: [
        "FANFARE_KAFKA_BOOTSTRAP_SERVERS": front.bootstrapServers, "FANFARE_KAFKA_DURABILITY_CHECK": policy,
        "FANFARE_KAFKA_PROPERTIES": "broker.address.family=v4", "FANFARE_KAFKA_PARTITIONS": "1",
        "FANFARE_KAFKA_REPLICATION_FACTOR": "\(replicas)", "FANFARE_KAFKA_RETRY_DELAYS": "15",
      ]
    ).kafka
  }

  private func create(_ kafka: KafkaSettings) async throws {
    let administrator = try TopicAdministrator(client: try kafka.client("test"), logger: TestKafka.quietLogger)
    for creation in try await administrator.createTopics(
      kafka.specifications(replicationFactor: kafka.replicationFactor))
    {
      #expect(creation.outcome == .created)
    }
  }

  /// The cluster has the time of a busy machine.
  private func start(_ kafka: KafkaSettings, _ logger: Logger) async throws -> DurabilityCheck? {
    try await DurabilityCheck.start(
      kafka, role: "worker", topics: kafka.topics.all, within: .seconds(60), patience: .seconds(60), logger: logger)
  }

  private func check(_ kafka: KafkaSettings) throws -> TopicCheck {
    try TopicCheck(kafka: kafka, client: try kafka.client("test"), logger: TestKafka.quietLogger)
  }

  @Test func createdTopicsKeepThePromises() async throws {
    let front = try await KafkaFront.start(before: try TestKafka.embedded(brokers: 3))
    let kafka = try await settings(front)
    try await create(kafka)
    let report = try await check(kafka).report()
    #expect(report.findings.isEmpty && report.unreadable.isEmpty && report.topics.count == kafka.topics.created.count)
    #expect(try await start(kafka, TestKafka.quietLogger) == nil)
    await front.close()
  }

  /// The brokers of a cluster that has just been started learn of new topics one after another.
  @Test func newTopicsAreWaitedFor() async throws {
    let front = try await KafkaFront.start(before: try TestKafka.embedded(brokers: 3))
    let kafka = try await settings(front)
    front.settings.delayTopics(byAnswers: 3)
    try await create(kafka)
    let administrator = try TopicAdministrator(client: try kafka.client("test"), logger: TestKafka.quietLogger)
    let names = kafka.topics.created
    #expect(try await administrator.describe(names)?.count == names.count)
    await front.close()
  }

  @Test func roleWaitsForTopicsThatAreBeingCreated() async throws {
    let cluster = try TestKafka.embedded(brokers: 3)
    let front = try await KafkaFront.start(before: cluster)
    let kafka = try await settings(front)
    front.settings.delayTopics(byAnswers: 3)
    for topic in kafka.specifications(replicationFactor: 3) {
      let isLate = front.settings.postpone { [settings = front.settings] in
        try cluster.cluster?.createTopics([topic])
        settings.set(topic.configuration, of: topic.name)
      }
      #expect(isLate)
    }
    #expect(try await check(kafka).report().findings.isEmpty == false)
    #expect(try await start(kafka, TestKafka.quietLogger) == nil)
    await front.close()
  }

  @Test(arguments: [
    ("min.insync.replicas", "1", "at least 2"), ("min.insync.replicas", "4", "at most 3, its replicas"),
    ("cleanup.policy", "compact", "delete"), ("cleanup.policy", "compact,delete", "delete"),
    ("unclean.leader.election.enable", "true", "false"), ("max.message.bytes", "1048588", "at least 8388608"),
    ("retention.ms", "86400000", "at least 604800000, or -1"), ("retention.bytes", "1073741824", "-1"),
  ]) func brokenPromiseIsNamedAndRefusedAndRepaired(property: String, value: String, expectation: String) async throws {
    let front = try await KafkaFront.start(before: try TestKafka.embedded(brokers: 3))
    let kafka = try await settings(front)
    try await create(kafka)
    front.settings.set([property: value, "segment.ms": "3600000"], of: kafka.topics.status)
    let check = try check(kafka)
    let report = try await check.report()
    let finding = "\(kafka.topics.status): \(property) is \(value) and must be \(expectation)"
    #expect(report.findings.map(\.description) == [finding])
    let error = await #expect(throws: SettingsError.self) {
      _ = try await start(kafka, TestKafka.quietLogger)
    }
    #expect(error?.key == "kafka.durabilityCheck" && error?.expectation.contains(finding) == true)
    let recorder = LogRecorder()
    let lenient = try await settings(front, policy: "warn")
    #expect(try await start(lenient, recorder.logger) == nil)
    #expect(recorder.count(of: finding) == 1)

    #expect(try await check.mend(report) == report.findings)
    #expect(try await check.report().findings.isEmpty)
    #expect(front.settings.own(of: kafka.topics.status)["segment.ms"] == "3600000")
    await front.close()
  }

  @Test func endlessRetentionIsLongEnough() async throws {
    let front = try await KafkaFront.start(before: try TestKafka.embedded(brokers: 3))
    let kafka = try await settings(front)
    try await create(kafka)
    front.settings.set(["retention.ms": "-1"], of: kafka.topics.sends)
    #expect(try await check(kafka).report().findings.isEmpty)
    await front.close()
  }

  @Test func tooFewReplicasAndMissingTopicsAreNamed() async throws {
    let cluster = try TestKafka.embedded(brokers: 1)
    let front = try await KafkaFront.start(before: cluster)
    let one = try await settings(front, replicas: 1)
    try cluster.cluster?.createTopics([TopicSpecification(name: one.topics.sends, partitions: 1)])
    let specification = one.specifications(replicationFactor: 1).first { $0.name == one.topics.sends }
    front.settings.set(specification?.configuration ?? [:], of: one.topics.sends)
    var findings = try await check(try await settings(front)).report().findings.map(\.description)
    #expect(findings.contains("fanfare.sends: replicas is 1 and must be at least 3"))
    #expect(findings.contains("fanfare.status does not exist"))
    // Whoever asks for one replica gets it.
    findings = try await check(one).report().findings.map(\.description)
    #expect(!findings.contains { $0.hasPrefix("fanfare.sends") })
    await front.close()
  }

  @Test func unreadableSettingsAreAWarning() async throws {
    let front = try await KafkaFront.start(before: try TestKafka.embedded(brokers: 3))
    let kafka = try await settings(front)
    try await create(kafka)
    front.settings.error = 29  // TOPIC_AUTHORIZATION_FAILED
    let report = try await check(kafka).report()
    #expect(report.findings.isEmpty && report.unreadable.count == kafka.topics.created.count)
    #expect(try await start(kafka, TestKafka.quietLogger) == nil)
    await front.close()
  }

  @Test func mockClusterIsNotJudged() async throws {
    let cluster = try TestKafka.embedded(brokers: 1)
    let kafka = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers]
    ).kafka
    let report = try await check(kafka).report()
    #expect(report.findings.isEmpty && report.unreadable.count == 1)
  }

  @Test func clusterThatIsAwayIsCheckedLater() async throws {
    let kafka = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"]
    ).kafka
    let later = try await DurabilityCheck.start(
      kafka, role: "worker", topics: kafka.topics.all, within: .milliseconds(200), logger: TestKafka.quietLogger)
    #expect(later != nil)
  }
}
