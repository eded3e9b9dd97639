import Testing

@testable import RDKafka

struct CompanionPartitionsTests {
  private let start = ContinuousClock.now
  private var state = CompanionPartitions(leadingTopic: "sends", companionTopic: "segments")

  private func sends(_ numbers: Int32...) -> [TopicPartition] {
    numbers.map { TopicPartition(topic: "sends", partition: $0) }
  }

  private func segments(_ numbers: Int32...) -> [TopicPartition] {
    numbers.map { TopicPartition(topic: "segments", partition: $0) }
  }

  /// The group assigns partitions, and the cluster is looked at.
  private mutating func assign(
    _ partitions: [TopicPartition], leading: Int32 = 8, companion: Int32 = 8
  ) {
    state.own(partitions)
    look(leading: leading, companion: companion)
  }

  private mutating func look(leading: Int32 = 8, companion: Int32 = 8, after delay: Duration = .zero) {
    begins(after: delay)
    state.endLook(.init(leading: leading, companion: companion), at: start + delay)
  }

  /// Checks whether a look begins.
  private mutating func begins(_ expected: Bool = true, after delay: Duration = .zero) {
    let begins = state.beginLook(at: start + delay)
    #expect(begins == expected)
  }

  /// Checks and performs the next change.
  private mutating func performs(_ expected: CompanionPartitions.Change) {
    let change = state.nextChange()
    #expect(change == expected)
    if let change { state.apply(change) }
  }

  @Test mutating func partitionsOfTheSameNumbersAreTakenAndGivenBackTogether() {
    #expect(state.nextChange() == nil)
    assign(sends(1, 4))
    performs(.init(isAssignment: true, partitions: segments(1, 4)))
    #expect(state.nextChange() == nil)
    // At the announcement of a revocation.
    #expect(state.companions(of: sends(4, 5)) == segments(4))
    state.disown(sends(4) + segments(4))
    #expect(state.held == Set(segments(1)))
    #expect(state.nextChange() == nil)
  }

  @Test(arguments: [
    (leading: 4, companion: 2, numbers: [1]), (leading: 4, companion: 4, numbers: [1, 3]),
    (leading: 4, companion: 10, numbers: [1, 3, 5, 7, 9]),
  ])
  mutating func everyCompanionPartitionHasOneReader(leading: Int32, companion: Int32, numbers: [Int32]) {
    assign(sends(1, 3), leading: leading, companion: companion)
    performs(.init(isAssignment: true, partitions: numbers.map { TopicPartition(topic: "segments", partition: $0) }))
    #expect(state.companions(of: sends(1)).allSatisfy { $0.partition % leading == 1 })
  }

  @Test mutating func partitionsAssignedLaterNeedNoFurtherLook() {
    assign(sends(0))
    performs(.init(isAssignment: true, partitions: segments(0)))
    state.own(sends(3))
    begins(false)
    performs(.init(isAssignment: true, partitions: segments(3)))
  }

  @Test mutating func unansweredLooksAreRepeated() {
    state.own(sends(0))
    begins()
    begins(false)
    state.endLook(nil, at: start)
    begins(false)
    #expect(state.nextChange() == nil)
    look(after: .seconds(1))
    #expect(state.nextChange() != nil)
  }

  @Test mutating func addedPartitionsAreFoundWithoutAChangeOfTheGroup() {
    assign(sends(0, 1), companion: 1)
    performs(.init(isAssignment: true, partitions: segments(0)))
    begins(false, after: .seconds(59))
    look(companion: 2, after: .seconds(60))
    performs(.init(isAssignment: true, partitions: segments(1)))
  }

  @Test mutating func memberWithoutPartitionsAsksNothing() {
    begins(false)
  }

  @Test func staticMemberWithCompanionsHasItsOwnName() {
    let client = KafkaClientConfiguration(bootstrapServers: "localhost:1", clientID: "test")
    var configuration = ConsumerConfiguration(client: client, groupID: "group", topics: ["sends"])
    configuration.instanceID = "worker-0"
    func name() -> String? { configuration.properties.required.last { $0.key == "group.instance.id" }?.value }
    #expect(name() == "worker-0")
    configuration.companionTopic = "segments"
    #expect(name() == "worker-0.2")
  }
}
