import Synchronization
import Testing

@testable import RDKafka

struct RebalancesTests {
  private let start = ContinuousClock.now
  private var rebalances: Rebalances
  private let tokens = Tokens()

  /// The tokens that the application holds.
  private final class Tokens: Sendable {
    private let held = Mutex<[Rebalance]>([])

    func hold(_ token: Rebalance) { held.withLock { $0.append(token) } }
    func completeAll() { for token in held.withLock({ $0 }) { token.complete() } }
  }

  init() {
    let client = KafkaClientConfiguration(bootstrapServers: "localhost:1", clientID: "test")
    var configuration = ConsumerConfiguration(client: client, groupID: "group", topics: ["sends"])
    configuration.companionTopic = "segments"
    rebalances = Rebalances(configuration)
  }

  private func change(
    _ kind: Rebalances.Change.Kind, _ numbers: [Int32], of topics: [String] = ["sends"]
  ) -> Rebalances.Change {
    let partitions = topics.flatMap { topic in numbers.map { TopicPartition(topic: topic, partition: $0) } }
    return Rebalances.Change(kind: kind, partitions: partitions)
  }

  /// The name of the next action and its change.
  private mutating func next(after delay: Duration = .zero) -> (name: String, change: Rebalances.Change?)? {
    switch rebalances.next(at: start + delay, isLeaving: false, wakeUp: {}) {
    case .announce(let change, let token):
      tokens.hold(token)
      return ("announce", change)
    case .reportLate(let change): return ("late", change)
    case .commitStored: return ("commit", nil)
    case .apply(let change): return ("apply", change)
    case nil: return nil
    }
  }

  /// Checks that the change is announced, and takes effect when the application completes it.
  private mutating func performs(_ expected: Rebalances.Change) {
    let announced = next()
    #expect(announced?.name == "announce" && announced?.change == expected)
    let early = next()
    #expect(early == nil)
    tokens.completeAll()
    let applied = next()
    #expect(applied?.name == "apply" && applied?.change == expected)
  }

  @Test mutating func oneChangeAtATimeTakesEffectWhenItIsCompleted() {
    rebalances.add(change(.revoke, [1]))
    rebalances.add(change(.assign, [2]))
    #expect(rebalances.isRevoking)
    performs(change(.revoke, [1]))
    #expect(!rebalances.isRevoking)
    performs(change(.assign, [2]))
    #expect(rebalances.isEmpty)
  }

  @Test mutating func changeThatIsNotCompletedTakesEffectAtItsDeadline() {
    rebalances.add(change(.assign, [1]))
    _ = next()
    let early = next(after: .seconds(1))
    #expect(early == nil)
    let names = [next(after: .seconds(2))?.name, next(after: .seconds(2))?.name]
    #expect(names == ["late", "apply"])
  }

  @Test mutating func companionsFollowTheirLeadingPartitions() {
    rebalances.add(change(.assign, [0, 1]))
    performs(change(.assign, [0, 1]))
    let looks = rebalances.beginLook(at: start)
    #expect(looks)
    rebalances.endLook(CompanionPartitions.Look(leading: 4, companion: 4), at: start)
    rebalances.addCompanionChange()
    performs(change(.assign, [0, 1], of: ["segments"]))
    rebalances.addCompanionChange()
    #expect(rebalances.isEmpty)
    // They are given back with them.
    rebalances.add(change(.revoke, [1]))
    performs(change(.revoke, [1], of: ["sends", "segments"]))
  }
}
