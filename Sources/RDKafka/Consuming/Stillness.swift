/// How long a member of a group on the embedded cluster keeps still after the group has come to a new generation, so
/// that all members get their positions committed.
///
/// The embedded cluster begins to rebalance with the first member that joins again or leaves, and from then on refuses
/// everybody's positions; a real one takes them until all have joined. So there nobody does either before the slowest
/// member has settled what it gives back.
struct Stillness {
  /// Longer than a worker takes to settle what is in flight, and well within the time the embedded cluster gives a
  /// member to join again (a second less than the session timeout).
  private static let span: Duration = .milliseconds(2_500)

  private let isNeeded: Bool
  private var hasBeenAssigned = false
  private var until: ContinuousClock.Instant?

  /// Only a group that refuses commits during a rebalance needs it.
  init(isNeeded: Bool) {
    self.isNeeded = isNeeded
  }

  /// The group has told the member of a generation, which gives or takes partitions, or leaves everything as it is.
  mutating func begin(_ kind: ConsumerHandle.Change.Kind, isEmpty: Bool, at now: ContinuousClock.Instant) {
    guard isNeeded else { return }
    switch kind {
    // Of others this member knows nothing; but where everything goes to a newcomer, nobody has anything to give back.
    case .assign where !hasBeenAssigned && !isEmpty: break
    case .assign, .revoke: until = now + Self.span
    case .lose: break
    }
    hasBeenAssigned = true
  }

  /// Whether the member must still neither join again nor leave.
  func lasts(at now: ContinuousClock.Instant) -> Bool {
    until.map { now < $0 } ?? false
  }
}
