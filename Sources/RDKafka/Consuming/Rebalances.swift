/// The changes of a member's partitions, from the group's decision until they take effect.
///
/// One change at a time: it is announced to the application, which completes it, and then takes effect. A deadline
/// bounds the wait for the application. Companion partitions change between the group's changes, and are added to its
/// revocations; see ``CompanionPartitions``.
///
/// Its driver feeds it the group's changes and looks at the cluster, and performs the actions of
/// ``next(at:isLeaving:wakeUp:)`` until there is none.
package struct Rebalances {
  /// A change of the partitions that a member reads.
  package struct Change: Hashable, Sendable {
    package var kind: Kind
    package var partitions: [TopicPartition]

    package init(kind: Kind, partitions: [TopicPartition]) {
      self.kind = kind
      self.partitions = partitions
    }

    /// `lose`: the partitions belong to another member already.
    package enum Kind: Sendable {
      case assign, revoke, lose
    }
  }

  package enum Action {
    /// Announce the change to the application, with the token that completes it.
    case announce(Change, Rebalance)
    /// Report that a change takes effect although the application has not completed it.
    case reportLate(Change)
    /// Commit the stored offsets.
    case commitStored
    /// Let the change take effect.
    case apply(Change)
  }

  private struct Pending {
    var change: Change
    /// The change of companion partitions that it is; nil for a rebalance of the group.
    var ofCompanions: CompanionPartitions.Change?
    var state: Rebalance.State?
    var deadline = ContinuousClock.now
    var isReported = false
    /// Until when a completed revocation is delayed at least; see `mustWait`.
    var delayedUntil: ContinuousClock.Instant?
  }

  private let rebalanceDeadline: Duration
  private let commitsStored: Bool
  /// The pending changes, of which the first one has been announced to the application.
  private var pending: [Pending] = []
  /// nil without a companion topic.
  private var companions: CompanionPartitions?
  private var delay: (any RebalanceDelay)?

  package init(_ configuration: ConsumerConfiguration) {
    rebalanceDeadline = configuration.rebalanceDeadline
    commitsStored = configuration.autoCommitInterval != nil
    delay = configuration.client.profile.rebalanceDelay?.init()
    companions = configuration.companionTopic.map {
      CompanionPartitions(leadingTopic: configuration.topics[0], companionTopic: $0)
    }
  }

  /// Whether no change waits for the application or to take effect.
  package var isEmpty: Bool { pending.isEmpty }

  /// Whether partitions that are to be given back still belong to the member.
  package var isRevoking: Bool { pending.contains { $0.change.kind != .assign } }

  /// Whether the member must not leave yet; see ``ClusterProfile/rebalanceDelay``.
  func isDelayed(at now: ContinuousClock.Instant) -> Bool { delay?.isActive(at: now) ?? false }

  // Events.

  /// Takes a decision of the group.
  package mutating func add(_ change: Change) {
    pending.append(Pending(change: change))
  }

  /// Begins a look at the cluster if one is due.
  package mutating func beginLook(at now: ContinuousClock.Instant) -> Bool {
    companions?.beginLook(at: now) ?? false
  }

  /// Ends the look; nil: the cluster did not answer.
  package mutating func endLook(_ look: CompanionPartitions.Look?, at now: ContinuousClock.Instant) {
    companions?.endLook(look, at: now)
  }

  /// Begins the change of companion partitions that is due.
  /// It must not be mistaken for the answer to a rebalance of the group, so it waits until there is none.
  package mutating func addCompanionChange() {
    guard pending.isEmpty, let change = companions?.nextChange() else { return }
    let kind: Change.Kind = change.isAssignment ? .assign : .revoke
    pending.append(Pending(change: Change(kind: kind, partitions: change.partitions), ofCompanions: change))
  }

  // Actions.

  /// The next action; nil if there is none before the application completes a change, or time passes.
  /// `isLeaving`: whether the member has begun to leave its group. `wakeUp` is called when the application completes
  /// the change that is announced.
  package mutating func next(
    at now: ContinuousClock.Instant, isLeaving: Bool, wakeUp: @escaping @Sendable () -> Void
  ) -> Action? {
    guard let first = pending.first else { return nil }
    guard let state = first.state else { return announce(at: now, wakeUp: wakeUp) }
    guard state.isComplete || first.deadline <= now else { return nil }
    if !state.isComplete, !first.isReported {
      pending[0].isReported = true
      return .reportLate(first.change)
    }
    if mustWait(at: now, isLeaving: isLeaving) {
      guard first.delayedUntil == nil, commitsStored else { return nil }
      return .commitStored
    }
    return .apply(take())
  }

  /// Whether the first rebalance must wait for other members; see ``ClusterProfile/rebalanceDelay``.
  ///
  /// While it waits, the offsets that the application has stored are committed. An application without automatic
  /// commits has committed before it completed the rebalance (`Rebalance.complete()`).
  private mutating func mustWait(at now: ContinuousClock.Instant, isLeaving: Bool) -> Bool {
    guard delay != nil, pending[0].change.kind == .revoke, pending[0].ofCompanions == nil else { return false }
    guard let delayedUntil = pending[0].delayedUntil else {
      pending[0].delayedUntil = now + .milliseconds(500)
      return true
    }
    return delayedUntil > now || (!isLeaving && isDelayed(at: now))
  }

  private mutating func announce(at now: ContinuousClock.Instant, wakeUp: @escaping @Sendable () -> Void) -> Action {
    let isOfGroup = pending[0].ofCompanions == nil
    if isOfGroup, pending[0].change.kind != .assign, let companions {
      pending[0].change.partitions += companions.companions(of: pending[0].change.partitions)
    }
    let change = pending[0].change
    let state = Rebalance.State(wakeUp: wakeUp)
    pending[0].state = state
    pending[0].deadline = now + rebalanceDeadline
    // A member that has lost its partitions does not keep others waiting.
    if isOfGroup, change.kind != .lose {
      delay?.begin(isAssignment: change.kind == .assign, isEmpty: change.partitions.isEmpty, at: now)
    }
    return .announce(change, Rebalance(state: state, deadline: pending[0].deadline))
  }

  private mutating func take() -> Change {
    let first = pending.removeFirst()
    if let ofCompanions = first.ofCompanions {
      companions?.apply(ofCompanions)
    } else if first.change.kind == .assign {
      companions?.own(first.change.partitions)
    } else {
      companions?.disown(first.change.partitions)
    }
    return first.change
  }
}
