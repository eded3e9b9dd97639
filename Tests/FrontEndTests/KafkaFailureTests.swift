import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct KafkaFailureTests {
  private let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  /// That the wait is bounded shows in that the test ends.
  @Test func unreachableKafkaIsAnswered503InBoundedTime() async throws {
    // Nothing listens on the discard port.
    let client = KafkaClientConfiguration(
      bootstrapServers: "127.0.0.1:9", clientID: "test-unreachable", profile: .embedded)
    var configuration = ProducerConfiguration(client: client)
    configuration.deliveryTimeout = .milliseconds(500)
    configuration.requestTimeout = .milliseconds(200)
    let producer = try Producer(configuration: configuration, logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      try await Harness.run({ $0.sink = KafkaSink(producer: producer) }) { app in
        try await app.request(.post, "/api/sends", body: send).expectProblem(503, "kafkaUnavailable")
        try await app.request(.post, "/api/notifications?pns=apns&to_tag=bob", body: #""x""#)
          .expectProblem(503, "kafkaUnavailable")
        let batch = try await app.request(
          .post, "/api/sends/batch", body: "\(send)\n\(send)", type: "application/x-ndjson")
        #expect(batch.status == 200)
        let lines = try batch.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0) }
        #expect(lines.map { $0["error"]?["code"] } == ["kafkaUnavailable", "kafkaUnavailable"])
        // Requests that do not need Kafka succeed.
        #expect(try await app.request(.post, "/api/register").status == 200)
      }
      await producer.close(timeout: .seconds(1))
    }
  }

  /// A broker that waits for a dead follower's acknowledgement answers nothing else on the producer's connection.
  @Test func oneDeadBrokerIsNoOutage() async throws {
    let kafka = try TestKafka.embedded(brokers: 2)
    let topic = try await kafka.topic(partitions: 2)
    let front = try await KafkaFront.start(before: kafka)
    let log = LogRecorder()
    var client = KafkaClientConfiguration(
      bootstrapServers: front.bootstrapServers, clientID: "test", profile: .embedded)
    client.properties["broker.address.family"] = "v4"
    var configuration = ProducerConfiguration(client: client)
    configuration.refusesWhileUnreachable = true
    configuration.deliveryTimeout = .seconds(600)
    configuration.requestTimeout = .seconds(300)
    let producer = try Producer(configuration: configuration, logger: log.logger)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      for partition in 0..<2 {
        let record = ProducerRecord(topic: topic, partition: Int32(partition), key: nil, value: [1])
        _ = try await producer.send(record)
      }
      front.settings.holdsAcknowledgements = true
      for partition in 0..<2 {
        producer.submit([ProducerRecord(topic: topic, partition: Int32(partition), key: nil, value: [1])]) { _ in }
      }
      try kafka.cluster?.setBroker(2, isUp: false)
      while log.count(of: "A connection failed, and Kafka is reachable") == 0 { await Task.yield() }
      #expect(!producer.refusesRecords)
      #expect(log.count(of: "No Kafka broker is reachable") == 0, "\(log.text)")
      #expect(try await producer.prepare(topics: [topic], timeout: .seconds(30)) == [topic: 2])
      await producer.close(timeout: .zero)
    }
    await front.close()
    kafka.cluster?.close()
  }

  /// A caller must not wait for what the server knows already. With this delivery timeout only an answer at once ends
  /// the test.
  @Test func sendFailsAtOnceWhileKafkaIsKnownToBeAway() async throws {
    let kafka = try TestKafka.embedded()
    let topics = try await kafka.sendsTopic()
    try await kafka.withProducer(configure: {
      $0.deliveryTimeout = .seconds(600)
      $0.refusesWhileUnreachable = true
    }) { producer in
      try await producer.prepare(topics: [topics.sends], timeout: .seconds(10))
      try await Harness.run({
        $0.sink = KafkaSink(producer: producer)
        $0.configuration.topics = topics
      }) { app in
        #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
        #expect(!producer.refusesRecords)
        try kafka.cluster?.setBroker(isUp: false)
        while !producer.refusesRecords { await Task.yield() }
        for _ in 0..<20 {
          try await app.request(.post, "/api/sends", body: send).expectProblem(503, "kafkaUnavailable")
        }
        try kafka.cluster?.setBroker(isUp: true)
        while producer.refusesRecords { await Task.yield() }
        #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
      }
    }
  }

  @Test func sendsAreAcceptedAgainAfterAKafkaOutage() async throws {
    let kafka = try TestKafka.embedded()
    let topics = try await kafka.sendsTopic()
    try await kafka.withProducer(configure: {
      $0.deliveryTimeout = .seconds(2)
      $0.requestTimeout = .milliseconds(500)
    }) { producer in
      try await producer.prepare(topics: [topics.sends], timeout: .seconds(10))
      try await Harness.run({
        $0.sink = KafkaSink(producer: producer)
        $0.configuration.topics = topics
      }) { app in
        #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
        try kafka.cluster?.setBroker(isUp: false)
        let refused = try await app.request(.post, "/api/sends", body: send)
        #expect(refused.status == 503)
        #expect(["kafkaUnavailable", "outcomeUnknown"].contains(refused.code))
        try kafka.cluster?.setBroker(isUp: true)
        // The client reconnects after its backoff.
        var status = 503
        while status == 503 { status = try await app.request(.post, "/api/sends", body: send).status }
        #expect(status == 202)
      }
    }
  }
}
