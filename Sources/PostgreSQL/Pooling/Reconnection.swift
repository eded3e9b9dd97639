/// When a connection may be tried again: soon after the first failure, then more and more slowly, and never all processes at once.
struct Reconnection {
  /// The first pause, and the longest.
  static let pauses: ClosedRange<Duration> = .milliseconds(50) ... .seconds(5)

  /// Failures since the last success.
  private(set) var failures = 0
  /// Before this moment nobody tries.
  private(set) var notBefore: ContinuousClock.Instant?

  /// An attempt has failed. `random` is a number from 0 to 1.
  mutating func failed(at now: ContinuousClock.Instant, random: Double) {
    failures += 1
    let pause = min(Self.pauses.lowerBound * (1 << min(failures - 1, 10)), Self.pauses.upperBound)
    // From half of it to all of it.
    notBefore = now + pause * (0.5 + random / 2)
  }

  /// An attempt has succeeded.
  mutating func succeeded() {
    self = Reconnection()
  }
}
