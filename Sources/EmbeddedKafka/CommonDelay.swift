import RDKafka

/// How long each member of an embedded cluster's group delays its part of a rebalance.
///
/// librdkafka's mock cluster begins a rebalance with the first member that joins again or leaves, and from then on
/// refuses all commits until every member has its new assignment. So each member joins again or leaves only after the
/// slowest member has settled the partitions that it gives back.
struct CommonDelay: RebalanceDelay {
  /// Longer than a worker takes to settle its sends in flight, and well below the time that the
  /// mock cluster gives a member to join again (the session timeout less one second).
  private static let span: Duration = .milliseconds(2_500)

  private var hasBeenAssigned = false
  private var until: ContinuousClock.Instant?

  mutating func begin(isAssignment: Bool, isEmpty: Bool, at now: ContinuousClock.Instant) {
    // A new member does not know of others; if it gets partitions at once, no member has any to give back.
    if hasBeenAssigned || isEmpty || !isAssignment { until = now + Self.span }
    hasBeenAssigned = true
  }

  func isActive(at now: ContinuousClock.Instant) -> Bool {
    until.map { now < $0 } ?? false
  }
}
