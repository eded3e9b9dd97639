import EmbeddedKafka
import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ConsumerTests {
  /// Records, headers, credit, lag, stored offsets and committed metadata in one group, because forming a group takes
  /// seconds.
  @Test func producedRecordsAreReadWithinCreditAndResumedAfterRestart() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let group = kafka.group()
    let header = RecordHeader(name: "content-type", text: "text/plain")
    try await kafka.withProducer { producer in
      var records = (0..<30).map { record(topic, key: "k\($0)", "v\($0)", headers: [header]) }
      records[7].headers = [header, RecordHeader(name: "empty", value: [])]
      records[8].headers = []
      records[9].key = nil
      #expect(await producer.send(records).compactMap { failure($0) }.isEmpty)
    }

    // No automatic commit during the test: stored offsets are committed at the end.
    try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.autoCommitInterval = .seconds(60) }) {
      consumer in
      var read: [ConsumedRecord] = []
      var granted = 4
      consumer.grant(records: granted)
      for await event in consumer.events {
        if case .assigned(let partitions, let rebalance) = event {
          #expect(partitions == [TopicPartition(topic: topic, partition: 0)])
          rebalance.complete()
        }
        guard case .records(let records) = event else { continue }
        read += records
        #expect(read.count <= granted, "more records than credit")
        if read.count == 4 {
          granted = 10
          consumer.grant(records: 6)
        }
        if read.count == 10 { break }
      }
      #expect(read.map(\.offset) == Array(0..<10))
      #expect(read.map(\.text) == (0..<10).map { "v\($0)" })
      #expect(read[3].key.map { Array($0) } == Array("k3".utf8))
      #expect(read[9].key == nil)
      #expect(read[6].headers == [header])
      #expect(read[7].headers == [header, RecordHeader(name: "empty", value: [])])
      #expect(read[8].headers.isEmpty)

      let partition = TopicPartition(topic: topic, partition: 0)
      try consumer.store([PartitionOffset(partition: partition, offset: 10)])
      #expect(consumer.lag() == [partition: 20])
      #expect(try await consumer.firstOffsets(of: [partition]) == [PartitionOffset(partition: partition, offset: 0)])
      try await consumer.commit([PartitionOffset(partition: partition, offset: 8, metadata: "done:9,11")])
      #expect(
        try await consumer.committed([partition]) == [
          PartitionOffset(partition: partition, offset: 8, metadata: "done:9,11")
        ])
      let other = TopicPartition(topic: topic, partition: 3)
      let error = #expect(throws: RDKafkaError.self) {
        try consumer.store([PartitionOffset(partition: other, offset: 1)])
      }
      #expect(error?.code == .notAssigned)
      try consumer.store([PartitionOffset(partition: partition, offset: 12)])
    }

    try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.readsHeaders = false }) { consumer in
      consumer.grant(records: 1)
      for await case .records(let records) in consumer.events {
        #expect(records.map(\.offset) == [12])
        #expect(records[0].headers.isEmpty)
        break
      }
    }
  }

  @Test func pausedTopicsWaitWhileOthersAreRead() async throws {
    let kafka = try TestKafka.shared()
    let (free, held) = (try await kafka.topic(partitions: 2), try await kafka.topic(partitions: 2))
    try await kafka.withProducer { producer in
      try await kafka.withConsumer(
        topics: [free, held], group: kafka.group(), configure: { $0.pausableTopics = [held] }
      ) { consumer in
        consumer.setPaused(true)
        consumer.grant(records: 1000)
        var events = consumer.events.makeAsyncIterator()
        var read: [String: [String]] = [:]
        func readOn(_ topic: String, to count: Int) async {
          while read[topic, default: []].count < count, let event = await events.next(isolation: #isolation) {
            if case .assigned(_, let rebalance) = event { rebalance.complete() }
            if case .records(let records) = event {
              for record in records { read[record.topic, default: []].append(record.text) }
            }
          }
        }
        var written: [String] = []
        for round in 1...3 {
          let texts = (0..<10).map { "\(round).\($0)" }
          written += texts
          for topic in [held, free] {
            let results = await producer.send(texts.map { record(topic, $0, partition: 1) })
            #expect(results.compactMap { failure($0) }.isEmpty)
          }
          await readOn(free, to: 10 * round)
        }
        #expect(read == [free: written])
        consumer.setPaused(false)
        await readOn(held, to: 30)
        #expect(read == [free: written, held: written])
      }
    }
  }

  @Test func partitionWithoutCreditDelaysNoOther() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 2)
    let texts = (0..<25).map(String.init)
    try await kafka.withProducer { producer in
      for partition in [0, 1] as [Int32] {
        let results = await producer.send(texts.map { record(topic, $0, partition: partition) })
        #expect(results.compactMap { failure($0) }.isEmpty)
      }
      try await kafka.withConsumer(topics: [topic], group: kafka.group(), configure: { $0.partitionCredit = 10 }) {
        consumer in
        var events = consumer.events.makeAsyncIterator()
        var read: [Int32: [String]] = [:]
        /// Reads until a partition has that many records; grants as much as is read of the partition `granted`.
        func readOn(_ count: Int, of partition: Int32, granting granted: Int32? = nil) async {
          while read[partition, default: []].count < count, let event = await events.next(isolation: #isolation) {
            if case .assigned(_, let rebalance) = event { rebalance.complete() }
            guard case .records(let records) = event else { continue }
            for record in records { read[record.partition, default: []].append(record.text) }
            let spent = records.filter { $0.partition == granted }.count
            if let granted { consumer.grant(records: spent, of: TopicPartition(topic: topic, partition: granted)) }
          }
        }
        await readOn(25, of: 1, granting: 1)
        await readOn(10, of: 0)
        // Partition 0 has no credit, and partition 1 goes on.
        #expect(await producer.send(texts.map { record(topic, $0, partition: 1) }).compactMap { failure($0) }.isEmpty)
        await readOn(50, of: 1, granting: 1)
        #expect(read == [0: Array(texts.prefix(10)), 1: texts + texts])
        consumer.grant(records: 15, of: TopicPartition(topic: topic, partition: 0))
        await readOn(25, of: 0)
        #expect(read[0] == texts)
      }
    }
  }

  @Test func rebalanceIsAnnouncedBeforeItTakesEffect() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 4)
    let group = kafka.group()
    let partitions = Set((0..<4).map { TopicPartition(topic: topic, partition: $0) })
    try await kafka.withConsumer(topics: [topic], group: group) { first in
      var events = first.events.makeAsyncIterator()
      var owned = try await events.assignment()
      #expect(owned == partitions)

      let secondOwned = try await kafka.withConsumer(topics: [topic], group: group) { second in
        async let taken = { @Sendable () async throws -> Set<TopicPartition> in
          var events = second.events.makeAsyncIterator()
          return try await events.assignment()
        }()
        // At the announcement the first member still owns all partitions and can store its offsets.
        guard case .revoked(let revoked, let rebalance)? = await events.change() else {
          throw Unexpected(what: "no revocation")
        }
        #expect(revoked.count == 2)
        try first.store(revoked.map { PartitionOffset(partition: $0, offset: 0) })
        rebalance.complete()
        owned.subtract(revoked)
        let secondOwned = try await taken
        #expect(secondOwned == Set(revoked))
        return secondOwned
      }
      // The second member has left: its partitions come back.
      var returned: Set<TopicPartition> = []
      while returned != secondOwned { returned.formUnion(try await events.assignment()) }
      #expect(owned.union(returned) == partitions)
    }
  }

  @Test func unansweredRebalanceTakesEffectAtItsDeadline() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    try await kafka.withProducer { producer in _ = try await producer.send(record(topic, "x")) }
    try await kafka.withConsumer(
      topics: [topic], group: kafka.group(), configure: { $0.rebalanceDeadline = .milliseconds(50) }
    ) { consumer in
      consumer.grant(records: 1)
      var held: [Rebalance] = []
      for await event in consumer.events {
        if case .assigned(_, let rebalance) = event { held.append(rebalance) }
        if case .records = event { break }
      }
      #expect(held.count == 1)
    }
  }

  /// A member with nothing left to settle gives its partitions back at once; one that never answers, at its deadline.
  ///
  /// The embedded cluster would refuse commits of the second member once the first has joined again. On an overloaded
  /// machine this may still happen; then the next owner finds the interim offsets.
  @Test func fastMemberLeavesASlowOneTimeToCommit() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 6)
    let group = kafka.group()
    try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.autoCommitInterval = nil }) { quick in
      try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.autoCommitInterval = nil }) { slow in
        let (counts, count) = AsyncStream.makeStream(of: (isQuick: Bool, owned: Int).self)
        let (revocations, revocation) = AsyncStream.makeStream(of: [TopicPartition].self)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
          for (consumer, isQuick) in [(quick, true), (slow, false)] {
            tasks.addTask {
              var owned: Set<TopicPartition> = []
              var unanswered: [Rebalance] = []
              for await event in consumer.events {
                switch event {
                case .assigned(let partitions, let rebalance):
                  rebalance.complete()
                  owned.formUnion(partitions)
                  count.yield((isQuick, owned.count))
                case .revoked(let partitions, let rebalance) where !isQuick && owned.count == 3:
                  unanswered.append(rebalance)
                  do throws(RDKafkaError) {
                    try await consumer.commit(partitions.map { PartitionOffset(partition: $0, offset: 1) })
                  } catch {
                    #expect(error.code == .rebalancing)
                  }
                  revocation.yield(partitions)
                case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
                  rebalance.complete()
                  owned.subtract(partitions)
                  count.yield((isQuick, owned.count))
                case .records, .failed: break
                }
              }
            }
          }
          var (quickOwned, slowOwned) = (0, 0)
          for await (isQuick, owned) in counts {
            if isQuick { quickOwned = owned } else { slowOwned = owned }
            if quickOwned == 3, slowOwned == 3 { break }
          }
          try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.autoCommitInterval = nil }) {
            third in
            var events = third.events.makeAsyncIterator()
            var owned: Set<TopicPartition> = []
            while owned.count < 2 { owned.formUnion(try await events.assignment()) }
            var iterator = revocations.makeAsyncIterator()
            let revoked = try #require(await iterator.next(isolation: #isolation))
            #expect(!owned.isDisjoint(with: revoked))
            let positions = try await third.committed(revoked) + third.kept(revoked)
            #expect(Set(positions.filter { $0.offset == 1 }.map(\.partition)) == Set(revoked))
          }
          tasks.cancelAll()
        }
      }
    }
  }

  @Test func closingAnnouncesTheLastRevocationAndEndsTheStream() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 2)
    try await kafka.withConsumer(topics: [topic], group: kafka.group()) { consumer in
      var events = consumer.events.makeAsyncIterator()
      let owned = try await events.assignment()
      async let closed: Void = consumer.close()
      guard case .revoked(let revoked, let rebalance)? = await events.change() else {
        throw Unexpected(what: "no revocation")
      }
      #expect(Set(revoked) == owned)
      try consumer.store([PartitionOffset(partition: revoked[0], offset: 0)])
      rebalance.complete()
      #expect(await events.next(isolation: #isolation) == nil)
      await closed
      let error = #expect(throws: RDKafkaError.self) {
        try consumer.store([PartitionOffset(partition: revoked[0], offset: 0)])
      }
      #expect(error?.code == .closed)
    }
  }

  @Test func consumerThatNeverRanCanBeClosed() async throws {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
    let consumer = try Consumer(
      configuration: ConsumerConfiguration(client: client, groupID: "g", topics: ["t"]), logger: TestKafka.quietLogger)
    await consumer.close()
    for await _ in consumer.events { Issue.record("an event of a closed consumer") }
    await consumer.run()
  }

  @Test func consumerWithoutBrokerCanBeClosed() async throws {
    let client = KafkaClientConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test", profile: .embedded)
    var configuration = ConsumerConfiguration(client: client, groupID: "g", topics: ["t"])
    configuration.closeTimeout = .milliseconds(500)
    configuration.commitTimeout = .milliseconds(300)
    let consumer = try Consumer(configuration: configuration, logger: TestKafka.quietLogger)
    async let run: Void = consumer.run()
    let partition = TopicPartition(topic: "t", partition: 0)
    await #expect(throws: RDKafkaError.self) {
      try await consumer.commit([PartitionOffset(partition: partition, offset: 1)])
    }
    await consumer.close()
    await run
  }

  /// librdkafka's own request for both ends ignores its time limit while no broker can be reached.
  @Test func partitionEndsAreRequestedWithALimit() async throws {
    let kafka = try TestKafka.embedded()
    let partition = TopicPartition(topic: try await kafka.topic(partitions: 1), partition: 0)
    var configuration = ConsumerConfiguration(client: kafka.client(), groupID: kafka.group(), topics: [partition.topic])
    (configuration.commitTimeout, configuration.closeTimeout) = (.seconds(2), .milliseconds(500))
    let consumer = try Consumer(configuration: configuration, logger: TestKafka.quietLogger)
    async let run: Void = consumer.run()
    #expect(try await consumer.firstOffsets(of: [partition]) == [PartitionOffset(partition: partition, offset: 0)])
    try kafka.cluster?.setBroker(isUp: false)
    await #expect(throws: RDKafkaError.self) { try await consumer.firstOffsets(of: [partition]) }
    await consumer.close()
    await run
    kafka.cluster?.close()
  }

  /// librdkafka before 2.3 ends the process when it destroys such a member.
  @Test func consumerWithoutItsFirstAssignmentCanBeClosed() async throws {
    let kafka = try TestKafka.embedded()
    try kafka.cluster?.inject([EmbeddedCluster.Fault](repeating: .rebalanceInProgress, count: 100), into: .syncGroup)
    let recorder = LogRecorder()
    do {
      var configuration = ConsumerConfiguration(
        client: kafka.client(), groupID: kafka.group(), topics: [try await kafka.topic(partitions: 1)])
      configuration.client.properties["debug"] = "cgrp"
      let consumer = try Consumer(configuration: configuration, logger: recorder.logger)
      async let run: Void = consumer.run()
      try await until { recorder.text.contains("without an assignment: SyncGroup error") }
      await consumer.close()
      await run
    }
    kafka.cluster?.close()
  }
}
