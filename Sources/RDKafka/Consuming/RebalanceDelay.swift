/// How long a member delays its part of a rebalance, so that the commits of all members are accepted.
///
/// Only where `ClusterProfile.acceptsCommitsDuringRebalance` is false: librdkafka's mock cluster begins a rebalance
/// with the first member that joins again or leaves, and from then on refuses all commits until every member has its
/// new assignment. A real cluster accepts them until all members have joined again.
///
/// Each member joins again or leaves only after the slowest member has settled the partitions that it gives back.
struct RebalanceDelay {
  /// Longer than a worker takes to settle its sends in flight, and well below the time that the
  /// mock cluster gives a member to join again (the session timeout less one second).
  private static let span: Duration = .milliseconds(2_500)

  private let isNeeded: Bool
  private var hasBeenAssigned = false
  private var until: ContinuousClock.Instant?

  init(isNeeded: Bool) {
    self.isNeeded = isNeeded
  }

  /// Notes that a new generation has assigned or revoked partitions, or changed nothing.
  mutating func begin(_ kind: ConsumerHandle.Change.Kind, isEmpty: Bool, at now: ContinuousClock.Instant) {
    guard isNeeded else { return }
    switch kind {
    // A new member does not know of others; if it gets partitions at once, no member has any to give back.
    case .assign where !hasBeenAssigned && !isEmpty: break
    case .assign, .revoke: until = now + Self.span
    case .lose: break
    }
    hasBeenAssigned = true
  }

  /// Whether the member must neither join again nor leave yet.
  func isActive(at now: ContinuousClock.Instant) -> Bool {
    until.map { now < $0 } ?? false
  }
}
