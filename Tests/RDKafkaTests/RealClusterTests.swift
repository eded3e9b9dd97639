import EmbeddedKafka
import RDKafka
import Support
import Synchronization
import Testing

/// Features that the embedded cluster lacks: static membership and fencing, limits of metadata, transactions and the
/// gaps that they leave in the log, topics that are created on request.
@Suite(
  .enabled(if: TestKafka.realServers != nil, "needs a real cluster: FANFARE_TEST_KAFKA=host:port"),
  .timeLimit(.minutes(3)))
struct RealClusterTests {
  @Test func topicsAreCreated() async throws {
    let kafka = try TestKafka.shared()
    let topic = "\(kafka.group())-created"
    let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
    let specification = TopicSpecification(
      name: topic, partitions: 2, configuration: ["retention.ms": "60000", "cleanup.policy": "delete"])
    #expect(try await administrator.createTopics([specification]).map(\.outcome) == [.created])
    #expect(try await administrator.createTopics([specification]).map(\.outcome) == [.existed(partitions: 2)])
    let refused = TopicSpecification(name: "\(topic)-refused", partitions: 1, configuration: ["retention.ms": "soon"])
    guard case .failed? = try await administrator.createTopics([refused]).first?.outcome else {
      Issue.record("a setting that means nothing was taken")
      return
    }
  }

  @Test func topicsAreDeleted() async throws {
    let kafka = try TestKafka.shared()
    let topics = [try await kafka.topic(), try await kafka.topic()]
    let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
    try await administrator.deleteTopics(topics + ["\(topics[0])-never-made"])
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    while try await !Set(reader.topics()).isDisjoint(with: topics) { await Task.yield() }
    // No topic is left to delete.
    try await administrator.deleteTopics(topics)
  }

  @Test func staticMemberReturnsWithoutARebalance() async throws {
    try await withMembers(named: ["one", "two"]) { members, start in
      let (one, two) = (members[0], members[1])
      let (owned, changes) = (one.owned, two.changes)
      await one.consumer.close()
      let again = try start("one")
      try await until { again.owned == owned }
      #expect(two.changes == changes)
      // The member works after its return.
      let partition = try #require(owned.first)
      try await again.consumer.commit([PartitionOffset(partition: partition, offset: 0, metadata: "back")])
      #expect(try await two.consumer.committed([partition]).map(\.metadata) == ["back"])
    }
  }

  @Test func absentStaticMemberIsReplacedAfterItsSession() async throws {
    try await withMembers(named: ["one", "two"]) { members, _ in
      let all = members[0].owned.union(members[1].owned)
      await members[0].consumer.close()
      try await until { members[1].owned == all }
    }
  }

  @Test func dynamicMemberIsReplacedAtOnceWhenItLeaves() async throws {
    // Longer than the time limit of the test.
    try await withMembers(named: [nil, nil], session: .seconds(300)) { members, _ in
      let all = members[0].owned.union(members[1].owned)
      await members[0].consumer.close()
      try await until { members[1].owned == all }
    }
  }

