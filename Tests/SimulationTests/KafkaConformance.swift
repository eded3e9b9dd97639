import RDKafka
import Testing
import Worker

/// A cluster, real or simulated.
struct ClusterUnderTest: Sendable {
  static let partitions: Int32 = 4

  /// What not every cluster can do.
  struct Abilities: Sendable {
    /// Members with a name that survives restarts, and limits of metadata: not the embedded cluster.
    var hasStaticMembers = true
    /// Deletes the oldest records of a partition, which holds `numbers`: not a real cluster within the time of a test.
    var deletesRecords: (@Sendable (TopicPartition) async throws -> Void)?
  }

  /// Makes a topic.
  let topic: @Sendable () async throws -> String
  /// The configuration of a member of a new group that reads a topic, and commits by itself.
  let configuration: @Sendable (_ topic: String) -> ConsumerConfiguration
  let consumer: @Sendable (ConsumerConfiguration) throws -> any RecordSource
  let sink: any RecordSink
  var abilities = Abilities()
}

/// What the worker relies on when it uses Kafka. The model must do what the real client and a real cluster do.
///
/// All scripts run at the same time, each with a topic and a group of its own: most of their time is rebalances.
struct KafkaConformance {
  let cluster: ClusterUnderTest

  func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { scripts in
      scripts.addTask { try await recordsAreReadInOrderFromTheCommittedPosition(try await Scene(cluster)) }
      scripts.addTask { try await membersShareThePartitions(try await Scene(cluster)) }
      scripts.addTask { try await positionBeyondTheEndBeginsAnew(try await Scene(cluster)) }
      scripts.addTask { try await positionsOfOthersStay(try await Scene(cluster)) }
      scripts.addTask { try await refusedOffsetsContinueTheirBase(try await Scene(cluster)) }
      if let delete = cluster.abilities.deletesRecords {
        scripts.addTask { try await deletedRecordsAreLeftOut(try await Scene(cluster), delete) }
      }
      if cluster.abilities.hasStaticMembers {
        scripts.addTask { try await staticMemberReturnsWithoutARebalance(try await Scene(cluster)) }
        scripts.addTask { try await secondStaticMemberFencesTheFirst(try await Scene(cluster)) }
        scripts.addTask { try await tooLongMetadataIsRefused(try await Scene(cluster)) }
      }
      try await scripts.waitForAll()
    }
  }

  /// A member reads everything once, in the order of each partition; the next one begins at the committed positions, and
  /// finds their metadata.
  private func recordsAreReadInOrderFromTheCommittedPosition(_ scene: Scene) async throws {
    try await scene.produce(0..<200)
    try await scene.withMember { member in
      await member.wait { $0.records.count == 200 }
      let records = member.seen.records
      #expect(Set(records.map(\.number)) == Set(0..<200))
      for (partition, records) in Dictionary(grouping: records, by: \.partition) {
        let offsets = records.map(\.offset)
        #expect(offsets == Array((offsets.first ?? 0)..<(offsets.first ?? 0) + Int64(offsets.count)), "\(partition)")
      }
      for (key, records) in Dictionary(grouping: records, by: { $0.number % 10 }) {
        #expect(records.map(\.number) == records.map(\.number).sorted(), "key \(key)")
        #expect(Set(records.map(\.partition)).count == 1, "key \(key)")
      }
      let positions = member.seen.ends.map { partition, end in
        PartitionOffset(partition: partition, offset: end, metadata: "end \(end)")
      }
      try await member.source.commit(positions)
      let committed = try await member.source.committed(Array(member.seen.owned))
      #expect(Set(committed) == Set(positions))
      await member.source.close()
      #expect(member.seen.owned.isEmpty)
      let error = await #expect(throws: RDKafkaError.self) { try await member.source.commit(positions) }
      #expect(error?.code == .closed)
    }
    try await scene.produce(200..<250)
    try await scene.withMember { member in
      await member.wait { $0.records.count >= 50 }
      #expect(Set(member.seen.records.map(\.number)) == Set(200..<250))
    }
  }

  /// Two members have equal shares, and no partition at the same time; when one leaves, the other has all.
  private func membersShareThePartitions(_ scene: Scene) async throws {
    try await scene.withMember { first in
      await first.wait { $0.owned == scene.all }
      try await scene.withMember { second in
        await second.wait { $0.owned.count == scene.all.count / 2 }
        #expect(first.seen.owned.union(second.seen.owned) == scene.all)
        #expect(first.seen.owned.isDisjoint(with: second.seen.owned))
      }
      await first.wait { $0.owned == scene.all }
    }
  }

  /// A member does not commit what it has given back.
  private func positionsOfOthersStay(_ scene: Scene) async throws {
    try await scene.withMember { first in
      await first.wait { $0.owned == scene.all }
      try await scene.withMember { second in
        await second.wait { $0.owned.count == scene.all.count / 2 }
        // The first has joined again, too: a member that joins cannot commit.
        await first.wait { $0.assignments > 1 }
        try await first.source.commit(scene.all.map { PartitionOffset(partition: $0, offset: 7) })
        let committed = try await second.source.committed(Array(scene.all))
        #expect(Set(committed.map(\.partition)) == scene.all.subtracting(second.seen.owned))
      }
    }
  }

  /// A log that has lost its end, or was created again, is read from its beginning.
  private func positionBeyondTheEndBeginsAnew(_ scene: Scene) async throws {
    try await scene.produce(0..<40)
    try await scene.withMember { member in
      await member.wait { $0.owned == scene.all }
      try await member.source.commit(scene.all.map { PartitionOffset(partition: $0, offset: 1_000) })
    }
    try await scene.withMember { member in
      await member.wait { $0.records.count >= 40 }
      #expect(Set(member.seen.records.map(\.number)) == Set(0..<40))
    }
  }

  /// No offset is kept at first; those that are kept later continue the commit to the group.
  private func refusedOffsetsContinueTheirBase(_ scene: Scene) async throws {
    try await scene.withMember { member in
      await member.wait { $0.owned == scene.all }
      let all = Array(scene.all)
      #expect(try await member.source.committed(all) == [])
      #expect(try await member.source.kept(all) == [])
      let position = PartitionOffset(partition: all[0], offset: 0, metadata: "m")
      try await member.source.commit([position])
      #expect(try await member.source.committed(all) == [position])
      #expect(try await member.source.kept(all) == [])
    }
  }

  /// A member whose position was deleted goes on at the beginning of the log.
  private func deletedRecordsAreLeftOut(
    _ scene: Scene, _ delete: @Sendable (TopicPartition) async throws -> Void
  ) async throws {
    let partition = TopicPartition(topic: scene.topic, partition: 0)
    try await scene.produce(0..<100, to: partition.partition)
    try await scene.withMember { member in
      await member.wait { $0.owned == scene.all }
      try await member.source.commit([PartitionOffset(partition: partition, offset: 0)])
    }
    try await delete(partition)
    try await scene.withMember { member in
      await member.wait { !$0.records.isEmpty }
      #expect(member.seen.records.first.map { $0.partition == partition && $0.offset > 0 } == true)
    }
  }

  private func staticMemberReturnsWithoutARebalance(_ scene: Scene) async throws {
    try await scene.withMember(named: "one") { one in
      try await scene.withMember(named: "two") { two in
        await one.wait { $0.owned.count == scene.all.count / 2 }
        await two.wait { $0.owned.count == scene.all.count / 2 }
        let (owned, changes) = (one.seen.owned, two.seen.changes)
        await one.source.close()
        try await scene.withMember(named: "one") { again in
          await again.wait { $0.owned == owned }
          #expect(two.seen.changes == changes)
          let partition = try #require(owned.first)
          let position = PartitionOffset(partition: partition, offset: 0, metadata: "back")
          try await again.source.commit([position])
          #expect(try await two.source.committed([partition]) == [position])
        }
      }
    }
  }

  private func secondStaticMemberFencesTheFirst(_ scene: Scene) async throws {
    try await scene.withMember(named: "one") { first in
      await first.wait { $0.owned == scene.all }
      try await scene.withMember(named: "one") { second in
        await second.wait { $0.owned == scene.all }
        await first.wait { $0.hasEnded }
        // It ends without another word about its partitions.
        #expect(first.seen.owned == scene.all)
        #expect(first.seen.failure?.code == .fatal)
        #expect(first.seen.failure?.isFatal == true)
        let position = PartitionOffset(partition: try #require(scene.all.first), offset: 0)
        await #expect(throws: RDKafkaError.self) { try await first.source.commit([position]) }
        try await second.source.commit([position])
        #expect(second.seen.failure == nil)
      }
    }
  }

  private func tooLongMetadataIsRefused(_ scene: Scene) async throws {
    try await scene.withMember { member in
      await member.wait { $0.owned == scene.all }
      let partition = try #require(scene.all.first)
      let small = PartitionOffset(partition: partition, offset: 0, metadata: "small")
      try await member.source.commit([small])
      let long = PartitionOffset(partition: partition, offset: 1, metadata: String(repeating: "x", count: 30_000))
      let error = await #expect(throws: RDKafkaError.self) { try await member.source.commit([long]) }
      #expect(error?.code == .messageTooLarge)
      #expect(try await member.source.committed([partition]) == [small])
    }
  }
}

