import DequeModule

/// Guards the registrations of one hub and platform against removal in masses. A pure value.
struct DropBreaker: Sendable {
  private let policy: DropBreakerPolicy
  private var answers: Deque<Bool> = []
  private var gone = 0
  /// Whether dead devices are reported but not dropped.
  private(set) var isTripped = false

  init(policy: DropBreakerPolicy) {
    self.policy = policy
  }

  /// Takes note of a definite answer about one device. Returns whether the breaker has changed its state.
  mutating func record(isGone: Bool) -> Bool {
    answers.append(isGone)
    if isGone { gone += 1 }
    if answers.count > policy.window, answers.removeFirst() { gone -= 1 }
    let share = Double(gone) / Double(answers.count)
    let isTripped = self.isTripped ? share >= policy.share / 2 : gone >= policy.minimumCount && share >= policy.share
    defer { self.isTripped = isTripped }
    return isTripped != self.isTripped
  }
}