  /// Two workers have the same name by a configuration mistake: the older one ends with an error instead of repeating
  /// every push.
  @Test func secondStaticMemberFencesTheFirst() async throws {
    try await withMembers(named: ["one"]) { members, start in
      let all = members[0].owned
      let second = try start("one")
      try await until { members[0].hasEnded && second.owned == all }
      let failure = try #require(members[0].failure)
      #expect(failure.isFatal)
      #expect(failure.code == .fatal)
      let partition = try #require(all.first)
      let error = await #expect(throws: RDKafkaError.self) {
        try await members[0].consumer.commit([PartitionOffset(partition: partition, offset: 1)])
      }
      #expect(error?.code == .closed)
      #expect(second.failure == nil)
    }
  }

  @Test func tooLargeMetadataIsRefusedAndOffsetIsUnchanged() async throws {
    try await withMembers(named: [nil]) { members, _ in
      let (consumer, partition) = (members[0].consumer, try #require(members[0].owned.first))
      let small = PartitionOffset(partition: partition, offset: 1, metadata: "small")
      try await consumer.commit([small])
      let large = PartitionOffset(partition: partition, offset: 2, metadata: String(repeating: "x", count: 30_000))
      let error = await #expect(throws: RDKafkaError.self) { try await consumer.commit([large]) }
      #expect(error?.code == .messageTooLarge)
      #expect(try await consumer.committed([partition]) == [small])
    }
  }

  /// A backend that produces to the sends topic itself may use transactions. Aborted records are not read, and the
  /// control records that transactions leave in the log stop neither a consumer nor a scan to the end.
  @Test func onlyCommittedRecordsOfTransactionsAreRead() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let left = try await Transactions.leaveOneOpen(in: topic, of: kafka)
    // After two records and the control record of their transaction.
    #expect(left.offsets == [3])
    try await Transactions.replaceProducer(in: topic, of: kafka)
    await #expect(throws: RDKafkaError.self) { try await left.producer.commit() }

    let texts = ["first", "second", "third"]
    try await kafka.withConsumer(topics: [topic], group: kafka.group()) { consumer in
      consumer.grant(records: 10)
      var read: [ConsumedRecord] = []
      for await event in consumer.events {
        if case .assigned(_, let rebalance) = event { rebalance.complete() }
        if case .records(let records) = event { read += records }
        if read.count >= texts.count { break }
      }
      #expect(read.map(\.text) == texts)
      #expect(read.map(\.offset).last ?? 0 > 3)
    }
    let reader = try LogReader(client: kafka.client("test-log"), logger: TestKafka.quietLogger)
    let scan = try reader.scan(try await reader.spans(of: [topic]))
    var scanned: [String] = []
    while let records = try await scan.next() { scanned += records.map(\.text) }
    #expect(scanned == texts)
  }

  /// A member of a group that answers every rebalance at once.
  private final class Member: Sendable {
    private struct State {
      var owned: Set<TopicPartition> = []
      var changes = 0
      var failure: RDKafkaError?
      var hasEnded = false
    }

    let consumer: Consumer
    private let state = Mutex(State())

    init(_ configuration: ConsumerConfiguration) throws {
      consumer = try Consumer(configuration: configuration, logger: TestKafka.quietLogger)
    }

    var owned: Set<TopicPartition> { state.withLock { $0.owned } }
    /// Number of assignments and revocations.
    var changes: Int { state.withLock { $0.changes } }
    /// The first error that ended it.
    var failure: RDKafkaError? { state.withLock { $0.failure } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func run() async {
      async let running: Void = consumer.run()
      for await event in consumer.events {
        state.withLock { state in
          switch event {
          case .assigned(let partitions, let rebalance):
            rebalance.complete()
            state.owned.formUnion(partitions)
            if !partitions.isEmpty { state.changes += 1 }
          case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
            rebalance.complete()
            state.owned.subtract(partitions)
            if !partitions.isEmpty { state.changes += 1 }
          case .failed(let error): if error.isFatal, state.failure == nil { state.failure = error }
          case .records: break
          }
        }
      }
      await running
      state.withLock { $0.hasEnded = true }
    }
  }

  /// Forms a group on the four partitions of a topic, with an equal share for each member; `start` adds a member.
  ///
  /// Ends all members.
  private func withMembers(
    named names: [String?], session: Duration = .seconds(10),
    _ body: ([Member], _ start: (String?) throws -> Member) async throws -> Void
  ) async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 4)
    let group = kafka.group()
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      func start(_ name: String?) throws -> Member {
        var configuration = ConsumerConfiguration(client: kafka.client("test-member"), groupID: group, topics: [topic])
        configuration.sessionTimeout = session
        configuration.instanceID = name
        let member = try Member(configuration)
        tasks.addTask { await member.run() }
        return member
      }
      let members = try names.map { try start($0) }
      try await until { members.allSatisfy { $0.owned.count == 4 / members.count } }
      try await body(members, start)
      // Ends every consumer.
      tasks.cancelAll()
    }
  }
}
