/// A set of hashes that forgets the oldest: at least the last `window` of them are remembered, and at most twice as
/// many.
///
/// Two generations instead of a ring, so that a look-up is one or two set probes and forgetting is one assignment.
struct RecentIdentities {
  private let window: Int
  private var current: Set<Int> = []
  private var previous: Set<Int> = []

  /// Remembers at least `window` hashes.
  init(window: Int) {
    self.window = max(window, 1)
  }

  /// Adds a hash; false when it was remembered already.
  mutating func insert(_ hash: Int) -> Bool {
    guard !previous.contains(hash), current.insert(hash).inserted else { return false }
    if current.count >= window {
      previous = current
      current = []
    }
    return true
  }
}
