import EmbeddedKafka
import Logging
import RDKafka
import Support
import Testing

@testable import Roles

/// The log of a worker's Kafka clients while Kafka is away.
@Suite struct KafkaAwayTests {
  /// Passes events on to the log of the process, and tells of each client that reports the outage.
  private struct Counting: LogHandler {
    var inner: any LogHandler
    let reported: AsyncStream<Void>.Continuation

    var metadata: Logger.Metadata {
      get { inner.metadata }
      set { inner.metadata = newValue }
    }
    var logLevel: Logger.Level {
      get { inner.logLevel }
      set { inner.logLevel = newValue }
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { inner[metadataKey: key] }
      set { inner[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
      inner.log(event: event)
      if event.message == "No Kafka broker is reachable" { reported.yield() }
    }
  }

  /// The clients try again every few milliseconds instead of every two seconds, so that all of them report soon. The
  /// clock of the log moves by a minute meanwhile.
  @Test(.timeLimit(.minutes(1))) func fiveClientsTogetherWriteFewerThanTwentyLinesAMinute() async throws {
    let topic = TopicSpecification(name: "away", partitions: 4, replicationFactor: 1)
    let cluster = try EmbeddedCluster(topics: [topic], logger: TestKafka.quietLogger)
    defer { cluster.close() }
    var client = KafkaClientConfiguration(
      bootstrapServers: cluster.bootstrapServers, clientID: "away", profile: .embedded)
    client.profile.reconnectBackoff = .milliseconds(1)
    client.profile.maximumReconnectBackoff = .milliseconds(10)
    let (output, clock) = (LogOutput(), ManualClock())
    let (reports, reported) = AsyncStream.makeStream(of: Void.self)
    let log = ProcessLog(format: .logfmt, clock: clock, write: { output.take($0) })
    let logger = Logger(label: "fanfare.worker") {
      Counting(inner: log.handler(label: $0, level: .info), reported: reported)
    }
    let producers = try (0..<2).map { _ in
      try Producer(configuration: ProducerConfiguration(client: client), logger: logger)
    }
    let consumers = try (0..<3).map { number in
      try Consumer(
        configuration: ConsumerConfiguration(client: client, groupID: "group-\(number)", topics: ["away"]),
        logger: logger)
    }
    await withTaskGroup { group in
      for producer in producers { group.addTask { await producer.run() } }
      for consumer in consumers {
        group.addTask { await consumer.run() }
        group.addTask { for await _ in consumer.events {} }
      }
      for producer in producers {
        // A failure shows below: no client would report an outage.
        _ = try? await producer.prepare(topics: ["away"], timeout: .seconds(10))
      }
      do { try cluster.setBroker(isUp: false) } catch { Issue.record(error) }
      var outages = 0
      for await _ in reports {
        outages += 1
        if outages == 5 { break }
      }
      for _ in 0..<6 {
        clock.advance(by: .seconds(10))
        log.flush()
      }
      log.finish()
      for producer in producers { await producer.close(timeout: .milliseconds(1)) }
      for consumer in consumers { await consumer.close() }
    }
    let lines = output.lines
    #expect(lines.count < 20, "\(lines.joined())")
    // Whatever each client says of each of its connections: once, and then a count for each window of half a minute.
    let connections = lines.filter { $0.contains("Connection to a Kafka broker failed") }
    #expect(connections.count { !$0.contains("repeated=") } == 1 && connections.count <= 4, "\(lines.joined())")
    #expect(!lines.contains { $0.contains("librdkafka") || $0.contains("_TRANSPORT") }, "\(lines.joined())")
    #expect(lines.count { $0.contains("level=error") } == 1, "\(lines.joined())")
    #expect(lines.contains { $0.contains(#"level=error msg="No Kafka broker is reachable""#) })
    #expect(lines.contains { $0.contains("repeated=") })
  }
}
