import EmbeddedKafka
import FanfareCore
import Logging
import RDKafka
import Support
import Testing

@testable import Roles
@testable import fanfare

/// Records in a retry topic whose delay is no longer configured are readmitted all the same.
@Suite(.timeLimit(.minutes(2))) struct RetiredRetriesTests {
  @Test func onlyRetryTopicsOfThisDeploymentAreRetired() {
    let topics = Topics(prefix: "mine", retryDelays: [15])
    let names = [
      "mine.retry.15s", "mine.retry.300s", "mine.retry.7s", "other.retry.7s", "mine.retry.s", "mine.retry.-1s",
      "mine.retry.0s",
      "mine.sends",
    ]
    #expect(topics.retired(among: names).map(\.name) == ["mine.retry.7s", "mine.retry.300s"])
    #expect(topics.retired(among: names).map(\.delay) == [.seconds(7), .seconds(300)])
  }

  @Test func recordsOfRetiredRetryTopicAreReadmitted() async throws {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let former = Topics(retryDelays: [1])
    let cluster = try EmbeddedCluster(
      topics: former.all.map { TopicSpecification(name: $0, partitions: 2) }, logger: logger)
    defer { cluster.close() }
    let client = KafkaClientConfiguration(
      bootstrapServers: cluster.bootstrapServers, clientID: "test", profile: .embedded)
    let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: logger)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      let value = Array("anything; the worker says what it is".utf8)
      _ = try await producer.send([ProducerRecord(topic: former.retries[0].name, key: nil, value: value)])[0].get()
      group.addTask { [logger] in
        try await RetiredRetries(
          client: client, topics: Topics(), producer: producer, clock: SystemWallClock(), logger: logger
        ).run()
      }
      let reader = try LogReader(client: client, logger: logger)
      var found: [ConsumedRecord] = []
      while found.isEmpty {
        let spans = try await reader.spans(of: [former.sends]).filter { $0.count > 0 }
        guard !spans.isEmpty else { continue }
        try await TopicScan(.reports(command: "test"), reader: reader).read(spans) { records in
          found += records
          return true
        }
      }
      #expect(found.map { Array($0.value) } == [value])
      group.cancelAll()
    }
  }
}
