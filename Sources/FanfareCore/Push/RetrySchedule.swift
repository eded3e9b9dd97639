/// Delays that grow.
package struct RetrySchedule: Hashable, Sendable {
  /// Before the first repetition.
  package var first: Duration
  /// The factor from one delay to the next.
  package var growth: Double
  /// The longest delay.
  package var limit: Duration

  package init(first: Duration, growth: Double, limit: Duration) {
    self.first = first
    self.growth = growth
    self.limit = limit
  }

  /// The delay before the repetition with that number, from 0: between half and all of the
  /// scheduled one, so that pushes that failed together do not return together.
  package func delay(_ number: Int, jitter: Double) -> Duration {
    .milliseconds(Int64(clamping: milliseconds(number) * (0.5 + jitter / 2)))
  }

  /// The delay for pushes that must not return sooner: between the scheduled delay and a tenth
  /// more.
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
