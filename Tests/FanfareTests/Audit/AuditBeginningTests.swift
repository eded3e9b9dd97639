import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import Roles
@testable import fanfare

/// Records that the cluster deletes before or while an audit reads them.
@Suite(.timeLimit(.minutes(1))) struct AuditBeginningTests {
  /// With an unknown beginning, the audit would report every send whose status was deleted as lost.
  @Test func deletedBeginningIsReplacedByALaterOne() async throws {
    let kafka = try TestKafka.embedded()
    let topic = TopicSpecification(name: kafka.group(), partitions: 1)
    try #require(kafka.cluster).createTopics([topic])
    // The embedded cluster keeps 5 MB of a partition, measured after compression; random bytes do not compress.
    var random = SeededGenerator(seed: 1)
    func produce(megabytes: Int) async throws {
      let value = (0..<256 * 1024).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      try await kafka.withProducer { producer in
        for _ in 0..<4 * megabytes {
          for result in await producer.send([ProducerRecord(topic: topic.name, key: nil, value: value)]) {
            _ = try result.get()
          }
        }
      }
    }
    let reader = try LogReader(client: kafka.client("audit"), logger: TestKafka.quietLogger)
    let settings = try Settings.load(
      file: nil,
      environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrapServers])
    let audit = Audit(settings: settings, logger: TestKafka.quietLogger, retention: nil)
    try await produce(megabytes: 1)
    #expect(try await audit.beginning(of: try await reader.spans(of: [topic.name]), reader) == nil)
    try await produce(megabytes: 6)
    let spans = try await reader.spans(of: [topic.name])
    let before = SystemWallClock().now()
    try await produce(megabytes: 2)
    #expect(try #require(try await reader.spans(of: [topic.name]).first).start > (try #require(spans.first).start))
    let beginning = try #require(try await audit.beginning(of: spans, reader))
    #expect(beginning > before + .seconds(-3600) && beginning <= before)
  }

  /// An empty partition does not show when its last record was deleted, nor does one whose first record came after a
  /// long silence. But records deleted by age were old, so a recent send without a status is lost.
  @Test(arguments: [false, true])
  func recentSendIsLostAlsoWhenOldStatusesAreDeleted(hasRecord: Bool) async throws {
    let kafka = try TestKafka.embedded()
    let settings = try Settings.load(
      file: nil, environment: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": kafka.client("x").bootstrapServers])
    let topics = settings.kafka.topics
    let reader = try LogReader(client: kafka.client("audit"), logger: TestKafka.quietLogger)
    let now = SystemWallClock().now()
    try #require(kafka.cluster).createTopics([TopicSpecification(name: topics.status, partitions: 1)])
    try await kafka.withProducer { producer in
      let record = ProducerRecord(topic: topics.status, key: nil, value: [1])
      for result in await producer.send([record, record]) { _ = try result.get() }
    }
    // The first record counts as deleted; the second was written just now.
    let cut = LogSpan(partition: TopicPartition(topic: topics.status, partition: 0), start: hasRecord ? 1 : 2, end: 2)
    let beginning = try await Audit(settings: settings, logger: TestKafka.quietLogger).beginning(of: [cut], reader)
    var account = Account(topics: topics, positions: [topics.sends: [0: 10]])
    for (number, age) in [Duration.seconds(3600), .seconds(8 * 86_400)].enumerated() {
      account.add(
        .accepted(SendKey(hub: .default, id: .random())),
        at: AuditPlace(topic: topics.sends, partition: 0, offset: Int64(number)), time: now + (.zero - age))
    }
    let report = account.report(statusesFrom: beginning)
    #expect((report.accepted, report.lost, report.statusDeleted) == (2, 1, 1))
  }

  @Test(arguments: [
    ([Int32(0): Int64(2)], Int64(7), Int64(3)), ([0: 5], 7, 0), ([0: 9], 7, 0),
    // No worker has ever run; or the positions have expired, also if the group has one on another partition.
    ([:], 0, 5), ([:], 7, 0), ([1: 3], 7, 0),
  ])
  func recordsDeletedAboveCommittedOffsetWereNotRead(
    positions: [Int32: Int64], statuses: Int64, unread: Int64
  ) {
    let topics = Topics(retryDelays: [15])
    func span(_ topic: String, _ start: Int64, _ end: Int64) -> LogSpan {
      LogSpan(partition: TopicPartition(topic: topic, partition: 0), start: start, end: end)
    }
    for topic in [topics.sends, topics.segments, topics.retries[0].name] {
      let deleted = Audit.deletedUnread(
        [span(topic, 5, 9)], committed: [topic: positions], statuses: [span(topics.status, 0, statuses)])
      #expect(Account(topics: topics, positions: [:]).report(deleted: deleted).deletedUnread == Int(unread), "\(topic)")
    }
  }
}
