import Synchronization

/// A change of a consumer's partitions which has been announced and has not yet taken effect.
///
/// It takes effect when ``complete()`` is called, when nobody holds the token any more, or when
/// ``ConsumerConfiguration/rebalanceDeadline`` is over, whichever is first.
package final class Rebalance: Sendable {
  /// What becomes true once, and who wants to know; shared with the consumer's thread, which outlives the token.
  final class State: Sendable {
    private let completed = Atomic(false)
    private let wakeUp: @Sendable () -> Void

    /// Makes the state of a change; `wakeUp` is called once, when it is completed.
    init(wakeUp: @escaping @Sendable () -> Void) {
      self.wakeUp = wakeUp
    }

    /// Whether the application has had its say.
    var isComplete: Bool {
      completed.load(ordering: .acquiring)
    }

    /// Says so, once.
    func complete() {
      guard !completed.exchange(true, ordering: .releasing) else { return }
      wakeUp()
    }
  }

  /// When it takes effect, whatever has been done for it.
  package let deadline: ContinuousClock.Instant
  private let state: State

  /// Makes the token of `state`.
  init(state: State, deadline: ContinuousClock.Instant) {
    self.state = state
    self.deadline = deadline
  }

  deinit {
    state.complete()
  }

  /// Makes a token that is not connected to a consumer, for tests of what handles consumer events.
  package convenience init(onComplete: @escaping @Sendable () -> Void) {
    self.init(state: State(wakeUp: onComplete), deadline: .now + .seconds(10))
  }

  /// Lets the change take effect. From any thread; calls after the first do nothing.
  package func complete() {
    state.complete()
  }
}
