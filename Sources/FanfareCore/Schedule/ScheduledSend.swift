/// Phantom type of a lease's id.
package enum LeaseSubject {}

/// Names who has taken scheduled sends: one scheduler of one process.
package typealias LeaseID = Identifier<LeaseSubject>

/// A send that is held until its time comes.
package struct ScheduledSend: Hashable, Sendable {
  /// Where it stands. The words are in databases: never change one.
  package enum State: String, CaseIterable, Sendable {
    /// Waits for its time.
    case held
    /// Waits, and does not go when its time comes, until it is held again.
    case paused
    /// Gone to the sends topic, or on its way there.
    case fired
    /// Never goes.
    case cancelled
  }

  /// The send as it will be put onto the sends topic: accepted at the moment for which it is scheduled, from which its
  /// time to live counts.
  package let send: SendRequest
  /// When it was accepted to be held.
  package let scheduledAt: UnixTime
  package let state: State
  /// Whether it was taken before by somebody of whom nobody knows whether it got as far as the topic: until it has gone
  /// for certain nobody may be told that it never will. Only from `takeDue`; otherwise false.
  package let mayBeEnqueued: Bool

  /// When it is to go.
  package var due: UnixTime { send.acceptedAt }

  package init(send: SendRequest, scheduledAt: UnixTime, state: State = .held, mayBeEnqueued: Bool = false) {
    self.send = send
    self.scheduledAt = scheduledAt
    self.state = state
    self.mayBeEnqueued = mayBeEnqueued
  }
}
