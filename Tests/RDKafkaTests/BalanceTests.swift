import RDKafka
import Support
import Synchronization
import Testing

/// Members of a group with a companion topic join, leave, die and return, one after another. After each change all have
/// equal shares of both topics, and at no time do two of them own the same partition.
@Suite(.timeLimit(.minutes(5))) struct BalanceTests {
  private static let partitions: Int32 = 12

  @Test func membersHaveEqualSharesAfterEachChange() async throws {
    let members = try await Members(partitions: Self.partitions)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for count in 1...6 {
        members.start(dies: count == 4, in: &tasks)
        try await members.settle()
      }
      // 4 dies, 2 leaves, and both return.
      for member in [4, 2] {
        await members.stop(member)
        try await members.settle()
      }
      for _ in 0..<2 {
        members.start(in: &tasks)
        try await members.settle()
      }
      tasks.cancelAll()
    }
    #expect(members.conflicts.isEmpty)
  }

  /// The members of a group, and what they own.
  private final class Members: Sendable {
    private struct State {
      var consumers: [Int: Consumer] = [:]
      var owned: [Int: Set<TopicPartition>] = [:]
      var conflicts: [String] = []
    }

    private let kafka: TestKafka
    private let topics: [String]
    private let group: String
    private let partitions: Int
    private let state = Mutex(State())
    private let changes: AsyncStream<Void>
    private let change: AsyncStream<Void>.Continuation

    init(partitions: Int32) async throws {
      kafka = try TestKafka.shared()
      topics = [try await kafka.topic(partitions: partitions), try await kafka.topic(partitions: partitions)]
      group = kafka.group()
      self.partitions = Int(partitions)
      (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var conflicts: [String] { state.withLock { $0.conflicts } }

    /// Starts the next member: the first is 1. One that `dies` does not leave its group when it is stopped.
    func start(dies: Bool = false, in tasks: inout ThrowingTaskGroup<Void, any Error>) {
      var configuration = ConsumerConfiguration(
        client: kafka.client("test-member"), groupID: group, topics: [topics[0]])
      configuration.companionTopic = topics[1]
      configuration.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
      configuration.autoCommitInterval = nil
      if dies { configuration.closeTimeout = .zero }
      let (member, running) = state.withLock { state -> (Int, Consumer?) in
        let member = state.owned.count + 1
        do { state.consumers[member] = try Consumer(configuration: configuration, logger: TestKafka.quietLogger) } catch
        {
          state.conflicts.append("\(error)")
        }
        state.owned[member] = []
        return (member, state.consumers[member])
      }
      guard let consumer = running else { return }
      tasks.addTask { await consumer.run() }
      tasks.addTask { [self] in
        for await event in consumer.events {
          switch event {
          case .assigned(let partitions, let rebalance):
            add(partitions, to: member)
            rebalance.complete()
          case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
            state.withLock { $0.owned[member]?.subtract(partitions) }
            rebalance.complete()
          case .records, .failed: break
          }
          change.yield()
        }
      }
    }

    func stop(_ member: Int) async {
      await state.withLock { $0.consumers.removeValue(forKey: member) }?.close()
      state.withLock { $0.owned[member] = [] }
      change.yield()
    }

    /// Waits until all partitions are owned, and the members' numbers differ by at most one in each topic.
    func settle() async throws {
      var changes = changes.makeAsyncIterator()
      while true {
        let isOver = state.withLock { state in
          topics.allSatisfy { topic in
            let shares = state.consumers.keys.map { member in
              state.owned[member, default: []].count { $0.topic == topic }
            }
            return shares.reduce(0, +) == partitions && (shares.max() ?? 0) - (shares.min() ?? 0) <= 1
          }
        }
        if isOver { return }
        _ = await changes.next(isolation: #isolation)
        try Task.checkCancellation()
      }
    }

    private func add(_ partitions: [TopicPartition], to member: Int) {
      state.withLock { state in
        for (other, owned) in state.owned where other != member && !owned.isDisjoint(with: partitions) {
          state.conflicts.append("\(member) got \(owned.intersection(partitions)) of \(other)")
        }
        state.owned[member, default: []].formUnion(partitions)
      }
    }
  }
}
