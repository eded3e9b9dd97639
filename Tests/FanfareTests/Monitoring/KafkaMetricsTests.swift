import Operations
import RDKafka
import Support
import Testing

@testable import Roles

/// The metrics that are made of librdkafka's statistics.
@Suite(.timeLimit(.minutes(1))) struct KafkaMetricsTests {
  private let exporter = PrometheusMetrics()

  /// Reports to the exporter, and tells of every report.
  private func observer() -> (observe: KafkaStatisticsObserver, reports: AsyncStream<Void>) {
    let metrics = KafkaMetrics(factory: exporter)
    let (reports, report) = AsyncStream.makeStream(of: Void.self)
    return (
      {
        metrics.record($0); report.yield()
      }, reports
    )
  }

  @Test func figuresOfAProducerAreExported() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let (observe, reports) = observer()
    try await kafka.withProducer(configure: {
      $0.client.properties["statistics.interval.ms"] = "20"
      $0.client.statistics = observe
    }) { producer in
      _ = try await producer.send(ProducerRecord(topic: topic, key: nil, value: Array("goal".utf8)))
      for await _ in reports {
        let text = exporter.exposition()
        guard text.contains(/fanfare_kafka_client_sent_messages_total\{client="producer-\d+"\} 1\n/) else { continue }
        #expect(text.contains(/fanfare_kafka_client_sent_bytes_total\{client="producer-\d+"\} [1-9]/))
        #expect(text.contains(/fanfare_kafka_client_connected_brokers\{client="producer-\d+"\} [1-9]/))
        #expect(text.contains(/fanfare_kafka_client_round_trip_seconds\{client="producer-\d+"\} \d/))
        #expect(text.contains(/fanfare_kafka_client_errors_total\{client="producer-\d+"\} 0\n/))
        break
      }
    }
  }

  @Test func figuresOfAConsumerAreExported() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      _ = try await producer.send(ProducerRecord(topic: topic, key: nil, value: Array("goal".utf8)))
    }
    let (observe, reports) = observer()
    try await kafka.withConsumer(
      topics: [topic], group: kafka.group(),
      configure: {
        $0.client.properties["statistics.interval.ms"] = "20"
        $0.client.statistics = observe
      }
    ) { consumer in
      // An assignment takes effect when its event has been read.
      let reading = Task { for await _ in consumer.events {} }
      for await _ in reports
      where exporter.exposition().contains(
        /fanfare_kafka_client_consumed_messages_total\{client="consumer-\d+"\} 1\n/)
      {
        break
      }
      reading.cancel()
      await reading.value
    }
  }

  /// Another version of librdkafka may write them otherwise; that must not end a role.
  @Test func unreadableStatisticsAreIgnored() {
    KafkaMetrics(factory: exporter).record(Array(#"{"name":"rdkafka#producer-1"}"#.utf8))
    #expect(!exporter.exposition().contains("fanfare_kafka_client"))
  }
}
