/// Waits that grow from one repetition to the next. Repetitions are numbered from 0; all waits are whole milliseconds.
package struct Backoff: Hashable, Sendable {
  /// Before the first repetition.
  package var first: Duration
  /// The factor from one wait to the next.
  package var growth: Double
  /// The longest wait.
  package var limit: Duration

  package init(first: Duration, growth: Double = 2, limit: Duration) {
    self.first = first
    self.growth = growth
    self.limit = limit
  }

  /// The wait before the repetition with that number.
  package func wait(_ number: Int) -> Duration { .milliseconds(Int64(clamping: milliseconds(number))) }

  /// Between half and all of the wait, so that what failed together is not repeated together.
  package func delay(_ number: Int, jitter: Double = .random(in: 0...1)) -> Duration {
    .milliseconds(Int64(clamping: milliseconds(number) * (0.5 + jitter / 2)))
  }

  /// Between the wait and a tenth more, for what must not be repeated sooner.
  package func wholeDelay(_ number: Int, jitter: Double) -> Duration {
    .milliseconds(Int64(clamping: milliseconds(number) * (1 + jitter / 10)))
  }

  private func milliseconds(_ number: Int) -> Double {
    var milliseconds = Double(first.milliseconds)
    let limit = Double(self.limit.milliseconds)
    for _ in 0..<number where milliseconds < limit { milliseconds *= growth }
    return min(milliseconds, limit)
  }
}
