/// What is wanted of a broadcast: by its sender, an operator, or the breaker that watches its failures.
package struct BroadcastControl: Hashable, Sendable {
  /// How it is to go on.
  package enum State: String, CaseIterable, Sendable {
    /// Page after page.
    case running
    /// Nothing more is begun until it runs again.
    case paused
    /// Nothing more is begun, ever.
    case cancelled
  }

  /// Who has wanted it last.
  package enum Cause: String, CaseIterable, Sendable {
    /// Nobody: it has run as it was accepted.
    case accepted
    /// Its sender, or an operator.
    case caller
    /// Too large a share of a page has failed.
    case failures
  }

  package let state: State
  package let cause: Cause

  package init(_ state: State, because cause: Cause) {
    self.state = state
    self.cause = cause
  }

  /// What holds until anything else is wanted.
  package static let initial = BroadcastControl(.running, because: .accepted)
}
