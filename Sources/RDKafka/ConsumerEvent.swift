import Synchronization

/// An event of a ``Consumer``.
/// Records of a partition come only between its `assigned` and its `revoked` or `lost`.
package enum ConsumerEvent: Sendable {
  /// Records, in order within each partition; at most as many as credit was granted.
  case records([ConsumedRecord])
  /// The group assigns these partitions to this member.
  /// Reading starts when the rebalance is completed.
  case assigned([TopicPartition], Rebalance)
  /// The group revokes these partitions. No further record of them comes.
  ///
  /// Settle or give up the records in flight, store the offsets, then complete the rebalance: only then may another
  /// member read the partitions.
  case revoked([TopicPartition], Rebalance)
  /// These partitions already belong to another member, because the session expired.
  /// Drop the records in flight; none of their offsets can be committed.
  case lost([TopicPartition], Rebalance)
  /// An error.
  /// Unless it `isFatal`, the consumer retries by itself; after a fatal error the stream ends. The same error is
  /// reported at most every ten seconds.
  case failed(RDKafkaError)
}

/// A token for an announced change of a consumer's partitions that has not yet taken effect.
///
/// It takes effect when ``complete()`` is called, when the token is released, or after
/// ``ConsumerConfiguration/rebalanceDeadline``, whichever is first.
package final class Rebalance: Sendable {
  /// Whether the change was acknowledged; shared with the consumer's thread, which outlives the
  /// token.
  final class State: Sendable {
    private let completed = Atomic(false)
    private let wakeUp: @Sendable () -> Void

    /// `wakeUp` is called once, when the change is acknowledged.
    init(wakeUp: @escaping @Sendable () -> Void) {
      self.wakeUp = wakeUp
    }

    /// Whether the application has acknowledged the change.
    var isComplete: Bool {
      completed.load(ordering: .acquiring)
    }

    /// Acknowledges the change. Calling it again has no effect.
    func complete() {
      guard !completed.exchange(true, ordering: .releasing) else { return }
      wakeUp()
    }
  }

  /// The moment at which the change takes effect without acknowledgement.
  package let deadline: ContinuousClock.Instant
  private let state: State

  init(state: State, deadline: ContinuousClock.Instant) {
    self.state = state
    self.deadline = deadline
  }

  deinit {
    state.complete()
  }

  /// A token without a consumer, for tests of code that handles consumer events.
  package convenience init(onComplete: @escaping @Sendable () -> Void) {
    self.init(state: State(wakeUp: onComplete), deadline: .now + .seconds(10))
  }

  /// Lets the change take effect. Callable from any thread. Calling it again has no effect.
  package func complete() {
    state.complete()
  }
}
