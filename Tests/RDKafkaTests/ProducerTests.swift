import EmbeddedKafka
import RDKafka
import Support
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ProducerTests {
  @Test func sendReturnsPositionFromBroker() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      let first = try await producer.send(record(topic, "a"))
      let second = try await producer.send(record(topic, "b"))
      #expect(first == RecordPosition(topic: topic, partition: 0, offset: 0))
      #expect(second == RecordPosition(topic: topic, partition: 0, offset: 1))
      #expect(producer.recordsInFlight == 0)
    }
  }

  @Test func resultsOfABatchAreInOrder() async throws {
    let kafka = try TestKafka.shared()
    let topics = [try await kafka.topic(partitions: 1), try await kafka.topic(partitions: 1)]
    try await kafka.withProducer { producer in
      let records = (0..<5_000).map {
        record(topics[$0 % 2], "\($0)", headers: [RecordHeader(name: "n", text: "\($0)")])
      }
      let positions = try await producer.send(records).map { try $0.get() }
      #expect(positions.map(\.topic) == records.map(\.topic))
      #expect(positions.map(\.offset) == (0..<5_000).map { Int64($0 / 2) })
      #expect(await producer.send([]).isEmpty)
    }
  }

  /// The hashes come from Kafka's own test of its murmur2, `UtilsTest.java`.
  @Test(arguments: [
    ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829), ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ("abc", 479_470_107),
  ])
  func keyIsPartitionedAsInJava(key: String, hash: Int) async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 7)
    try await kafka.withProducer { producer in
      let expected = Int32((hash & 0x7fff_ffff) % 7)
      let results = await producer.send([record(topic, key: key, "1"), record(topic, key: key, "2")])
      let partitions = try results.map { try $0.get().partition }
      #expect(partitions == [expected, expected])
    }
  }

  @Test func onlyTooLargeRecordIsRefused() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer(configure: { $0.maximumRecordBytes = 2_000 }) { producer in
      let results = await producer.send([
        record(topic, "small"), record(topic, String(repeating: "x", count: 10_000)), record(topic, "small"),
      ])
      #expect(failure(results[1])?.code == .messageTooLarge)
      #expect(failure(results[1])?.isRetriable == false)
      let position = try results[2].get()
      #expect(position.offset == 1)
    }
  }

  @Test func recordGoesToGivenPartitionModuloCountElseByKey()
    async throws
  {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 3)
    try await kafka.withProducer { producer in
      // Without `prepare` the first records wait in the client until it knows the number of partitions.
      let places: [Int32?] = [0, 1, 2, 3, 64, 65_534, nil, 7]
      let headers = [RecordHeader(name: "h", value: [1])]
      let results = await producer.send(
        places.enumerated().map {
          record(topic, key: "key", "\($0)", partition: $1, headers: $0.isMultiple(of: 2) ? headers : [])
        })
      let keyed = try await producer.send(record(topic, key: "key", "x")).partition
      #expect(try results.map { try $0.get().partition } == places.map { $0.map { $0 % 3 } ?? keyed })
    }
  }

  @Test(arguments: [-1, 65_535] as [Int32])
  func invalidPartitionIsRefusedAndOtherRecordsAreNot(partition: Int32) async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 2)
    try await kafka.withProducer { producer in
      let partitions = try await producer.prepare(topics: [topic], timeout: .seconds(10))
      #expect(partitions == [topic: 2])
      let results = await producer.send([record(topic, "x", partition: partition), record(topic, "y", partition: 1)])
      #expect(failure(results[0])?.code == .unknownTopic)
      #expect(try results[1].get().partition == 1)
    }
  }

  @Test func noRecordOvertakesOneThatFullQueueRefused() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    var configuration = ProducerConfiguration(client: kafka.client())
    configuration.queueBytes = 4096
    configuration.maximumRecordBytes = 4000
    // No record leaves the queue during the test.
    configuration.linger = .seconds(60)
    configuration.deliveryTimeout = .seconds(300)
    let producer = try Producer(configuration: configuration, logger: TestKafka.quietLogger)
    async let run: Void = producer.run()
    let (results, continuation) = AsyncStream.makeStream(of: [Result<RecordPosition, RDKafkaError>].self)
    // The second has no room, the third would have.
    producer.submit([3000, 3000, 10].map { record(topic, String(repeating: "x", count: $0)) }) {
      continuation.yield($0)
      continuation.finish()
    }
    #expect(producer.recordsInFlight == 1)
    _ = await producer.close(timeout: .zero)
    await run
    let outcome = try #require(await results.first { _ in true })
    #expect(outcome.map { failure($0)?.code } == [.notPersisted, .queueFull, .queueFull])
  }

  @Test func fullQueueRefusesRecordsAndClosingAbandonsTheRest() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    var configuration = ProducerConfiguration(client: kafka.client())
    configuration.queueRecords = 10
    // No record leaves the queue during the test.
    configuration.linger = .seconds(60)
    configuration.deliveryTimeout = .seconds(300)
    let producer = try Producer(configuration: configuration, logger: TestKafka.quietLogger)
    async let run: Void = producer.run()
    let (results, continuation) = AsyncStream.makeStream(of: [Result<RecordPosition, RDKafkaError>].self)
    producer.submit((0..<12).map { record(topic, "\($0)") }) {
      continuation.yield($0)
      continuation.finish()
    }
    #expect(producer.recordsInFlight == 10)
    #expect(await producer.close(timeout: .zero) == 10)
    await run
    let outcome = try #require(await results.first { _ in true })
    #expect(outcome.map { failure($0)?.code } == Array(repeating: .notPersisted, count: 10) + [.queueFull, .queueFull])
    #expect(failure(outcome[11])?.isRetriable == true)
    let error = await #expect(throws: RDKafkaError.self) { try await producer.send(record(topic, "late")) }
    #expect(error?.code == .closed)
  }

  @Test func cancellingTheRunClosesTheProducer() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let producer = try Producer(
      configuration: ProducerConfiguration(client: kafka.client()), logger: TestKafka.quietLogger)
    let run = Task { await producer.run() }
    _ = try await producer.send(record(topic, "x"))
    run.cancel()
    await run.value
    #expect(failure(await producer.send([record(topic, "y")])[0])?.code == .closed)
    #expect(await producer.close(timeout: .zero) == 0)
  }

  @Test func producerThatNeverRanCanBeClosed() async throws {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
    let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: TestKafka.quietLogger)
    async let results = producer.send([record("nowhere", "x")])
    try await until { producer.recordsInFlight > 0 }
    #expect(await producer.close(timeout: .seconds(1)) == 1)
    #expect(failure(await results[0])?.code == .notPersisted)
    await producer.run()
  }

  @Test func transientFaultsAreRetriedUntilEveryRecordIsStored() async throws {
    let kafka = try TestKafka.embedded(brokers: 3)
    let topic = try await kafka.topic(partitions: 4)
    // One request at a time: the cluster would accept a batch after one that it has refused.
    let sequential = { @Sendable (configuration: inout ProducerConfiguration) in
      configuration.client.properties["max.in.flight.requests.per.connection"] = "1"
    }
    try await kafka.withProducer(configure: sequential) { producer in
      try kafka.cluster?.inject([.notLeader, .requestTimedOut, .disconnect, .notEnoughReplicas], into: .produce)
      let results = await producer.send((0..<200).map { record(topic, key: "\($0)", "\($0)") })
      #expect(results.compactMap { failure($0) }.isEmpty)
    }
    let spans = try await LogReader(client: kafka.client(), logger: TestKafka.quietLogger).spans(of: [topic])
    #expect(spans.reduce(0) { $0 + $1.end } == 200)
    kafka.cluster?.close()
  }

  /// librdkafka mistakes the acknowledgement of the second batch for one of the first, which the cluster refused.
  @Test func unacknowledgedRecordsFail() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    let again = try await kafka.withProducer(configure: { $0.client.properties["batch.num.messages"] = "1" }) {
      producer in
      try await producer.prepare(topics: [topic], timeout: .seconds(30))
      // Both batches are sent before the first is answered.
      try kafka.cluster?.setRoundTripTime(.seconds(2))
      try kafka.cluster?.inject([.notEnoughReplicas], into: .produce)
      let results = await producer.send([record(topic, "refused"), record(topic, "taken")])
      #expect(failure(results[0])?.code == .possiblyPersisted)
      #expect(try results[1].get() == RecordPosition(topic: topic, partition: 0, offset: 0))
      try kafka.cluster?.setRoundTripTime(.zero)
      // A second attempt succeeds.
      return try await producer.send(record(topic, "refused"))
    }
    #expect(again.offset == 1)
    kafka.cluster?.close()
  }

  @Test func permanentFaultIsReportedWithItsCode() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      _ = try await producer.send(record(topic, "fine"))
      try kafka.cluster?.inject([.topicAuthorizationFailed], into: .produce)
      let error = await #expect(throws: RDKafkaError.self) { try await producer.send(record(topic, "refused")) }
      #expect(error?.code == .unauthorized)
      #expect(error?.number == EmbeddedCluster.Fault.topicAuthorizationFailed.rawValue)
    }
  }

  @Test func unansweredRecordIsPossiblyPersisted() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer(configure: {
      $0.deliveryTimeout = .seconds(4)
      $0.requestTimeout = .seconds(1)
    }) { producer in
      try await producer.prepare(topics: [topic], timeout: .seconds(30))
      _ = try await producer.send(record(topic, "fine"))
      try kafka.cluster?.setRoundTripTime(.seconds(30))
      let error = await #expect(throws: RDKafkaError.self) { try await producer.send(record(topic, "unanswered")) }
      #expect(error?.code == .possiblyPersisted)
      #expect(error?.isRetriable == true)
    }
  }

  @Test func fatalErrorFailsRecordsInFlightAndNextSendSucceeds() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in
      _ = try await producer.send(record(topic, "before"))
      // No answer arrives during the test.
      try kafka.cluster?.setRoundTripTime(.seconds(30))
      async let interrupted = producer.send((0..<10).map { record(topic, "interrupted \($0)") })
      try await until { producer.recordsInFlight == 10 }
      producer.provokeFatalError()
      for result in await interrupted {
        let error = try #require(failure(result))
        #expect([.notPersisted, .possiblyPersisted].contains(error.code))
        #expect(error.isRetriable)
      }
      try await until { producer.handleReplacements > 0 }
      try kafka.cluster?.setRoundTripTime(.zero)
      _ = try await producer.send(record(topic, "after"))
      #expect(producer.handleReplacements == 1)
    }
  }
}
