import Synchronization

/// The partitions of a companion topic that a member reads; see ``ConsumerConfiguration/companionTopic``.
///
/// The group assigns the *leading* topic alone. Its member also reads the *companion* partitions that go with the
/// leading ones: number n with leading number n, or n modulo the leading topic's number where the companion topic has
/// more. They are taken after their leading partition was assigned, and given back together with it, so that two
/// members never read one.
///
/// Members of an earlier version subscribe to both topics, and the group assigns them companion partitions. While there
/// is one, no companion partition is held. So each change of the group calls for a *look* at the cluster: the numbers
/// of partitions, and the subscriptions of the members. Its answer counts only if the group has not changed since.
///
/// Invariants: a held partition's leading partition is owned; no partition is held that the group has assigned.
struct CompanionPartitions {
  /// The answer of the cluster.
  struct Look: Sendable, Hashable {
    /// The number of partitions of the leading topic.
    var leading: Int32
    /// The number of partitions of the companion topic.
    var companion: Int32
    var subscribers: Subscribers
  }

  /// The members that subscribe to the companion topic.
  enum Subscribers: Sendable, Hashable {
    case none
    case some
    /// The group is between two assignments.
    case unsettled
    /// The cluster does not describe the group.
    case undescribed
  }

  /// A change of the held partitions, for the application to complete.
  struct Change: Hashable {
    var isAssignment: Bool
    var partitions: [TopicPartition]
  }

  /// How often the cluster is looked at while nothing happens: a topic can get partitions without a change of the
  /// group.
  private static let interval: Duration = .seconds(60)
  /// The pause before a look without an answer is repeated.
  private static let pause: Duration = .milliseconds(500)
  /// From then on a group that the cluster does not describe counts as one without other subscribers.
  private static let patience: Duration = .seconds(30)

  private let leadingTopic: String
  private let companionTopic: String
  /// The partitions that the group has assigned.
  private var owned: Set<TopicPartition> = []
  /// The companion partitions that are read besides.
  private(set) var held: Set<TopicPartition> = []
  /// The number of changes of the group.
  private var generation = 0
  /// The generation whose look is under way.
  private var looking: Int?
  /// The last answer, and the generation to which it applies.
  private var answer: (look: Look, generation: Int)?
  private var nextLook: ContinuousClock.Instant?
  private var undescribedSince: ContinuousClock.Instant?

  init(leadingTopic: String, companionTopic: String) {
    (self.leadingTopic, self.companionTopic) = (leadingTopic, companionTopic)
  }

  /// Whether companion partitions are left to other members, which subscribe to their topic.
  var areShared: Bool { answer?.look.subscribers == .some }

  // Events.

  /// The group has announced a change: the last answer may be out of date.
  mutating func groupChanges(at now: ContinuousClock.Instant) {
    generation += 1
    nextLook = now
  }

  /// A change of the group has taken effect.
  mutating func own(_ partitions: [TopicPartition]) { owned.formUnion(partitions) }

  /// A change of the group has taken effect: the partitions are no longer owned, and those that go with them no longer
  /// held.
  mutating func disown(_ partitions: [TopicPartition]) {
    owned.subtract(partitions)
    held.subtract(partitions)
  }

  /// A change of the held partitions has taken effect.
  mutating func apply(_ change: Change) {
    if change.isAssignment { held.formUnion(change.partitions) } else { held.subtract(change.partitions) }
  }

  /// Begins a look if one is due.
  mutating func beginLook(at now: ContinuousClock.Instant) -> Bool {
    guard looking == nil, let due = nextLook, due <= now, !owned.isEmpty || !held.isEmpty else { return false }
    looking = generation
    return true
  }

  /// Ends the look; nil: the cluster did not answer.
  mutating func endLook(_ look: Look?, at now: ContinuousClock.Instant) {
    defer { looking = nil }
    guard let looking, looking == generation else { return }
    nextLook = now + Self.pause
    guard var look else { return }
    switch look.subscribers {
    case .unsettled: return
    case .undescribed:
      let since = undescribedSince ?? now
      undescribedSince = since
      guard now - since >= Self.patience else { return }
      look.subscribers = .none
    case .none, .some: undescribedSince = nil
    }
    answer = (look, looking)
    nextLook = now + Self.interval
  }

  // Actions.

  /// The next change that the application is to complete; nil if there is none, or the answer is out of date.
  func nextChange() -> Change? {
    guard let answer, answer.generation == generation else { return nil }
    let due = answer.look.subscribers == .none ? companions(answer.look) : []
    let surplus = held.subtracting(due)
    if !surplus.isEmpty { return Change(isAssignment: false, partitions: Self.ordered(surplus)) }
    let missing = due.subtracting(held)
    return missing.isEmpty ? nil : Change(isAssignment: true, partitions: Self.ordered(missing))
  }

  /// The held partitions that go with these.
  func companions(of partitions: [TopicPartition]) -> [TopicPartition] {
    guard let look = answer?.look, !held.isEmpty else { return [] }
    let leaving = Set(partitions)
    return Self.ordered(held.filter { leaving.contains(leading($0, look)) })
  }

  private func companions(_ look: Look) -> Set<TopicPartition> {
    guard look.leading > 0, look.companion > 0 else { return [] }
    let all = (0..<look.companion).map { TopicPartition(topic: companionTopic, partition: $0) }
    return Set(all.filter { owned.contains(leading($0, look)) && !owned.contains($0) })
  }

  private static func ordered(_ partitions: Set<TopicPartition>) -> [TopicPartition] {
    partitions.sorted { $0.partition < $1.partition }
  }

  /// The leading partition with which a companion partition goes.
  private func leading(_ partition: TopicPartition, _ look: Look) -> TopicPartition {
    TopicPartition(topic: leadingTopic, partition: partition.partition % max(1, look.leading))
  }
}

/// The answer of a look that a blocking call has made, for the consumer's thread.
final class LookResult: Sendable {
  private let result = Mutex<CompanionPartitions.Look??>(nil)

  /// nil: the cluster did not answer.
  func put(_ look: CompanionPartitions.Look?) { result.withLock { $0 = .some(look) } }

  /// Takes the answer; nil while there is none.
  func take() -> CompanionPartitions.Look?? {
    result.withLock { result in
      defer { result = nil }
      return result
    }
  }
}
