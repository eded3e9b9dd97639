import EmbeddedKafka
import RDKafka
import Support
import Testing

/// The offsets that the group could not take are kept for the next owner of their partition.
@Suite(.timeLimit(.minutes(1)))
struct InterimOffsetsTests {
  @Test func refusedOffsetsAreKeptForTheNextOwner() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    let partition = TopicPartition(topic: topic, partition: 0)
    let (group, offset) = (kafka.group(), PartitionOffset(partition: partition, offset: 7, metadata: "done:9"))
    try await withMember(of: group, kafka, topic) { consumer in
      _ = try await consumer.committed([partition])
      try kafka.cluster?.inject([.rebalanceInProgress], into: .offsetCommit)
      let error = await #expect(throws: RDKafkaError.self) { try await consumer.commit([offset]) }
      #expect(error?.code == .rebalancing)
      #expect(try await consumer.committed([partition]) == [])
      #expect(try await consumer.kept([partition]) == [offset])
    }
    try await withMember(of: group, kafka, topic) { consumer in
      _ = try await consumer.committed([partition])
      #expect(try await consumer.kept([partition]) == [offset])
      // Kept offsets continue the committed ones. A group that was reset or mirrored has others.
      let base = PartitionOffset(partition: partition, offset: 3)
      try await consumer.commit([base])
      #expect(try await consumer.kept([partition]) == [])
      try kafka.cluster?.inject([.rebalanceInProgress], into: .offsetCommit)
      await #expect(throws: RDKafkaError.self) { try await consumer.commit([offset]) }
      // A reset to exactly the position that the kept offset continues reads its records again.
      try await consumer.commit([PartitionOffset(partition: partition, offset: 8)])
      try await consumer.commit([base])
      #expect(try await consumer.committed([partition]) == [base])
      #expect(try await consumer.kept([partition]) == [])
      // The caller learns that its metadata is too long to be kept.
      try kafka.cluster?.inject([.rebalanceInProgress, .offsetMetadataTooLarge], into: .offsetCommit)
      let error = await #expect(throws: RDKafkaError.self) { try await consumer.commit([offset]) }
      #expect(error?.code == .messageTooLarge)
    }
    // A member that could not ask for the group's positions when it was assigned asks before it keeps its offsets.
    try await withMember(of: group, kafka, topic) { consumer in
      try kafka.cluster?.inject([.rebalanceInProgress], into: .offsetCommit)
      let error = await #expect(throws: RDKafkaError.self) { try await consumer.commit([offset]) }
      #expect(error?.code == .rebalancing)
      #expect(try await consumer.kept([partition]) == [offset])
    }
    // A consumer that stores its offsets does not use the kept ones.
    try await kafka.withConsumer(topics: [topic], group: group) { consumer in
      _ = try await consumer.committed([partition])
      let kept = try await consumer.kept([partition])
      #expect(kept.isEmpty)
    }
    kafka.cluster?.close()
  }

  /// An outage can outlast the member's session: then the group refuses the commit when it could take it again.
  @Test func offsetsAreKeptThroughAnOutage() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    let partition = TopicPartition(topic: topic, partition: 0)
    let offset = PartitionOffset(partition: partition, offset: 7, metadata: "done:9")
    try await withMember(of: kafka.group(), kafka, topic, commitTimeout: .seconds(1)) { consumer in
      _ = try await consumer.committed([partition])
      try kafka.cluster?.setBroker(isUp: false)
      let error = await #expect(throws: RDKafkaError.self) { try await consumer.commit([offset]) }
      #expect(error?.code == .timedOut || error?.code == .unreachable)
      try kafka.cluster?.setBroker(isUp: true)
      var kept: [PartitionOffset] = []
      while kept != [offset] {
        // As long as the broker is being connected again.
        do throws(RDKafkaError) { kept = try await consumer.kept([partition]) } catch {
          #expect(error.isRetriable)
        }
      }
    }
    kafka.cluster?.close()
  }

  /// The group waits for all members, and for the session of a dead one. Meanwhile each commit is kept.
  @Test func offsetsAreKeptAgainAndAgainWhileMembersJoin() async throws {
    let kafka = try TestKafka.embedded()
    let topic = try await kafka.topic(partitions: 1)
    let partition = TopicPartition(topic: topic, partition: 0)
    let group = kafka.group()
    try await withMember(of: group, kafka, topic) { first in
      _ = try await first.committed([partition])
      try await kafka.withConsumer(topics: [topic], group: group, configure: { $0.autoCommitInterval = nil }) { _ in
        var (offset, committed): (Int64, Int64) = (0, 0)
        // Until the second member's request to join has come.
        while offset == committed {
          offset += 1
          do throws(RDKafkaError) {
            try await first.commit([PartitionOffset(partition: partition, offset: offset)])
            committed = offset
          } catch {
            #expect(error.code == .rebalancing)
          }
        }
        var kept = try await first.kept([partition])
        #expect(kept == [PartitionOffset(partition: partition, offset: offset)])
        let next = PartitionOffset(partition: partition, offset: offset + 1, metadata: "done:9")
        do throws(RDKafkaError) {
          // On a busy machine all members may have joined by now.
          try await first.commit([next])
        } catch {
          kept = try await first.kept([partition])
          #expect(kept == [next])
          let position = try await first.committed([partition]).map(\.offset)
          #expect(position == (committed > 0 ? [committed] : []))
        }
      }
    }
    kafka.cluster?.close()
  }

  /// Runs a member that commits by itself, from its first assignment on.
  private func withMember(
    of group: String, _ kafka: TestKafka, _ topic: String, commitTimeout: Duration? = nil,
    _ body: (Consumer) async throws -> Void
  ) async throws {
    try await kafka.withConsumer(
      topics: [topic], group: group,
      configure: { configuration in
        configuration.autoCommitInterval = nil
        if let commitTimeout { configuration.commitTimeout = commitTimeout }
      }
    ) { consumer in
      var events = consumer.events.makeAsyncIterator()
      _ = try await events.assignment()
      try await body(consumer)
    }
  }
}
