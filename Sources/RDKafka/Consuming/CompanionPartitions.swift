import Synchronization

/// The partitions of a companion topic that a member reads; see ``ConsumerConfiguration/companionTopic``.
///
/// The group assigns the *leading* topic alone. Its member also reads the *companion* partitions that go with the
/// leading ones: number n with leading number n, or n modulo the leading topic's number where the companion topic has
/// more. They are taken after their leading partition was assigned, and given back together with it, so that two
/// members never read one. How many partitions the topics have tells a *look* at the cluster.
///
/// Invariant: a held partition's leading partition is owned.
package struct CompanionPartitions {
  /// The numbers of partitions of the two topics.
  package struct Look: Sendable, Hashable {
    package var leading: Int32
    package var companion: Int32

    package init(leading: Int32, companion: Int32) {
      self.leading = leading
      self.companion = companion
    }
  }

  /// A change of the held partitions, for the application to complete.
  struct Change: Hashable {
    var isAssignment: Bool
    var partitions: [TopicPartition]
  }

  /// How often the cluster is looked at: a topic can get partitions.
  private static let interval: Duration = .seconds(60)
  /// The pause before a look without an answer is repeated.
  private static let pause: Duration = .milliseconds(500)

  private let leadingTopic: String
  private let companionTopic: String
  /// The partitions that the group has assigned.
  private var owned: Set<TopicPartition> = []
  /// The companion partitions that are read besides.
  private(set) var held: Set<TopicPartition> = []
  /// The last answer.
  private var known: Look?
  private var isLooking = false
  /// nil before the first look.
  private var nextLook: ContinuousClock.Instant?

  init(leadingTopic: String, companionTopic: String) {
    (self.leadingTopic, self.companionTopic) = (leadingTopic, companionTopic)
  }

  // Events.

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
    guard !isLooking, nextLook.map({ $0 <= now }) ?? true, !owned.isEmpty || !held.isEmpty else { return false }
    isLooking = true
    return true
  }

  /// Ends the look; nil: the cluster did not answer.
  mutating func endLook(_ look: Look?, at now: ContinuousClock.Instant) {
    isLooking = false
    nextLook = now + (look == nil ? Self.pause : Self.interval)
    known = look ?? known
  }

  // Actions.

  /// The next change that the application is to complete; nil if there is none.
  func nextChange() -> Change? {
    guard let known else { return nil }
    let due = companions(known)
    let surplus = held.subtracting(due)
    if !surplus.isEmpty { return Change(isAssignment: false, partitions: Self.ordered(surplus)) }
    let missing = due.subtracting(held)
    return missing.isEmpty ? nil : Change(isAssignment: true, partitions: Self.ordered(missing))
  }

  /// The held partitions that go with these.
  func companions(of partitions: [TopicPartition]) -> [TopicPartition] {
    guard let known, !held.isEmpty else { return [] }
    let leaving = Set(partitions)
    return Self.ordered(held.filter { leaving.contains(leading($0, known)) })
  }

  private func companions(_ look: Look) -> Set<TopicPartition> {
    guard look.leading > 0, look.companion > 0 else { return [] }
    let all = (0..<look.companion).map { TopicPartition(topic: companionTopic, partition: $0) }
    return Set(all.filter { owned.contains(leading($0, look)) })
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
