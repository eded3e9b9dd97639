/// When a connection may be tried again: soon after the first failure, then more and more slowly, and never all
/// processes at once.
struct Reconnection {
  /// The first pause, and the longest.
  static let pauses: ClosedRange<Duration> = .milliseconds(50) ... .seconds(5)

  /// Failures since the last success, those of one moment being one.
  private(set) var failures = 0
  /// Before this moment nobody tries.
  private(set) var notBefore: ContinuousClock.Instant?
  private var lastFailure: ContinuousClock.Instant?

  /// An attempt has failed that began at `start`. `random` is a number from 0 to 1. Returns whether it counts: attempts
  /// that were under way at the same time have found the same out, and the pause is not to grow by how many they were.
  mutating func failed(begunAt start: ContinuousClock.Instant, at now: ContinuousClock.Instant, random: Double) -> Bool
  {
    if let lastFailure, start < lastFailure { return false }
    lastFailure = now
    failures += 1
    let pause = min(Self.pauses.lowerBound * (1 << min(failures - 1, 10)), Self.pauses.upperBound)
    // From half of it to all of it.
    notBefore = now + pause * (0.5 + random / 2)
    return true
  }

  /// An attempt has succeeded.
  mutating func succeeded() {
    self = Reconnection()
  }
}