/// A topic and a group of one script.
private struct Scene: Sendable {
  let topic: String
  private let cluster: ClusterUnderTest
  private let configuration: ConsumerConfiguration

  init(_ cluster: ClusterUnderTest) async throws {
    self.cluster = cluster
    topic = try await cluster.topic()
    configuration = cluster.configuration(topic)
  }

  var all: Set<TopicPartition> {
    Set((0..<ClusterUnderTest.partitions).map { TopicPartition(topic: topic, partition: $0) })
  }

  /// Runs a member until the end of `body`.
  func withMember(named name: String? = nil, _ body: (ClusterMember) async throws -> Void) async throws {
    var configuration = configuration
    configuration.instanceID = name
    let member = ClusterMember(try cluster.consumer(configuration))
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      member.start(in: &tasks)
      do { try await body(member) } catch {
        await member.source.close()
        throw error
      }
      await member.source.close()
    }
  }

  /// Produces records with these numbers, to one partition or by their keys.
  func produce(_ numbers: Range<Int>, to partition: Int32? = nil) async throws {
    let records = numbers.map { number in
      ProducerRecord(
        topic: topic, partition: partition, key: Array("key\(number % 10)".utf8), value: Array("\(number)".utf8))
    }
    let results = await withCheckedContinuation { continuation in
      cluster.sink.submit(records) { continuation.resume(returning: $0) }
    }
    for result in results { _ = try result.get() }
  }
}
